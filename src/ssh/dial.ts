/** From a name to a connected socket, each phase with its own deadline. */
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { dialFailure, dialTimeout, lookupTimeout, type Place } from './failures.ts';
import type { RoadLimits } from './limits.ts';
import { reasonOf } from './slots.ts';

interface Address {
  readonly address: string;
  readonly family: number;
}

/** @throws ReclaimError ssh_name_unresolved, ssh_refused, ssh_timeout, ssh_unreachable; or the signal's reason. */
export async function dial(place: Place, limits: RoadLimits, signal?: AbortSignal): Promise<Socket> {
  const addresses = await resolve(place, limits.lookupMs, signal);
  return await new Promise<Socket>((done, fail) => {
    const socket = connect({
      host: place.address,
      port: place.port,
      noDelay: true,
      // Both families of a name are tried. Node's own 250 ms per address is too short for a far-away box.
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: Math.max(10, Math.ceil(limits.dialMs / 4)),
      lookup: (_name, options, answer) => {
        const [first] = addresses;
        if (options.all) answer(null, addresses);
        else answer(null, first?.address ?? '', first?.family ?? 4);
      },
    });
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      socket.off('error', onError).off('connect', onConnect);
      settle();
    };
    const giveUp = (error: Error) => {
      end(() => {
        socket.on('error', () => undefined).destroy();
        fail(error);
      });
    };
    const onAbort = () => {
      giveUp(reasonOf(signal));
    };
    const onError = (error: Error) => {
      giveUp(dialFailure(place, error));
    };
    const onConnect = () => {
      end(() => {
        done(socket);
      });
    };
    const timer = setTimeout(() => {
      giveUp(dialTimeout(place, limits.dialMs));
    }, limits.dialMs);
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.on('error', onError).on('connect', onConnect);
  });
}

async function resolve(place: Place, deadlineMs: number, signal?: AbortSignal): Promise<Address[]> {
  signal?.throwIfAborted();
  const family = isIP(place.address);
  if (family !== 0) return [{ address: place.address, family }];
  return await new Promise<Address[]>((done, fail) => {
    const timer = setTimeout(() => {
      fail(lookupTimeout(place, deadlineMs));
    }, deadlineMs);
    const onAbort = () => {
      fail(reasonOf(signal));
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    lookup(place.address, { all: true })
      .then(done, (error: unknown) => {
        fail(dialFailure(place, error));
      })
      .finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      });
  });
}
