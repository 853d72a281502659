import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { request } from 'node:http';
import { z } from 'zod';
import type { LocalSlack } from '../../src/standin/local-slack.ts';
import { channel, priya, sam, startApp, startWorld } from './world.ts';

let slack: LocalSlack;
beforeEach(async () => {
  slack = await startWorld();
});
afterEach(() => slack.close());

const Answer = z.looseObject({ ok: z.boolean(), error: z.string().optional(), ts: z.string().optional() });

async function call(method: string, args: Record<string, unknown> = {}, token = 'xoxb-local') {
  const body = new URLSearchParams(
    Object.entries(args).map(([k, v]): [string, string] => [k, typeof v === 'string' ? v : JSON.stringify(v)]),
  );
  const response = await fetch(slack.apiUrl + method, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body,
  });
  return { status: response.status, headers: response.headers, ...Answer.parse(await response.json()) };
}

describe("Slack's answers to what it refuses", () => {
  it.each([
    ['a wrong token', 'auth.test', {}, 'xoxb-wrong', 'invalid_auth'],
    ['no token', 'auth.test', {}, '', 'not_authed'],
    ['the app token for a bot method', 'auth.test', {}, 'xapp-local', 'not_allowed_token_type'],
    ['the bot token for a connection', 'apps.connections.open', {}, 'xoxb-local', 'not_allowed_token_type'],
    ['a method nobody has', 'chat.shout', {}, 'xoxb-local', 'unknown_method'],
    ['a channel nobody has', 'chat.postMessage', { channel: 'C404', text: 'x' }, 'xoxb-local', 'channel_not_found'],
    [
      'a channel the app is not in',
      'chat.postMessage',
      { channel: 'C0ELSE', text: 'x' },
      'xoxb-local',
      'not_in_channel',
    ],
    [
      'a private channel the app is not in',
      'conversations.info',
      { channel: 'C0PRIV' },
      'xoxb-local',
      'channel_not_found',
    ],
    ['an empty message', 'chat.postMessage', { channel, text: '' }, 'xoxb-local', 'no_text'],
    ['blocks that are no list', 'chat.postMessage', { channel, blocks: '{}' }, 'xoxb-local', 'invalid_blocks_format'],
    [
      'blocks over a limit',
      'chat.postMessage',
      { channel, blocks: [{ type: 'header' }] },
      'xoxb-local',
      'invalid_blocks',
    ],
    ['an edit of nothing', 'chat.update', { channel, ts: '1.2', text: 'x' }, 'xoxb-local', 'message_not_found'],
    ['a group nobody has', 'usergroups.users.list', { usergroup: 'S404' }, 'xoxb-local', 'no_such_subteam'],
    ['a person nobody knows', 'users.info', { user: 'U404' }, 'xoxb-local', 'user_not_found'],
    [
      'an unknown trigger',
      'views.open',
      { trigger_id: 'x', view: { type: 'modal', title: { type: 'plain_text', text: 'T' }, blocks: [] } },
      'xoxb-local',
      'invalid_trigger_id',
    ],
  ])('%s', async (_what, method, args, token, error) => {
    expect(await call(method, args, token)).toMatchObject({ status: 200, ok: false, error });
  });

  it("somebody else's message, and a text too long for an edit", async () => {
    const theirs = slack.actAs(priya).say(channel, 'mine');
    expect(await call('chat.update', { channel, ts: theirs.ts, text: 'x' })).toMatchObject({
      error: 'cant_update_message',
    });
    const own = await call('chat.postMessage', { channel, text: 'x' });
    expect(await call('chat.update', { channel, ts: own.ts, text: 'x'.repeat(4001) })).toMatchObject({
      error: 'msg_too_long',
    });
  });

  it('a scope the token does not have', async () => {
    await slack.close();
    slack = await startWorld({ scopes: ['chat:write'] });
    expect(await call('usergroups.list')).toMatchObject({ error: 'missing_scope', needed: 'usergroups:read' });
    expect((await call('auth.test')).headers.get('x-oauth-scopes')).toBe('chat:write');
  });
});

