/** Socket Mode: two sockets feeding one set of handlers, each replaced the moment Slack retires it. */
import { SocketModeReceiver } from '@slack/bolt';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import { buildApp, type AppOptions } from './app.ts';
import { boltLogger } from './bolt-log.ts';
import type { Ears } from './ears.ts';

export const socketsPerGateway = 2;
/** A socket retired sooner is left to reconnect by itself, after its pause: Slack is having a bad time. */
const shortestLifeMs = 10_000;
/** How long a retired socket still listens beside its successor. */
const lingerMs = 2_000;

export interface SocketOptions extends AppOptions {
  readonly appToken: string;
  /** Told how many sockets of this app Slack counts, whenever one of ours opens. */
  readonly heard?: ((connections: number) => void) | undefined;
  readonly clock: Clock;
}

/**
 * Each receiver gets options of its own: socket-mode and web-api write into them. `forever`, because a receiver whose
 * retries run out stays deaf; a short ping timeout, because it also is the wait before every reconnect.
 */
function receiverFor({ appToken, apiUrl, log }: SocketOptions): SocketModeReceiver {
  return new SocketModeReceiver({
    appToken,
    logger: boltLogger(log),
    clientPingTimeout: 5000,
    installerOptions: {
      clientOptions: {
        ...(apiUrl === undefined ? {} : { slackApiUrl: apiUrl }),
        timeout: 10_000,
        retryConfig: { forever: true, minTimeout: 500, maxTimeout: 15_000, factor: 1.5 },
      },
    },
  });
}

const isOpen = (receiver: SocketModeReceiver): boolean => receiver.client.websocket?.isActive() === true;

const greeting = z.discriminatedUnion('type', [
  z.object({ type: z.literal('hello'), num_connections: z.number() }),
  z.object({ type: z.literal('disconnect') }),
]);

/** What Slack says about the socket itself; null for everything it carries. */
function greetingIn(data: unknown): z.infer<typeof greeting> | null {
  if (typeof data !== 'string' || !/"(?:hello|disconnect)"/.test(data)) return null;
  try {
    const read = greeting.safeParse(JSON.parse(data));
    return read.success ? read.data : null;
  } catch {
    return null;
  }
}

class Sockets implements Ears {
  readonly app;
  readonly listener = null;
  readonly #options: SocketOptions;
  readonly #receivers: SocketModeReceiver[];
  readonly #retired = new Set<SocketModeReceiver>();
  readonly #ending = new AbortController();

  constructor(options: SocketOptions) {
    this.#options = options;
    const first = receiverFor(options);
    this.app = buildApp(options, first);
    const others = Array.from({ length: socketsPerGateway - 1 }, () => receiverFor(options));
    for (const receiver of others) receiver.init(this.app);
    this.#receivers = [first, ...others];
    for (const receiver of this.#receivers) this.#watch(receiver);
  }

  /**
   * socket-mode hangs up the moment Slack announces that it will, and calls again five seconds later. Here a fresh socket is
   * opened first, and the old one hears and acknowledges until that one does.
   */
  #watch(receiver: SocketModeReceiver): void {
    const { client } = receiver;
    let openedAt = this.#options.clock.now();
    const own = client.listeners('ws_message');
    client.removeAllListeners('ws_message');
    client.on('ws_message', (data: unknown, isBinary: unknown) => {
      const said = greetingIn(data);
      if (said?.type === 'hello') {
        openedAt = this.#options.clock.now();
        this.#options.heard?.(said.num_connections);
      }
      if (said?.type === 'disconnect' && this.#options.clock.now() - openedAt >= shortestLifeMs) {
        void this.#replace(receiver);
        return;
      }
      for (const listener of own) listener(data, isBinary);
    });
  }

  async #replace(old: SocketModeReceiver): Promise<void> {
    const place = this.#receivers.indexOf(old);
    if (place < 0 || this.#ending.signal.aborted) return;
    const fresh = receiverFor(this.#options);
    fresh.init(this.app);
    this.#receivers[place] = fresh;
    this.#watch(fresh);
    const { log, clock } = this.#options;
    this.#retired.add(old);
    await fresh.start().catch((error: unknown) => {
      log.error({ err: error }, 'a Slack socket did not open');
    });
    // What was sent to the old one meanwhile is still heard and acknowledged.
    await clock.sleep(lingerMs, this.#ending.signal).catch(() => undefined);
    this.#retired.delete(old);
    await old.stop().catch((error: unknown) => {
      log.info({ err: error }, 'a retired Slack socket did not close well');
    });
  }

  /** One open socket is enough to begin; the other follows by itself, and tries again for as long as it takes. */
  async start(): Promise<void> {
    const starts = this.#receivers.map((r) => r.start());
    for (const start of starts) {
      start.catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'a Slack socket did not open');
      });
    }
    try {
      await Promise.any(starts);
    } catch (error) {
      throw new ReclaimError(
        'slack_failed',
        'Slack did not open a socket: check SLACK_APP_TOKEN (xapp-…, scope connections:write) and that Socket Mode is on. Nothing was started.',
        { cause: error },
      );
    }
  }

  async stop(): Promise<void> {
    this.#ending.abort(new Error('the gateway stops'));
    await Promise.allSettled([...this.#receivers, ...this.#retired].map((r) => r.stop()));
  }

  openSockets(): number {
    return this.#receivers.filter(isOpen).length;
  }

  hears(): boolean {
    return this.openSockets() > 0;
  }
}

export function sockets(options: SocketOptions): Ears {
  return new Sockets(options);
}
