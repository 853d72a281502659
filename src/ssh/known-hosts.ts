/**
 * What known_hosts files say about a key, by the rules of sshd(8) "SSH_KNOWN_HOSTS FILE FORMAT". Pure: text and bytes
 * in, a verdict out. Stricter than ssh in two ways: a `@revoked` line we cannot read is an error (skipping it would
 * accept the key it was written to stop), and a key filed under the bare name never counts for another port.
 */
import { createHash, createHmac } from 'node:crypto';
import { ReclaimError } from '../errors.ts';

export interface KnownHostLine {
  readonly file: string;
  /** Counted from 1, as `ssh-keygen -F` prints it. */
  readonly line: number;
  readonly marker: 'none' | 'revoked' | 'cert-authority';
  /** The first field: `name,name`, `[name]:port`, wildcards, `!name`, or one `|1|salt|hash`. */
  readonly names: string;
  readonly keyType: string;
  /** The public key as it travels on the wire (RFC 4253 6.6). */
  readonly key: Buffer;
}

/** The name a host is filed under: lower case, and `[name]:port` off port 22. */
export function knownHostName(address: string, port: number): string {
  const name = address.toLowerCase();
  return port === 22 ? name : `[${name}]:${port}`;
}

/** `SHA256:…` as ssh prints it: unpadded base64. */
export function fingerprint(key: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

/** The type written at the head of a key blob, or null when the blob is not one. */
export function keyTypeOf(key: Buffer): string | null {
  if (key.length < 4) return null;
  const length = key.readUInt32BE(0);
  if (length === 0 || length > 64 || key.length <= 4 + length) return null;
  const type = key.toString('latin1', 4, 4 + length);
  return /^[A-Za-z0-9@._-]+$/.test(type) ? type : null;
}

/**
 * The readable lines of one file. Lines ssh would skip (no key, a key of another type than it says) are skipped.
 * @throws ReclaimError `ssh_known_hosts_unreadable` when a `@revoked` line, or a line with a marker we do not know,
 * cannot be read.
 */
export function parseKnownHosts(text: string, file: string): KnownHostLine[] {
  return text.split('\n').flatMap((raw, index) => {
    const fields = raw.split(/[ \t\r]+/).filter((field) => field !== '');
    const first = fields[0];
    if (first === undefined || first.startsWith('#')) return [];
    const marked = first.startsWith('@');
    const [names, keyType, base64] = marked ? fields.slice(1) : fields;
    const marker = first === '@cert-authority' ? 'cert-authority' : marked ? 'revoked' : 'none';
    const key = Buffer.from(base64 ?? '', 'base64');
    const readable = names !== undefined && keyType !== undefined && keyTypeOf(key) === keyType;
    if (marked && first !== '@cert-authority' && (first !== '@revoked' || !readable)) {
      throw new ReclaimError(
        'ssh_known_hosts_unreadable',
        `Line ${index + 1} of ${file} is marked ${first.slice(0, 40)} and cannot be understood, so no key was trusted ` +
          'and nothing was connected. Mend or remove that line, then try again.',
      );
    }
    return readable ? [{ file, line: index + 1, marker, names, keyType, key }] : [];
  });
}

/** `*` any run, `?` any one character, case aside. Greedy with one step back, so a hostile pattern stays cheap. */
function matchesPattern(name: string, pattern: string): boolean {
  let n = 0;
  let p = 0;
  let star = -1;
  let starName = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      star = p;
      starName = n;
      p += 1;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === name[n])) {
      n += 1;
      p += 1;
    } else if (star >= 0) {
      starName += 1;
      n = starName;
      p = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

function matchesHash(name: string, names: string): boolean {
  const [, version, salt, hash, ...rest] = names.split('|');
  if (version !== '1' || salt === undefined || hash === undefined || rest.length > 0) return false;
  const saltBytes = Buffer.from(salt, 'base64');
  return saltBytes.length === 20 && createHmac('sha1', saltBytes).update(name).digest('base64') === hash;
}

/** Whether the names field of a line covers `name` (as knownHostName gives it). One matching `!pattern` denies it. */
export function coversName(names: string, name: string): boolean {
  if (names.startsWith('|')) return matchesHash(name, names);
  let covered = false;
  for (const pattern of names.toLowerCase().split(',')) {
    if (pattern.startsWith('!')) {
      if (matchesPattern(name, pattern.slice(1))) return false;
    } else if (matchesPattern(name, pattern)) {
      covered = true;
    }
  }
  return covered;
}

/** Everything the files say about one name. */
export interface NameRecord {
  readonly name: string;
  readonly trusted: readonly KnownHostLine[];
  readonly revoked: readonly KnownHostLine[];
  /** `@cert-authority` lines: certificates cannot be checked here, so they never make a match; we say they are there. */
  readonly authorities: readonly KnownHostLine[];
}

export function recordOf(lines: readonly KnownHostLine[], name: string): NameRecord {
  const covering = lines.filter((line) => coversName(line.names, name));
  const of = (marker: KnownHostLine['marker']) => covering.filter((line) => line.marker === marker);
  return { name, trusted: of('none'), revoked: of('revoked'), authorities: of('cert-authority') };
}

export type KeyVerdict = 'trusted' | 'revoked' | 'changed' | 'unknown';

/** Revoked wins over everything; `changed` means other keys are filed for the name, `unknown` that none is. */
export function judgeKey(record: NameRecord, key: Buffer): KeyVerdict {
  const holds = (lines: readonly KnownHostLine[]) => lines.some((line) => line.key.equals(key));
  if (holds(record.revoked)) return 'revoked';
  if (holds(record.trusted)) return 'trusted';
  return record.trusted.length > 0 ? 'changed' : 'unknown';
}

/** Signature algorithms to ask for, best first. SHA-1 (`ssh-rsa`) and DSA are never asked for. */
const algorithmsByKeyType: readonly (readonly [string, readonly HostKeyAlgorithm[]])[] = [
  ['ssh-ed25519', ['ssh-ed25519']],
  ['ecdsa-sha2-nistp256', ['ecdsa-sha2-nistp256']],
  ['ecdsa-sha2-nistp384', ['ecdsa-sha2-nistp384']],
  ['ecdsa-sha2-nistp521', ['ecdsa-sha2-nistp521']],
  ['ssh-rsa', ['rsa-sha2-512', 'rsa-sha2-256']],
];

export type HostKeyAlgorithm =
  | 'ssh-ed25519'
  | 'ecdsa-sha2-nistp256'
  | 'ecdsa-sha2-nistp384'
  | 'ecdsa-sha2-nistp521'
  | 'rsa-sha2-512'
  | 'rsa-sha2-256';

/**
 * The host key algorithms to offer: like ssh, only those of keys we hold for the name, so that a box with several keys
 * shows one we can compare; all of them when we hold none. Empty when what we hold can not be used here.
 */
export function offeredAlgorithms(record: NameRecord): HostKeyAlgorithm[] {
  const known = new Set(record.trusted.map((line) => line.keyType));
  return algorithmsByKeyType
    .filter(([keyType]) => known.size === 0 || known.has(keyType))
    .flatMap(([, algorithms]) => algorithms);
}

/** The line `reclaim trust` adds. */
export function knownHostsLine(name: string, key: Buffer): string {
  return `${name} ${keyTypeOf(key) ?? 'unknown'} ${key.toString('base64')}\n`;
}
