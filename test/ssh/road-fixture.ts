/** A folder, a key and a road over hosts that stand on real sshds: what the tests of the road begin with. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostConfig } from '../../src/config/schema.ts';
import { ReclaimError, type ErrorCode } from '../../src/errors.ts';
import type { RoadLimits } from '../../src/ssh/limits.ts';
import { createRoad, type Road, type RoadSettings } from '../../src/ssh/road.ts';
import { openSshTransport } from '../../src/ssh/ssh-transport.ts';
import type { RunOptions, RunOutput, Transport } from '../../src/ssh/transport.ts';
import { systemClock } from '../../src/system-clock.ts';
import { isRoot, makeKey, makeUser, me, type KeyPair } from './sshd.ts';

/** Short enough for tests, long enough for a busy machine. */
export const quick: Partial<RoadLimits> = {
  dialMs: 3_000,
  handshakeMs: 8_000,
  loginMs: 8_000,
  channelMs: 4_000,
  keepaliveMs: 5_000,
  retryMs: 30,
};

export interface Fixture {
  readonly dir: string;
  readonly key: KeyPair;
  /** Writes a known_hosts file and returns its path. */
  knownHosts(text: string): string;
  host(overrides: Partial<HostConfig> & { readonly port: number }): HostConfig;
  road(hosts: readonly HostConfig[], settings?: Partial<RoadSettings>): Road;
  transport(host: HostConfig, settings?: Partial<RoadSettings>): Promise<Transport>;
  end(): Promise<void>;
}

export function createFixture(): Fixture {
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-road-'));
  const key = makeKey(dir);
  // A user with a bare home: what someone's own .bashrc does on login is not what is tested here.
  const user = isRoot ? makeUser('/bin/sh') : null;
  const roads: Road[] = [];
  let files = 0;
  const fixture: Fixture = {
    dir,
    key,
    knownHosts(text) {
      const file = join(dir, `known_hosts_${(files += 1)}`);
      writeFileSync(file, text);
      return file;
    },
    host: (overrides) => ({
      name: 'box',
      address: '127.0.0.1',
      user: user?.name ?? me,
      privilege: 'none',
      identity: key.file,
      knownHosts: [join(dir, 'no-such-known-hosts')],
      aliases: [],
      groups: [],
      ...overrides,
    }),
    road(hosts, settings = {}) {
      const road = createRoad({
        hosts: new Map(hosts.map((host) => [host.name, host])),
        clock: systemClock,
        ...settings,
        limits: { ...quick, ...settings.limits },
      });
      roads.push(road);
      return road;
    },
    transport: (host, settings) => openSshTransport(fixture.road([host], settings), host),
    end() {
      for (const road of roads) road.close();
      user?.remove();
      rmSync(dir, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
  return fixture;
}

/** Runs a script the way the host program is run. */
export async function sh(transport: Transport, script: string, options: Partial<RunOptions> = {}): Promise<RunOutput> {
  return await transport.run(Buffer.from(script), {
    timeoutMs: 15_000,
    maxBytes: 1_000_000,
    privileged: false,
    ...options,
  });
}

export const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

/** The ReclaimError a promise ends in; anything else fails the test. */
export async function refusal(work: Promise<unknown>): Promise<ReclaimError> {
  const thrown: unknown = await work.then(
    () => new Error('it went through'),
    (error: unknown) => error,
  );
  if (thrown instanceof ReclaimError) return thrown;
  throw thrown;
}

export async function code(work: Promise<unknown>): Promise<ErrorCode> {
  return (await refusal(work)).code;
}
