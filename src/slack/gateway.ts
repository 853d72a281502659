/** The Slack side of one process: sockets, handlers and the poster. Started and stopped by the composition root. */
import { WebClient } from '@slack/web-api';
import type { RequestListener } from 'node:http';
import type { Deps } from '../deps.ts';
import { ReclaimError } from '../errors.ts';
import type { RequestRecord } from '../requests/types.ts';
import { registerHandlers } from './app.ts';
import type { TextFile } from './blocks/thread.ts';
import { boltLogger } from './bolt-log.ts';
import { slackDirectory } from './directory.ts';
import type { Ears } from './ears.ts';
import { paintPng } from './paint.ts';
import { startPoster } from './poster.ts';
import { requestUrl } from './request-url.ts';
import { sockets } from './sockets.ts';

export interface SlackSettings {
  readonly botToken: string | undefined;
  /** For Socket Mode, which is taken where both this and the signing secret are set. */
  readonly appToken: string | undefined;
  /** For HTTP. */
  readonly signingSecret?: string | undefined;
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
  readonly over: 'sockets' | 'http';
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
  /** For POST /slack/events; null in Socket Mode. */
  readonly listener: RequestListener | null;
}

function needed(name: string, value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new ReclaimError(
    'slack_token_missing',
    `${name} is not set, so Slack cannot be reached and nothing was started. Put it into .env (manifest.yaml makes the app), or try everything without Slack: npm run demo`,
  );
}

export interface Tokens {
  readonly botToken: string;
  /** How Slack talks to us: an app-level token for sockets, a signing secret for HTTP. */
  readonly way: { readonly appToken: string } | { readonly signingSecret: string };
}

/** What is needed, or `slack_token_missing` with the name of the first that is not set. Cheap: ask before starting anything. */
export function requireTokens({ botToken, appToken, signingSecret }: SlackSettings): Tokens {
  const bot = needed('SLACK_BOT_TOKEN', botToken);
  if ((appToken ?? '') === '' && signingSecret !== undefined && signingSecret !== '') {
    return { botToken: bot, way: { signingSecret } };
  }
  return { botToken: bot, way: { appToken: needed('SLACK_APP_TOKEN', appToken) } };
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

function earsFor(
  { botToken, way }: Tokens,
  settings: SlackSettings,
  { log, clock }: Pick<Deps, 'log' | 'clock'>,
): Ears {
  const common = { botToken, apiUrl: settings.apiUrl, log };
  return 'appToken' in way
    ? sockets({ ...common, ...way, heard: settings.heard, clock })
    : requestUrl({ ...common, ...way, clock });
}

/**
 * Connects and starts delivering. Rejects with `slack_token_missing`, or with `slack_failed` when Slack refuses the
 * tokens; an outage of Slack is waited for.
 */
export async function startGateway(deps: Deps, settings: SlackSettings): Promise<Gateway> {
  const tokens = requireTokens(settings);
  const { botToken } = tokens;
  const log = deps.log.child({ part: 'slack' });
  const interactive = clientFor(botToken, settings, log, 1);
  const homeTeam = await ownTeam(interactive);

  const ears = earsFor(tokens, settings, { log, clock: deps.clock });
  const directory = slackDirectory(interactive, deps.clock, homeTeam);
  registerHandlers(ears.app, { deps: { ...deps, log }, directory, client: interactive, homeTeam });
  await ears.start();

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
    listener: ears.listener,
    openSockets: () => ears.openSockets(),
    async stop() {
      await ears.stop();
      await poster.stop();
    },
    async health() {
      const { count, oldestAt } = await deps.store.undelivered();
      return {
        ok: ears.hears(),
        over: ears.listener === null ? 'sockets' : 'http',
        openSockets: ears.openSockets(),
        undelivered: count,
        oldestUndeliveredAt: oldestAt,
      };
    },
  };
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