describe('a trigger', () => {
  const view = { type: 'modal' as const, title: { type: 'plain_text' as const, text: 'T' }, blocks: [] };

  it('opens one modal, once, within three seconds', async () => {
    let trigger = '';
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, body }) => {
        trigger = body.trigger_id;
        await ack();
      });
    });
    await slack.actAs(sam).command(channel, '/reclaim');
    expect(await call('views.open', { trigger_id: trigger, view })).toMatchObject({ ok: true });
    expect(await call('views.open', { trigger_id: trigger, view })).toMatchObject({ error: 'exchanged_trigger_id' });
    await slack.actAs(sam).command(channel, '/reclaim');
    const late = Date.now() + 3_100;
    while (Date.now() < late) await new Promise((r) => setTimeout(r, 50));
    expect(await call('views.open', { trigger_id: trigger, view })).toMatchObject({ error: 'expired_trigger_id' });
    await stop();
  });
});

describe('a response address', () => {
  it('is good for five answers', async () => {
    const statuses: number[] = [];
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, body }) => {
        await ack();
        for (let i = 0; i < 6; i += 1) {
          const body_ = JSON.stringify({ text: `answer ${i}` });
          const headers = { 'content-type': 'application/json' };
          statuses.push((await fetch(body.response_url, { method: 'POST', headers, body: body_ })).status);
        }
      });
    });
    await slack.actAs(priya).command(channel, '/reclaim');
    await slack.waitFor('five answers', () => slack.actAs(priya).ephemerals(channel).length === 5);
    const deadline = Date.now() + 5_000;
    while (statuses.length < 6 && Date.now() < deadline) await new Promise((r) => setTimeout(r, 10));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 404]);
    expect(slack.actAs(sam).ephemerals(channel)).toEqual([]);
    await stop();
  });
});

describe('bad days', () => {
  it('limits a flood of posts to one channel, and says how long to wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: 14 }, () => call('chat.postMessage', { channel, text: 'x' })),
    );
    const limited = answers.filter((a) => a.status === 429);
    expect(limited.length).toBeGreaterThan(0);
    expect(Number(limited[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('fails the next calls of one method and no other', async () => {
    slack.faults.add({ kind: 'server_error', count: 1, method: 'chat.postMessage' });
    expect(await call('auth.test')).toMatchObject({ status: 200 });
    expect(await call('chat.postMessage', { channel, text: 'x' })).toMatchObject({ status: 503 });
    expect(await call('chat.postMessage', { channel, text: 'x' })).toMatchObject({ status: 200 });
  });

  it('cuts the connection after the message was posted', async () => {
    slack.faults.add({ kind: 'reset_after_commit', count: 1 });
    await expect(call('chat.postMessage', { channel, text: 'once' })).rejects.toThrow('fetch failed');
    expect(slack.messages(channel).map((m) => m.text)).toEqual(['once']);
  });

  it('brings the app back after a dropped socket and after a planned reconnect', async () => {
    const heard: string[] = [];
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, command }) => {
        heard.push(command.text);
        await ack();
      });
    });
    for (const unplug of [
      () => {
        slack.sockets.drop();
      },
      () => {
        slack.sockets.refresh();
      },
    ]) {
      unplug();
      await slack.waitFor('the socket to go', () => slack.sockets.count === 0);
      await slack.waitFor('the app to come back', () => slack.sockets.count > 0);
      expect((await slack.actAs(priya).command(channel, '/reclaim again')).outcome).toBe('acked');
    }
    expect(heard).toEqual(['again', 'again']);
    await stop();
  });

  it('sends an event twice', async () => {
    const triggers: string[] = [];
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, body }) => {
        triggers.push(body.trigger_id);
        await ack();
      });
    });
    slack.faults.duplicateNext = 1;
    await slack.actAs(priya).command(channel, '/reclaim');
    const deadline = Date.now() + 5_000;
    while (triggers.length < 2 && Date.now() < deadline) await new Promise((r) => setTimeout(r, 10));
    expect(triggers).toEqual([triggers[0], triggers[0]]);
    await stop();
  });
});

describe('who may drive it', () => {
  const post = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(`${slack.url}/local/act`, { method: 'POST', headers }, (r) => {
        r.resume();
        resolve(r.statusCode);
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ do: 'say', as: priya, channel, text: 'hi' }));
    });
  const json = { 'content-type': 'application/json' };

  it('scripts on this machine, but no page from elsewhere', async () => {
    expect(await post(json)).toBe(200);
    expect(await post({ ...json, origin: 'https://evil.example' })).toBe(403);
    expect(await post({ ...json, host: 'evil.example' })).toBe(403);
    expect(await post({ 'content-type': 'text/plain' })).toBe(405);
    expect(slack.messages(channel).map((m) => m.text)).toEqual(['hi']);
  });
});
