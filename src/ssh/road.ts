/** From the name of a host to a live, verified connection: its route, its jump hosts, its key, its retries. */
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { HostConfig } from '../config/schema.ts';
import { ReclaimError, type ErrorCode } from '../errors.ts';
import { connectionOver, type Connection } from './connection.ts';
import { dial } from './dial.ts';
import type { Place } from './failures.ts';
import { createIdentities, type IdentitySettings } from './identity.ts';
import { readKnownHosts } from './known-hosts-files.ts';
import { knownHostName, recordOf, type NameRecord } from './known-hosts.ts';
import { defaultLimits, type RoadLimits } from './limits.ts';
import { configuredStop, jumpOf, type Stop } from './jump.ts';
import { login } from './login.ts';
import { createPool, type Lease } from './pool.ts';
import { createSlots, type Slots } from './slots.ts';
import { routeOf, type Route } from './ssh-config.ts';

export interface RoadSettings extends IdentitySettings {
  readonly hosts: ReadonlyMap<string, HostConfig>;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  readonly limits?: Partial<RoadLimits> | undefined;
}

export interface ShownKey {
  readonly route: Route;
  readonly record: NameRecord;
  /** The key the host showed, whether trusted or not. */
  readonly key: Buffer;
}

export interface Road {
  /** @throws ReclaimError host_unknown or one of ssh_* */
  lease(host: string, signal?: AbortSignal): Promise<Lease<Connection>>;
  /** Asks a host for its key and goes no further. Jump hosts on the way have to be trusted already. */
  showKey(host: string, signal?: AbortSignal): Promise<ShownKey>;
  close(): void;
}

/** Tries in all. What is not here is tried once: keys and logins above all, because boxes block who fails often. */
const tries: Partial<Record<ErrorCode, number>> = {
  ssh_closed_early: 6,
  ssh_name_unresolved: 2,
  ssh_refused: 2,
  ssh_timeout: 2,
  ssh_unreachable: 2,
  ssh_stalled: 2,
};

const hopsMax = 8;

export function createRoad(settings: RoadSettings): Road {
  const limits: RoadLimits = { ...defaultLimits, ...settings.limits };
  const pool = createPool<Connection>(limits.idleMs);
  const loadIdentity = createIdentities(settings);
  const allDials = createSlots(limits.dials);
  const dialsByAddress = new Map<string, Slots>();

  function leaseStop(stop: Stop, trail: readonly string[], signal?: AbortSignal): Promise<Lease<Connection>> {
    if (trail.includes(stop.key) || trail.length >= hopsMax) {
      throw new ReclaimError(
        'ssh_config_invalid',
        `The jump hosts of ${trail[0] ?? stop.key} go round in a circle (${[...trail, stop.key].join(' > ')}). ` +
          'Nothing was connected. Mend "jump" in reclaim.yaml or ProxyJump in the ssh config file.',
      );
    }
    return pool.lease(stop.key, (stopped) => connect(stop, [...trail, stop.key], stopped), signal);
  }

  async function connect(stop: Stop, trail: readonly string[], signal: AbortSignal): Promise<Connection> {
    const { route, record } = await prepare(stop.config);
    const identity = await loadIdentity(route.host, route);
    const place = { host: route.host, address: route.address, port: route.port, user: route.user };
    return await throughJump(stop, route, trail, signal, async (jump) =>
      withRetries(place, signal, async () => {
        const stream = await openStream(place, jump, signal);
        const session = await login(stream, { place, user: route.user, identity, record, limits, signal });
        const connection = connectionOver(session, stream, place, limits);
        settings.log?.debug({ host: route.host, hostKey: connection.hostKey }, 'connected');
        return connection;
      }),
    );
  }

  /**
   * Holds the jump host's connection for as long as the connection made through it lives. One that lay idle may be dead
   * without our knowing; then it is made anew, once.
   */
  async function throughJump(
    stop: Stop,
    route: Route,
    trail: readonly string[],
    signal: AbortSignal,
    make: (jump: Lease<Connection> | null) => Promise<Connection>,
  ): Promise<Connection> {
    const jump = jumpOf(stop, route, settings.hosts);
    if (jump === null) return await make(null);
    for (let again = false; ; again = true) {
      const lease = await leaseStop(jump, trail, signal);
      try {
        const connection = await make(lease);
        connection.onClosed(() => {
          lease.release();
        });
        return connection;
      } catch (error) {
        const worn = !lease.fresh && error instanceof ReclaimError && error.retryable;
        lease.release(worn);
        if (!worn || again) throw error;
      }
    }
  }

  async function openStream(place: Place, jump: Lease<Connection> | null, signal: AbortSignal): Promise<Duplex> {
    return jump === null ? await dial(place, limits, signal) : await jump.item.forward(place, signal);
  }

  /** A few at a time, to one address and in all; again after a jittered wait where another try can help. */
  async function withRetries<T>(place: Place, signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    const address = `${place.address} ${place.port}`;
    const slots = dialsByAddress.get(address) ?? createSlots(limits.dialsPerAddress);
    dialsByAddress.set(address, slots);
    for (let attempts = 1; ; attempts += 1) {
      const releases = [await slots.take(signal)];
      try {
        releases.push(await allDials.take(signal));
        return await attempt();
      } catch (error) {
        const allowed = error instanceof ReclaimError ? (tries[error.code] ?? 1) : 1;
        if (attempts >= allowed || signal.aborted) throw error;
        settings.log?.debug({ host: place.host, attempts, err: error }, 'trying again');
      } finally {
        for (const release of releases) release();
      }
      await settings.clock.sleep(limits.retryMs * 2 ** (attempts - 1) * (0.5 + Math.random()), signal);
    }
  }

  return {
    async lease(name, signal) {
      return await leaseStop(configuredStop(name, settings.hosts), [], signal);
    },
    async showKey(name, signal = new AbortController().signal) {
      const stop = configuredStop(name, settings.hosts);
      const { route, record } = await prepare(stop.config);
      const place = { host: route.host, address: route.address, port: route.port };
      const jump = jumpOf(stop, route, settings.hosts);
      const lease = jump === null ? null : await leaseStop(jump, [stop.key], signal);
      try {
        const key = await withRetries(place, signal, async () =>
          peek(await openStream(place, lease, signal), place, record, limits, signal),
        );
        return { route, record, key };
      } finally {
        lease?.release();
      }
    },
    close() {
      pool.close();
    },
  };
}

async function prepare(config: HostConfig): Promise<{ route: Route; record: NameRecord }> {
  const route = await routeOf(config);
  const name = route.hostKeyAlias?.toLowerCase() ?? knownHostName(route.address, route.port);
  return { route, record: recordOf(await readKnownHosts(route.knownHosts), name) };
}

/** A login that trusts nothing, so it always ends right after the key is shown and never offers ours. */
async function peek(
  stream: Duplex,
  place: Place,
  record: NameRecord,
  limits: RoadLimits,
  signal: AbortSignal,
): Promise<Buffer> {
  const shown: { key: Buffer | null } = { key: null };
  const identity = { says: 'no key', method: (username: string) => ({ type: 'none' as const, username }) };
  const nobody: NameRecord = { ...record, trusted: [], revoked: [] };
  try {
    const { client } = await login(stream, {
      ...{ place, user: 'nobody', identity, record: nobody, limits, signal },
      onHostKey: (key) => {
        shown.key = key;
      },
    });
    client.end();
  } catch (error) {
    if (shown.key === null) throw error;
  }
  if (shown.key === null) throw new Error('a login came about without a host key');
  return shown.key;
}
