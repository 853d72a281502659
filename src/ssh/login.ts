/**
 * One ssh login over a stream that is already connected. The only place that makes an ssh2 Client, and the only one
 * with a host key check: ssh2 accepts any key when that check is missing or answers anything but a strict `false`
 * (a Promise, for one), so it is a plain function that answers once, with a strict boolean.
 */
import type { Duplex } from 'node:stream';
import ssh2, { type AnyAuthMethod, type Client } from 'ssh2';
import { ReclaimError } from '../errors.ts';
import {
  authFailed,
  closedEarly,
  keyRefused,
  noSharedAlgorithm,
  protocolError,
  stalled,
  type Place,
} from './failures.ts';
import { judgeKey, offeredAlgorithms, type NameRecord } from './known-hosts.ts';
import type { RoadLimits } from './limits.ts';
import { reasonOf } from './slots.ts';

/** How we prove who we are: one key, never a list of guesses. */
export interface Identity {
  /** For sentences: `the key /path` or `the agent key /path`. Never a secret. */
  readonly says: string;
  method(user: string): AnyAuthMethod;
}

export interface LoginOptions {
  readonly place: Place;
  readonly user: string;
  readonly identity: Identity;
  readonly record: NameRecord;
  readonly limits: RoadLimits;
  readonly signal?: AbortSignal | undefined;
  /** Told the key the box showed, whatever comes of it: `reclaim trust` needs it. */
  readonly onHostKey?: (key: Buffer) => void;
}

export interface Session {
  readonly client: Client;
  /** The key the box proved to hold. */
  readonly hostKey: Buffer;
}

/** @throws ReclaimError with one of the ssh_* codes; the stream is destroyed then. */
export function login(stream: Duplex, options: LoginOptions): Promise<Session> {
  const { place, limits, record, signal } = options;
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client();
    const seen = { greeted: false, offer: '', hostKey: Buffer.alloc(0), refused: null as ReclaimError | null };
    let timer: NodeJS.Timeout;
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      finish();
    };
    const fail = (error: Error) => {
      settle(() => {
        // ssh2's own destroy() does nothing on a half-closed socket, so the stream is ended by hand.
        stream.destroy();
        reject(error);
      });
    };
    const onAbort = () => {
      fail(reasonOf(signal));
    };
    const deadline = (ms: number, late: () => Error) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        fail(late());
      }, ms);
    };

    // Errors come in twos, and one may come late: the listener stays for good, the first one counts.
    client.on('error', (error) => {
      fail(seen.refused ?? translate(error, options, seen.offer));
    });
    client.on('close', () => {
      fail(seen.refused ?? closedEarly(place));
    });
    client.on('handshake', () => {
      deadline(limits.loginMs, () => stalled(place, 'login', limits.loginMs));
    });
    client.on('ready', () => {
      settle(() => {
        resolve({ client, hostKey: seen.hostKey });
      });
    });
    deadline(limits.handshakeMs, () => stalled(place, seen.greeted ? 'handshake' : 'greeting', limits.handshakeMs));
    if (signal?.aborted === true) {
      onAbort();
      return;
    }
    signal?.addEventListener('abort', onAbort, { once: true });

    const offered = offeredAlgorithms(record);
    if (offered.length === 0) {
      fail(noSharedAlgorithm(place, 'usable host key type', '', record));
      return;
    }
    client.connect({
      sock: stream,
      username: options.user,
      // Our deadlines are per phase; ssh2's one for all is switched off.
      readyTimeout: 0,
      keepaliveInterval: limits.keepaliveMs,
      keepaliveCountMax: limits.keepaliveMisses,
      algorithms: { serverHostKey: offered, compress: ['none'] },
      authHandler: oneTry(client, options, fail),
      debug: (line) => {
        if (line.startsWith('Remote ident:')) seen.greeted = true;
        const offer = /^Handshake: \(remote\) (KEX method|Host key format|S->C cipher|S->C MAC): (.*)$/.exec(line);
        if (offer !== null) seen.offer = offer[2] ?? '';
      },
      hostVerifier: (key: Buffer, answer: (accept: boolean) => void): void => {
        seen.hostKey = Buffer.from(key);
        options.onHostKey?.(seen.hostKey);
        const verdict = judgeKey(record, seen.hostKey);
        if (verdict !== 'trusted') seen.refused = keyRefused(place, verdict, record, seen.hostKey);
        answer(verdict === 'trusted');
      },
    });
  });
}

/** Offers the one identity once; being asked again means it was refused. */
function oneTry(client: Client, { place, user, identity }: LoginOptions, fail: (error: Error) => void) {
  let tried = false;
  let banner = '';
  client.on('banner', (text) => {
    banner += text;
  });
  return (methods: readonly string[] | null, partial: boolean | null, next: (method: AnyAuthMethod) => void): void => {
    if (tried) {
      fail(authFailed(place, user, identity.says, { methods: methods ?? [], partial: partial === true, banner }));
      return;
    }
    tried = true;
    next(identity.method(user));
  };
}

function translate(error: Error, { place, user, identity, record }: LoginOptions, offer: string): ReclaimError {
  const level = 'level' in error ? error.level : undefined;
  const nothingShared = /no matching (.+)$/.exec(error.message)?.[1];
  if (nothingShared !== undefined) return noSharedAlgorithm(place, nothingShared, offer, record);
  if (/authentication failures/i.test(error.message) || level === 'client-authentication') {
    return authFailed(place, user, identity.says, { methods: [], partial: false, banner: '' });
  }
  if (level === 'agent') {
    return new ReclaimError(
      'ssh_key_unusable',
      `The ssh agent did not sign with ${identity.says}, so ${place.host} was not logged in to and nothing was done there. ` +
        'Check the agent at SSH_AUTH_SOCK (is it locked, or asking for a confirmation?), then try again.',
      { cause: error },
    );
  }
  if (level === 'client-socket' || /lost before handshake/.test(error.message)) return closedEarly(place, error);
  return protocolError(place, error);
}
