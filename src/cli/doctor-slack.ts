/** What `reclaim doctor` asks Slack: tokens, scopes, socket, clock, people who may approve, channels. Reads only. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import type { Config } from '../config/schema.ts';
import { fail, ok, warn, type Row } from './doctor-rows.ts';

const answerMs = 10_000;
/** Slack refuses what was signed more than five minutes ago. */
const skew = { warnMs: 30_000, failMs: 300_000 };

interface Answer {
  readonly body: Readonly<Record<string, unknown>>;
  readonly scopes: readonly string[];
  /** The server's clock less ours; null where it does not tell. */
  readonly aheadMs: number | null;
}

type Ask = (method: string, args?: Readonly<Record<string, string>>, token?: string) => Promise<Answer>;

export async function slackRows(config: Config): Promise<Row[]> {
  const { SLACK_BOT_TOKEN: bot, SLACK_APP_TOKEN: app, SLACK_API_URL: url = 'https://slack.com/api/' } = config.env;
  if (bot === undefined) {
    return [warn('Slack', 'SLACK_BOT_TOKEN is not set in .env: a gateway needs it; the CLI and workers do not')];
  }
  const ask = askSlack(url, bot);
  try {
    const signedIn = await ask('auth.test');
    if (signedIn.body['ok'] !== true) {
      const next = 'Copy the bot token from "OAuth & Permissions" of the app, and install it again if it was removed.';
      return [fail('Slack', `SLACK_BOT_TOKEN is refused (${errorOf(signedIn)}). ${next}`)];
    }
    const who = `signed in as ${String(signedIn.body['user'])} in ${String(signedIn.body['team'])}`;
    return [
      ok('Slack', who),
      scopesRow(signedIn.scopes),
      ...clockRow(signedIn.aheadMs),
      await socketRow(ask, app),
      ...(await Promise.all(config.policy.approvers.map((id) => approverRow(ask, id)))),
      ...(await Promise.all(channelsOf(config).map((id) => channelRow(ask, id)))),
    ];
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return [fail('Slack', `${url} gave no answer (${why}). Check the network from here, a proxy, and SLACK_API_URL.`)];
  }
}

function askSlack(url: string, bot: string): Ask {
  return async (method, args = {}, token = bot) => {
    const response = await fetch(new URL(method, url.endsWith('/') ? url : `${url}/`), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(args).toString(),
      signal: AbortSignal.timeout(answerMs),
    });
    const date = Date.parse(response.headers.get('date') ?? '');
    const scopes = response.headers.get('x-oauth-scopes') ?? '';
    return {
      body: z.record(z.string(), z.unknown()).parse(await response.json()),
      scopes: scopes.split(',').flatMap((scope) => (scope.trim() === '' ? [] : [scope.trim()])),
      aheadMs: Number.isFinite(date) ? date - Date.now() : null,
    };
  };
}

const errorOf = ({ body }: Answer): string => (typeof body['error'] === 'string' ? body['error'] : 'no reason given');

const manifestSchema = z.object({ oauth_config: z.object({ scopes: z.object({ bot: z.array(z.string()) }) }) });

function scopesRow(granted: readonly string[]): Row {
  const text = readFileSync(new URL('../../manifest.yaml', import.meta.url), 'utf8');
  const needed = manifestSchema.parse(parse(text)).oauth_config.scopes.bot;
  const missing = needed.filter((scope) => !granted.includes(scope));
  if (missing.length === 0) return ok('Slack scopes', `all ${needed.length} granted`);
  const next = 'Add them under "OAuth & Permissions" (or paste manifest.yaml again) and install the app again.';
  return fail('Slack scopes', `missing: ${missing.join(', ')}. ${next}`);
}

function clockRow(aheadMs: number | null): Row[] {
  if (aheadMs === null) return [];
  const offMs = Math.abs(aheadMs);
  // The header has whole seconds.
  if (offMs < skew.warnMs) return [ok('clock', 'agrees with Slack’s')];
  const text = `${Math.round(offMs / 1000)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} Slack’s clock. Set it by NTP (timedatectl set-ntp true).`;
  return [offMs < skew.failMs ? warn('clock', text) : fail('clock', text)];
}

async function socketRow(ask: Ask, app: string | undefined): Promise<Row> {
  if (app === undefined) {
    return warn('Slack socket', 'SLACK_APP_TOKEN is not set in .env: Socket Mode needs it (scope connections:write)');
  }
  const opened = await ask('apps.connections.open', {}, app);
  if (opened.body['ok'] === true) return ok('Slack socket', 'may be opened');
  const next = 'Make an app-level token with connections:write under "Basic Information", and turn Socket Mode on.';
  return fail('Slack socket', `SLACK_APP_TOKEN is refused (${errorOf(opened)}). ${next}`);
}

const userSchema = z.object({
  user: z.object({
    name: z.string().optional(),
    deleted: z.boolean().optional(),
    is_bot: z.boolean().optional(),
    is_restricted: z.boolean().optional(),
    is_ultra_restricted: z.boolean().optional(),
  }),
});

async function approverRow(ask: Ask, id: string): Promise<Row> {
  const what = `approver ${id}`;
  if (id.startsWith('S')) {
    const { body } = await ask('usergroups.users.list', { usergroup: id });
    const users = z.object({ users: z.array(z.string()) }).safeParse(body);
    if (!users.success) return fail(what, `this user group cannot be read (${String(body['error'])}): check the id`);
    const { length } = users.data.users;
    return length > 0
      ? ok(what, length === 1 ? '1 person' : `${length} people`)
      : warn(what, 'this user group is empty: nobody of it can approve');
  }
  const { body } = await ask('users.info', { user: id });
  const parsed = userSchema.safeParse(body);
  if (!parsed.success) return fail(what, `this person cannot be read (${String(body['error'])}): check the id`);
  const { name, deleted, is_bot: isBot, is_restricted: guest, is_ultra_restricted: guest1 } = parsed.data.user;
  const never = deleted === true ? 'deactivated' : isBot === true ? 'a bot' : guest === true || guest1 === true;
  if (never === false) return ok(what, name ?? 'found');
  return warn(
    what,
    `${name ?? id} is ${never === true ? 'a guest' : never} and can approve nothing: name somebody else`,
  );
}

const channelsOf = ({ alerts }: Config): string[] => [
  ...new Set([...(alerts.channel === undefined ? [] : [alerts.channel]), ...alerts.channels_to_read]),
];

const channelSchema = z.object({
  channel: z.object({
    name: z.string().optional(),
    is_member: z.boolean().optional(),
    is_archived: z.boolean().optional(),
  }),
});

async function channelRow(ask: Ask, id: string): Promise<Row> {
  const what = `channel ${id}`;
  const { body } = await ask('conversations.info', { channel: id });
  const parsed = channelSchema.safeParse(body);
  if (!parsed.success) {
    return fail(what, `cannot be read (${String(body['error'])}): check the id; a private one needs /invite first`);
  }
  const { name = id, is_member: isMember, is_archived: isArchived } = parsed.data.channel;
  if (isArchived === true) return fail(what, `#${name} is archived: name another in reclaim.yaml`);
  return isMember === true
    ? ok(what, `member of #${name}`)
    : fail(what, `not in #${name}: type /invite @reclaim there`);
}
