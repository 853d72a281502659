/** The Slack side of one process: sockets, handlers and the poster. Started and stopped by the composition root. */
import { WebClient } from '@slack/web-api';
import type { SocketModeReceiver } from '@slack/bolt';
import { z } from 'zod';
import type { Deps } from '../deps.ts';
import { ReclaimError } from '../errors.ts';
import type { RequestRecord } from '../requests/types.ts';
import { buildApp, registerHandlers } from './app.ts';
import type { TextFile } from './blocks/thread.ts';
import { boltLogger } from './bolt-log.ts';
import { slackDirectory } from './directory.ts';
import { paintPng } from './paint.ts';
import { startPoster } from './poster.ts';

export interface SlackSettings {
  readonly botToken: string | undefined;
  readonly appToken: string | undefined;
  readonly apiUrl: string | undefined;
  /** Makes the receipt of an ended run; left out, no receipt is posted. */
  readonly receipt?: (record: RequestRecord) => Promise<TextFile | undefined>;
  /** SVG to PNG; left out, the painter that ships with the program. */
  readonly paint?: (svg: string) => Promise<Buffer>;
  /** Carries every call of the Web API; the global one where not given. */
  readonly fetch?: typeof fetch;
  /** Told why a message is put back to be tried again. */
  readonly retried?: (reason: string) => void;
  /** Told how many sockets of this app Slack counts, whenever one of ours opens. */
  readonly heard?: (connections: number) => void;
}

export interface GatewayHealth {
  readonly ok: boolean;
  /** Sockets that are open now; one is enough to hear everything. */
  readonly openSockets: number;
  readonly undelivered: number;
  readonly oldestUndeliveredAt: string | null;
}

export interface Gateway {
  stop(): Promise<void>;
  health(): Promise<GatewayHealth>;
  /** Sockets that are open now. */
  openSockets(): number;
}

function needed(name: string, value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new ReclaimError(
    'slack_token_missing',
    `${name} is not set, so Slack cannot be reached and nothing was started. Put it into .env (manifest.yaml makes the app), or try everything without Slack: npm run demo`,
  );
}

/** Both tokens, or `slack_token_missing` with the name of the first that is not set. Cheap: ask before starting anything. */
export function requireTokens(settings: SlackSettings): { readonly botToken: string; readonly appToken: string } {
  return {
    botToken: needed('SLACK_BOT_TOKEN', settings.botToken),
    appToken: needed('SLACK_APP_TOKEN', settings.appToken),
  };
}

/** Fails at once when rate limited and never waits long: for calls a person waits for, and for the poster's own queue. */
function clientFor(token: string, settings: SlackSettings, log: Deps['log'], retries: number): WebClient {
  const { apiUrl, fetch } = settings;
  return new WebClient(token, {
    ...(apiUrl === undefined ? {} : { slackApiUrl: apiUrl }),
    ...(fetch === undefined ? {} : { fetch }),
    logger: boltLogger(log),
    timeout: 10_000,
    rejectRateLimitedCalls: true,
    retryConfig: { retries, minTimeout: 200, factor: 2 },
  });
}

const isOpen = (receiver: SocketModeReceiver): boolean => receiver.client.websocket?.isActive() === true;

/**
 * Connects and starts delivering. Rejects with `slack_token_missing`, or with `slack_failed` when Slack refuses the
 * tokens; an outage of Slack is waited for.
 */
export async function startGateway(deps: Deps, settings: SlackSettings): Promise<Gateway> {
  const { botToken, appToken } = requireTokens(settings);
  const { apiUrl } = settings;
  const log = deps.log.child({ part: 'slack' });
  const interactive = clientFor(botToken, settings, log, 1);
  const homeTeam = await ownTeam(interactive);

  const { app, receivers } = buildApp({ appToken, botToken, apiUrl, log });
  const directory = slackDirectory(interactive, deps.clock, homeTeam);
  registerHandlers(app, { deps: { ...deps, log }, directory, client: interactive, homeTeam });
  for (const receiver of receivers) tellConnections(receiver, settings.heard);
  await startReceivers(receivers, log);

  const { config } = deps;
  if (config.policy.approvers.length === 0)
    log.warn('no approver is configured (policy.approvers): nobody can approve anything');
  const poster = startPoster({
    store: deps.store,
    clock: deps.clock,
    log,
    client: clientFor(botToken, settings, log, 0),
    // Read at each rendering: the policy may be replaced while the program runs.
    cardContext: () => ({ approvers: config.policy.approvers, breakGlass: config.policy.break_glass }),
    ...(settings.retried === undefined ? {} : { retried: settings.retried }),
    paint: settings.paint ?? paintPng,
    receipt: settings.receipt ?? (() => Promise.resolve(undefined)),
  });
  return {
    openSockets: () => receivers.filter(isOpen).length,
    async stop() {
      await Promise.allSettled(receivers.map((r) => r.stop()));
      await poster.stop();
    },
    async health() {
      const openSockets = receivers.filter(isOpen).length;
      const { count, oldestAt } = await deps.store.undelivered();
      return { ok: openSockets > 0, openSockets, undelivered: count, oldestUndeliveredAt: oldestAt };
    },
  };
}

const helloSchema = z.object({ type: z.literal('hello'), num_connections: z.number() });

/** Slack greets each new socket with the number of sockets the app has, of whomever they are. */
function tellConnections(receiver: SocketModeReceiver, heard: SlackSettings['heard']): void {
  if (heard === undefined) return;
  receiver.client.on('ws_message', (data: unknown) => {
    const text = String(data);
    if (!text.includes('"hello"')) return;
    const hello = helloSchema.safeParse(JSON.parse(text));
    if (hello.success) heard(hello.data.num_connections);
  });
}

async function ownTeam(client: WebClient): Promise<string> {
  try {
    const { team_id: team } = await client.auth.test();
    if (team !== undefined) return team;
  } catch (error) {
    throw new ReclaimError(
      'slack_failed',
      'Slack did not accept SLACK_BOT_TOKEN, or could not be reached. Nothing was started. Check the token and the network.',
      { cause: error },
    );
  }
  throw new ReclaimError('slack_failed', 'Slack did not say which workspace the bot token belongs to.');
}

/** One open socket is enough to begin; the other follows by itself, and tries again for as long as it takes. */
async function startReceivers(receivers: readonly SocketModeReceiver[], log: Deps['log']): Promise<void> {
  const starts = receivers.map((r) => r.start());
  for (const start of starts) {
    start.catch((error: unknown) => {
      log.error({ err: error }, 'a Slack socket did not open');
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
