/** `reclaim trust HOST`: shows the key a host has now and files it, after a yes. Never replaces and never unrevokes one. */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ReclaimError } from '../errors.ts';
import { keyRefused } from './failures.ts';
import { fingerprint, judgeKey, keyTypeOf, knownHostsLine } from './known-hosts.ts';
import type { Road } from './road.ts';

export interface TrustOffer {
  /** The name it is filed under, as in known_hosts. */
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly keyType: string;
  /** `SHA256:…`, to compare with the box (`ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub` there). */
  readonly fingerprint: string;
  /** The file it goes to. */
  readonly file: string;
  /** Already on file: nothing to do. */
  readonly trusted: boolean;
  /** Writes the line. Call it after a person said yes. */
  add(): Promise<void>;
}

/** @throws ReclaimError ssh_host_key_changed or _revoked instead of an offer; or why the host was not reached. */
export async function offerTrust(road: Road, host: string, signal?: AbortSignal): Promise<TrustOffer> {
  const { route, record, key } = await road.showKey(host, signal);
  const verdict = judgeKey(record, key);
  if (verdict === 'changed' || verdict === 'revoked') {
    throw keyRefused({ host, address: route.address, port: route.port }, verdict, record, key);
  }
  const [file] = route.knownHosts;
  if (file === undefined) {
    throw new ReclaimError(
      'ssh_known_hosts_unreadable',
      `No known_hosts file is configured for ${host}, so its key cannot be filed. Set "knownHosts" in reclaim.yaml.`,
    );
  }
  return {
    name: record.name,
    address: route.address,
    port: route.port,
    keyType: keyTypeOf(key) ?? 'unknown',
    fingerprint: fingerprint(key),
    file,
    trusted: verdict === 'trusted',
    add: () => append(file, knownHostsLine(record.name, key)),
  };
}

async function append(file: string, line: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const before = await readFile(file, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
      throw error;
    });
    const gap = before === '' || before.endsWith('\n') ? '' : '\n';
    await appendFile(file, `${gap}${line}`, { mode: 0o600 });
  } catch (cause) {
    throw new ReclaimError(
      'ssh_known_hosts_unreadable',
      `The key could not be added to ${file}, so the host is still not trusted. Check the owner and mode of that file.`,
      { cause },
    );
  }
}
