/**
 * A Transport over ssh, for the length of one job. It holds one connection, takes a new one when that is gone, and
 * never goes on with a box that proves another key than the one the job began with.
 */
import type { HostConfig } from '../config/schema.ts';
import { ReclaimError, type ErrorCode } from '../errors.ts';
import type { Connection } from './connection.ts';
import type { Lease } from './pool.ts';
import type { Road } from './road.ts';
import { remoteCommand, type RunOptions, type RunOutput, type Transport } from './transport.ts';

const connectionIsDead: ReadonlySet<ErrorCode> = new Set(['ssh_closed_early', 'ssh_stalled']);

/** @throws ReclaimError host_unknown or one of ssh_*; when it resolves, the box is logged in to and its key verified. */
export async function openSshTransport(road: Road, host: HostConfig, signal?: AbortSignal): Promise<Transport> {
  let held: Promise<Lease<Connection>> | null = road.lease(host.name, signal);
  const { hostKey } = (await held).item;
  /** Whether the held connection has carried a command, or lay idle: it may have died unseen since. */
  let worn = !(await held).fresh;

  async function lease(stop?: AbortSignal): Promise<Lease<Connection>> {
    const now = await held;
    if (now?.item.alive === true) return now;
    now?.release(true);
    const next = await road.lease(host.name, stop);
    if (next.item.hostKey !== hostKey) {
      next.release(true);
      throw anotherKey(host.name, hostKey, next.item.hostKey);
    }
    held = Promise.resolve(next);
    worn = !next.fresh;
    return next;
  }

  function letGo(used: Lease<Connection>): void {
    used.release(true);
    held = null;
  }

  async function runOnce(used: Lease<Connection>, stdin: Uint8Array, options: RunOptions): Promise<RunOutput> {
    const output = await used.item.run(remoteCommand(host.privilege, options.privileged), stdin, options);
    // What did not come to its end may still run or may be frozen: that connection is not used again.
    if (output.lost || output.timedOut) letGo(used);
    worn = true;
    return output;
  }

  async function run(stdin: Uint8Array, asked: RunOptions): Promise<RunOutput> {
    const options = { ...asked, signal: either(asked.signal, signal) };
    const first = await lease(options.signal);
    try {
      return await runOnce(first, stdin, options);
    } catch (error) {
      if (!(error instanceof ReclaimError) || !connectionIsDead.has(error.code)) throw error;
      letGo(first);
      if (!worn) throw error;
    }
    // The command was not started on the dead connection (execOn), so once more, on a new one.
    return await runOnce(await lease(options.signal), stdin, options);
  }

  return {
    host: host.name,
    hostKey,
    run,
    async close() {
      (await held)?.release();
    },
  };
}

function anotherKey(host: string, before: string, now: string): ReclaimError {
  return new ReclaimError(
    'ssh_host_key_changed',
    `${host} showed another of its keys after the connection was lost (${now}, before ${before}). ` +
      'Nothing more was done there. Check that it is still the same box, then ask anew.',
  );
}

function either(a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return AbortSignal.any([a, b]);
}
