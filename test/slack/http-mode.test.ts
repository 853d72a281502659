/** The bot over HTTP: the same handlers behind a signature, a window against replays, a limit of size and the same memory. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startHttp, type HttpServer } from '../../src/http.ts';
import { requireTokens, startGateway, type Gateway } from '../../src/slack/gateway.ts';
import { requestFor, signed } from '../../src/standin/request-url.ts';
import { systemClock } from '../../src/system-clock.ts';
import { channel, priya, sam } from '../standin/world.ts';
import { openOffice, type Office } from './office.ts';

const signingSecret = 'a-secret-of-the-app';
let office: Office, http: HttpServer, gateway: Gateway, url: string;

beforeAll(async () => {
  office = await openOffice(systemClock, { hosts: ['box-1', 'box-2', 'box-3'], slack: { rateLimits: false } });
  const { SLACK_BOT_TOKEN: botToken, SLACK_API_URL: apiUrl } = office.deps.config.env;
  gateway = await startGateway(office.deps, { botToken, appToken: undefined, signingSecret, apiUrl });
  http = await startHttp({
    host: '127.0.0.1',
    port: 0,
    ready: () => Promise.resolve({}),
    metrics: () => Promise.resolve(''),
    slack: () => gateway.listener,
  });
  url = `http://127.0.0.1:${http.port}/slack/events`;
  office.slack.sockets.requestUrl = { url, signingSecret };
}, 60_000);
afterEach(() => {
  office.slack.faults.clear();
});
afterAll(async () => {
  await gateway.stop();
  await http.close();
  await office.close();
});

/** A command as Slack sends it, by whoever knows the secret. */
const command = (text: string, secret = signingSecret, atSeconds = Date.now() / 1000) => {
  const fields = { command: '/reclaim', text, trigger_id: `t.${text}`, user_id: priya, channel_id: channel };
  const { body } = requestFor('slash_commands', { ...fields, team_id: 'T0LOCAL' }, secret);
  return signed(body, 'application/x-www-form-urlencoded', secret, atSeconds);
};
const send = async (request: { body: string; headers: Record<string, string> }) =>
  (await fetch(url, { method: 'POST', ...request })).status;

describe('over HTTP', () => {
  it('takes a command, opens a dialog and takes a click, without a socket', async () => {
    expect(office.slack.sockets.count).toBe(0);
    const ack = await office.slack.actAs(priya).command(channel, '/reclaim box-1');
    expect(ack.outcome).toBe('acked');
    const card = await office.slack.waitFor('the card', () =>
      office.slack.messages(channel).find((m) => m.text.startsWith('box-1:')),
    );
    await office.slack.actAs(sam).click(card, 'Cancel');
    await office.slack.waitFor('the refusal', () => office.slack.actAs(sam).ephemerals().length > 0);
    await office.slack.actAs(priya).shortcut('reclaim_look_at', card);
    const dialog = await office.slack.waitFor('the dialog', () => office.slack.actAs(priya).modal());
    await office.slack.actAs(priya).close(dialog);
    await office.slack.actAs(priya).openHome();
    await office.slack.waitFor('Home', () => office.slack.actAs(priya).home());
    expect(await gateway.health()).toMatchObject({ ok: true, over: 'http', openSockets: 0 });
  });

  it.each([
    ['forged', () => command('box-2', 'not-the-secret')],
    ['signed for another body', () => ({ ...command('box-2'), body: command('box-3').body })],
    ['recorded six minutes ago', () => command('box-2', signingSecret, Date.now() / 1000 - 360)],
    ['dated six minutes ahead', () => command('box-2', signingSecret, Date.now() / 1000 + 360)],
    ['without a signature', () => ({ ...command('box-2'), headers: { 'content-type': 'application/json' } })],
    [
      'with a time that is none',
      () => ({ ...command('box-2'), headers: { ...command('box-2').headers, 'x-slack-request-timestamp': 'now' } }),
    ],
    [
      'a harmless check with a command smuggled in',
      () => {
        const { body } = command('box-2');
        return { body: `${body}&ssl_check=1`, headers: { 'content-type': 'application/x-www-form-urlencoded' } };
      },
    ],
  ])('does nothing for a request that is %s', async (name, request) => {
    const status = await send(request());
    expect(status).toBe(name.startsWith('a harmless') ? 200 : 401);
    expect(await office.store.openFor('box-2')).toBeNull();
    expect(await office.store.openFor('box-3')).toBeNull();
  });

  it('refuses what is larger than anything Slack sends, and does not read it', async () => {
    expect(await send(signed('x'.repeat(1024 * 1024 + 1), 'application/json', signingSecret))).toBe(413);
  });

  it('takes a request that is replayed within the window for what it is: the same one', async () => {
    const recorded = command('box-2');
    expect(await send(recorded)).toBe(200);
    await expect.poll(async () => (await office.store.openFor('box-2'))?.state).toBe('draft');
    const before = office.slack.actAs(priya).ephemerals().length;
    expect(await send(recorded)).toBe(200);
    expect(await send({ ...recorded, headers: { ...recorded.headers, 'x-slack-retry-num': '1' } })).toBe(200);
    // A second request for a busy host would be told so; a copy is not.
    await office.slack.actAs(priya).command(channel, '/reclaim help');
    await office.slack.waitFor('the help', () => office.slack.actAs(priya).ephemerals().length > before);
    const said = office.slack.actAs(priya).ephemerals().slice(before);
    expect(said.map((m) => m.text.includes('already has a request'))).toEqual([false]);
  });

  it('counts an event that Slack sends again once', async () => {
    office.slack.faults.duplicateNext = 1;
    let published = 0;
    const stop = office.slack.onChange((change) => {
      if (change.type === 'home') published += 1;
    });
    await office.slack.actAs(sam).openHome();
    await office.slack.waitFor('Home', () => office.slack.actAs(sam).home());
    await office.slack.actAs(priya).openHome();
    await office.slack.waitFor('the second Home', () => published >= 2);
    stop();
    expect(published).toBe(2);
  });

  it('answers only POST with a signature, and is not there in Socket Mode', async () => {
    expect((await fetch(url)).status).toBe(404);
    const quiet = await startHttp({
      host: '127.0.0.1',
      port: 0,
      ready: () => Promise.resolve({}),
      metrics: () => Promise.resolve(''),
    });
    expect((await fetch(`http://127.0.0.1:${quiet.port}/slack/events`, { method: 'POST', body: '{}' })).status).toBe(
      404,
    );
    await quiet.close();
  });

  it('is chosen by what is set: an app token means sockets, a signing secret alone means HTTP', () => {
    const tokens = { botToken: 'xoxb-1', appToken: 'xapp-1', signingSecret, apiUrl: undefined };
    expect(requireTokens(tokens).way).toEqual({ appToken: 'xapp-1' });
    expect(requireTokens({ ...tokens, appToken: undefined }).way).toEqual({ signingSecret });
    expect(() => requireTokens({ ...tokens, appToken: undefined, signingSecret: undefined })).toThrow(
      /SLACK_APP_TOKEN/,
    );
  });
});
