/** `reclaim doctor` against a real box over ssh, a real Redis and the local Slack: each row, with its fix. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { stringify } from 'yaml';
import { cli } from '../../src/cli/cli.ts';
import { startDemoBox, type DemoBox } from '../../src/demo/box.ts';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import { freePort, has, redisServer, type RedisServer } from '../requests/servers.ts';

const rowsSchema = z.object({
  rows: z.array(z.object({ what: z.string(), state: z.enum(['ok', 'warn', 'fail']), detail: z.string() })),
});
type Rows = z.infer<typeof rowsSchema>['rows'];

let folder: string, box: DemoBox, slack: LocalSlack;
const bo = { id: 'U0BO', name: 'bo', realName: 'Bo' };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reclaim-doctor-'));
  box = await startDemoBox({ folder });
  slack = await startLocalSlack({
    people: [bo],
    channels: [
      { id: 'C0ALERTS', name: 'gpu-alerts' },
      { id: 'C0OTHER', name: 'other', botIsMember: false },
    ],
    usergroups: [{ id: 'S0GPU', handle: 'gpu-admins', name: 'GPU admins', users: ['U0BO'] }],
    botToken: 'xoxb-local',
    appToken: 'xapp-local',
  });
});
afterAll(async () => {
  await slack.close();
  await box.close();
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  writeFileSync(join(folder, 'known_hosts'), `${box.knownHostsLine}\n`);
});

const tokens = () => ({
  SLACK_API_URL: slack.apiUrl,
  SLACK_BOT_TOKEN: 'xoxb-local',
  SLACK_APP_TOKEN: 'xapp-local',
  RECLAIM_DATA_DIR: join(folder, 'data'),
  // Refused at once: most rows do not depend on the store.
  QUEUE_URL: 'postgres://127.0.0.1:1/none',
});

async function doctor(env: Record<string, string>, yaml: object = {}): Promise<{ code: number; rows: Rows }> {
  writeFileSync(join(folder, 'reclaim.yaml'), stringify(yaml));
  let out = '';
  const code = await cli(['doctor', '--json'], {
    out: (text) => void (out += text),
    err: () => undefined,
    ask: () => Promise.resolve(null),
    env,
    cwd: folder,
    columns: 100,
    color: false,
    signal: new AbortController().signal,
  });
  return { code, rows: rowsSchema.parse(JSON.parse(out)).rows };
}

const row = (rows: Rows, what: string): string => {
  const found = rows.find((r) => r.what === what);
  return found === undefined ? 'no such row' : `${found.state}: ${found.detail}`;
};

const host = (more: object = {}) => ({
  address: '127.0.0.1',
  port: box.port,
  user: box.user,
  identity: box.identityFile,
  knownHosts: [join(folder, 'known_hosts')],
  privilege: process.getuid?.() === 0 ? 'root' : 'none',
  ...more,
});

describe('reclaim doctor', () => {
  it('asks Slack about tokens, scopes, socket, clock, approvers and channels', async () => {
    const { rows } = await doctor(tokens(), {
      policy: { approvers: ['U0BO', 'S0GPU'] },
      alerts: { channel: 'C0ALERTS' },
    });
    expect(row(rows, 'store')).toMatch(/^fail: postgres:\/\/127\.0\.0\.1:1\/none: /);
    expect(row(rows, 'Slack')).toMatch(/^ok: signed in as /);
    expect(row(rows, 'Slack scopes')).toMatch(/^ok: all \d+ granted/);
    expect(row(rows, 'Slack socket')).toBe('ok: may be opened');
    expect(row(rows, 'clock')).toMatch(/^ok: /);
    expect(row(rows, 'approver U0BO')).toMatch(/^ok: bo/);
    expect(row(rows, 'approver S0GPU')).toBe('ok: 1 person');
    expect(row(rows, 'channel C0ALERTS')).toBe('ok: member of #gpu-alerts');
  });

  it('says of each fault in Slack what to do, and fails', async () => {
    const refused = await doctor({ ...tokens(), SLACK_BOT_TOKEN: 'xoxb-revoked' });
    expect(refused.code).toBe(1);
    expect(row(refused.rows, 'Slack')).toMatch(
      /^fail: SLACK_BOT_TOKEN is refused \(invalid_auth\)\. Copy the bot token/,
    );

    const { code, rows } = await doctor(
      { ...tokens(), SLACK_APP_TOKEN: 'xapp-wrong' },
      { policy: { approvers: ['U0NOBODY', 'S0NONE'] }, alerts: { channel: 'C0OTHER', channels_to_read: ['C0NONE'] } },
    );
    expect(code).toBe(1);
    expect(row(rows, 'Slack socket')).toMatch(/^fail: SLACK_APP_TOKEN is refused \(.*connections:write/);
    expect(row(rows, 'approver U0NOBODY')).toMatch(
      /^fail: this person cannot be read \(user_not_found\): check the id/,
    );
    expect(row(rows, 'approver S0NONE')).toMatch(/^fail: this user group cannot be read/);
    expect(row(rows, 'channel C0OTHER')).toMatch(/^fail: not in #other: type \/invite/);
    expect(row(rows, 'channel C0NONE')).toMatch(/^fail: cannot be read \(channel_not_found\)/);

    const away = await doctor({ ...tokens(), SLACK_API_URL: `http://127.0.0.1:${await freePort()}/api/` });
    expect(row(away.rows, 'Slack')).toMatch(/^fail: http:\S+ gave no answer .* Check the network/);
  });

  it('finds a scope that was not granted', async () => {
    const poor = await startLocalSlack({
      people: [bo],
      channels: [],
      botToken: 'xoxb-local',
      appToken: 'xapp-local',
      scopes: ['commands', 'chat:write'],
    });
    try {
      const { rows } = await doctor({ ...tokens(), SLACK_API_URL: poor.apiUrl });
      expect(row(rows, 'Slack scopes')).toMatch(/^fail: missing: .*users:read.*install the app again/);
    } finally {
      await poor.close();
    }
  });

  it('looks at each host: the road, the rights, the tools', async () => {
    const { rows } = await doctor(tokens(), {
      hosts: { 'gpu-box-3': host(), stranger: host({ knownHosts: [join(folder, 'none')] }) },
    });
    expect(row(rows, 'host gpu-box-3')).toMatch(/^ok: \S+@127\.0\.0\.1:\d+ answers, with the key it is known by/);
    expect(row(rows, 'host gpu-box-3 tools')).toMatch(/^ok: all there/);
    expect(row(rows, 'host gpu-box-3 rights')).toMatch(/^(ok: acts as root|warn: privilege is none)/);
    expect(row(rows, 'host stranger')).toMatch(/^fail: .*reclaim trust stranger/);
  });

  it('says that nothing is configured yet, and that it is no failure', async () => {
    const { code, rows } = await doctor({ RECLAIM_DATA_DIR: join(folder, 'data') });
    expect(code).toBe(0);
    expect(row(rows, 'hosts')).toMatch(/^warn: none are named: reclaim init/);
    expect(row(rows, 'approvers')).toMatch(/^warn: no approver is configured/);
    expect(row(rows, 'Slack')).toMatch(/^warn: SLACK_BOT_TOKEN is not set/);
  });

  const mayRun = has('redis-server');
  it.skipIf(!mayRun)('tells what Redis could lose, and how to mend it', async () => {
    const redis: RedisServer = await redisServer();
    try {
      const { rows } = await doctor({ RECLAIM_DATA_DIR: join(folder, 'data'), QUEUE_URL: redis.url });
      expect(row(rows, 'store')).toMatch(/^ok: /);
      expect(row(rows, 'Redis version')).toMatch(/^ok: \d+\.\d+/);
      expect(row(rows, 'Redis eviction')).toMatch(/^ok: noeviction|^fail: .*config set maxmemory-policy noeviction/);
      expect(row(rows, 'Redis persistence')).toMatch(/^ok: append-only|^warn: .*config set appendonly yes/);
    } finally {
      await redis.remove();
    }
  });
});
