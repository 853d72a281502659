/** One live ssh connection: a few commands at a time, streams onwards to other boxes, and a sure end. */
import type { Duplex } from 'node:stream';
import type { Client } from 'ssh2';
import { ReclaimError } from '../errors.ts';
import { execOn, type ExecPlace } from './exec.ts';
import { forwardFailure, sessionDied, stalled, type Place } from './failures.ts';
import { fingerprint } from './known-hosts.ts';
import type { RoadLimits } from './limits.ts';
import type { Session } from './login.ts';
import { createSlots, reasonOf } from './slots.ts';
import type { RunOptions, RunOutput } from './transport.ts';

export interface Connection {
  /** `SHA256:…` of the key the box proved to hold. */
  readonly hostKey: string;
  readonly alive: boolean;
  run(command: string, stdin: Uint8Array, options: RunOptions): Promise<RunOutput>;
  /** A stream to another box as this one reaches it. */
  forward(target: Place, signal?: AbortSignal): Promise<Duplex>;
  /** Calls back once, when the connection is gone for whatever reason. */
  onClosed(listener: () => void): void;
  close(): void;
}

export function connectionOver(
  session: Session,
  stream: Duplex,
  place: Place & { readonly user: string },
  limits: RoadLimits,
): Connection {
  const { client } = session;
  const execPlace: ExecPlace = { ...place, channelMs: limits.channelMs };
  const slots = createSlots(limits.channels);
  let alive = true;
  let closed = false;
  const gone = () => {
    alive = false;
  };
  client.on('end', gone).on('close', () => {
    gone();
    closed = true;
  });
  // A keepalive that stays unanswered, a reset: from here on nothing more will come.
  client.on('error', () => {
    gone();
    stream.destroy();
  });

  async function run(command: string, stdin: Uint8Array, options: RunOptions): Promise<RunOutput> {
    for (let alone = 0; ;) {
      const release = await slots.take(options.signal);
      try {
        return await execOn(client, execPlace, command, stdin, options);
      } catch (error) {
        if (!(error instanceof ReclaimError) || error.code !== 'ssh_busy') throw error;
        // sshd allows fewer sessions than we thought: keep to what it does allow, and wait for one of ours to end.
        const others = slots.taken - 1;
        slots.shrinkTo(others);
        if (others === 0 && ++alone > 2) throw error;
      } finally {
        release();
      }
      await pause(limits.retryMs / 2, options.signal);
    }
  }

  return {
    hostKey: fingerprint(session.hostKey),
    get alive() {
      return alive;
    },
    run,
    forward: (target, signal) => forward(client, place, target, limits.dialMs + limits.lookupMs, signal),
    onClosed(listener) {
      if (closed) listener();
      else client.once('close', listener);
    },
    close() {
      alive = false;
      client.end();
      // end() waits for the other side for ever; a frozen box never answers.
      setTimeout(() => stream.destroy(), 200).unref();
    },
  };
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function forward(
  client: Client,
  jump: Place,
  target: Place,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    let settled = false;
    const settle = (finish: () => void) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      finish();
    };
    const fail = (error: Error) => {
      settle(() => {
        reject(error);
      });
    };
    const onAbort = () => {
      fail(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      fail(stalled(jump, 'channel', deadlineMs));
    }, deadlineMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      client.forwardOut('127.0.0.1', 0, target.address, target.port, (error, channel) => {
        if (error) {
          fail('reason' in error ? forwardFailure(jump, target, error) : sessionDied(jump, error));
          return;
        }
        if (settled) channel.destroy();
        settle(() => {
          resolve(channel);
        });
      });
    } catch (cause) {
      fail(sessionDied(jump, cause));
    }
  });
}
