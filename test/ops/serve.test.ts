/** One real process at a time: a new configuration while it runs, a second deployment on the same Slack app, an end in order. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import type { Store } from '../../src/requests/store.ts';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import { systemClock } from '../../src/system-clock.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';
import { metricsOf, serveFolder, type Folder, type Serving } from './processes.ts';

const channel = 'C0GPU';

describe.skipIf(!has('redis-server'))('a serving process', { timeout: 120_000 }, () => {
  const folder: Folder = serveFolder();
  const box = { address: '127.0.0.1', port: 1 };
  let redis: RedisServer, slack: LocalSlack, store: Store, bot: Serving;
  const env = (url: string) => ({
    QUEUE_URL: url,
    SLACK_BOT_TOKEN: 'xoxb-ops',
    SLACK_APP_TOKEN: 'xapp-ops',
    SLACK_API_URL: slack.apiUrl,
  });

  beforeAll(async () => {
    redis = await redisServer();
    store = await openRedisStore({ url: redis.url, clock: systemClock });
    slack = await startLocalSlack({
      people: [{ id: 'U0ANA', name: 'ana', realName: 'Ana' }],
      channels: [{ id: channel, name: 'gpu-boxes' }],
      botToken: 'xoxb-ops',
      appToken: 'xapp-ops',
    });
    folder.configure({ hosts: { first: box }, policy: { approvers: ['U0ANA'] } });
    bot = await folder.serve('all', env(redis.url));
  }, 120_000);
  afterAll(async () => {
    await folder.remove();
    await store.close();
    await slack.close();
    await redis.remove();
  });

  async function policyOfNewRequest(host: string): Promise<string> {
    await slack.actAs('U0ANA').command(channel, `/reclaim ${host}`);
    await slack.waitFor('the look to fail', () => slack.messages(channel).find((m) => m.text.includes(`${host}: `)));
    return (await store.list({ host, limit: 1 }))[0]!.policyVersion;
  }
  const home = async (expected: RegExp) => {
    await slack.actAs('U0ANA').openHome();
    return await slack.waitFor('the Home tab', () => {
      const view = JSON.stringify(slack.actAs('U0ANA').home()?.body ?? {});
      return expected.test(view) ? view : undefined;
    });
  };

  it('puts a new configuration in force at SIGHUP: hosts, policy, and what requests record', async () => {
    const before = await policyOfNewRequest('first');
    folder.configure({ hosts: { first: box, second: box }, policy: { approvers: ['U0ANA'], grace: '3s' } });
    bot.child.kill('SIGHUP');
    const line = await bot.logged((said) => said['msg'] === 'the configuration was reloaded');
    expect(line).toMatchObject({ level: 'info', hosts: 2 });
    const after = await policyOfNewRequest('second');
    expect(after).toBe(line['policy']);
    expect(after).not.toBe(before);
    expect(await home(/second/)).not.toContain('Attention');
  });

  it('keeps the old one when the new one is faulty, and says so in the log, on the Home tab and in the metrics', async () => {
    const inForce = (await store.list({ host: 'second', limit: 1 }))[0]!.policyVersion;
    folder.configure({ hosts: { third: box }, policy: { aprovers: ['U0ANA'] } });
    bot.child.kill('SIGHUP');
    const line = await bot.logged((said) => String(said['msg']).includes('was refused'));
    expect(line['msg']).toMatch(/old configuration is still in force.*did you mean \\?"approvers/s);
    expect(line).toMatchObject({ level: 'error', policy: inForce });
    expect(await home(/Attention/)).toMatch(/still in force.*second/s);
    const metrics = await metricsOf(bot);
    expect(metrics.get('reclaim_config_reloads_total{result="refused"}')).toBe(1);
    expect(metrics.get('reclaim_config_reloads_total{result="done"}')).toBe(1);
    folder.configure({ hosts: { first: box, second: box }, policy: { approvers: ['U0ANA'] } });
    bot.child.kill('SIGHUP');
    await expect.poll(() => metricsOf(bot).then((m) => m.get('reclaim_config_reloads_total{result="done"}'))).toBe(2);
    await home(/^(?!.*Attention).*second/s);
  });

  it('notices a second deployment on the same Slack app, and names itself apart in logs and metrics', async () => {
    const stranger = await folder.serve('gateway', env(`${redis.url}/5`));
    const line = await stranger.logged((said) => String(said['msg']).includes('a second deployment'));
    expect(line).toMatchObject({ level: 'warn', connections: 4, ours: 2 });
    const [theirs, mine] = [await metricsOf(stranger), await metricsOf(bot)];
    expect(theirs.get('reclaim_slack_foreign_sockets')).toBe(2);
    const deployment = (metrics: Map<string, number>) =>
      /deployment="(\w+)"/.exec([...metrics.keys()].find((key) => key.startsWith('reclaim_build_info'))!)?.[1];
    expect(deployment(theirs)).not.toBe(deployment(mine));
    expect(stranger.log.every((said) => said['instance'] === line['instance'])).toBe(true);
    expect(bot.log.every((said) => said['instance'] !== line['instance'])).toBe(true);
    expect(await stranger.end('SIGTERM')).toBe(0);
  });

  it('is not ready within 10 s of a cut Socket Mode connection, says so of the socket, and is ready again when it is back', async () => {
    const ready = async (): Promise<unknown> => {
      const answer = await fetch(`${bot.url}/readyz`);
      return { status: answer.status, said: await answer.json() };
    };
    await expect.poll(ready, { timeout: 20_000 }).toMatchObject({ status: 200, said: { ready: true } });
    slack.sockets.refusing = true;
    slack.sockets.drop();
    const socket = expect.stringMatching(/^0 sockets open/) as string;
    const others = { store: { ok: true }, queue: { ok: true } };
    await expect.poll(ready, { timeout: 10_000 }).toMatchObject({
      status: 503,
      said: { ready: false, checks: { ...others, slack: { ok: false, detail: socket } } },
    });
    expect((await fetch(`${bot.url}/healthz`)).status).toBe(200);
    slack.sockets.refusing = false;
    await expect.poll(ready, { timeout: 60_000 }).toMatchObject({ status: 200 });
    const ack = await slack.actAs('U0ANA').command(channel, '/reclaim status');
    expect(ack.outcome).toBe('acked');
  });

  it('ends in order at SIGTERM, and is gone from the list of processes', async () => {
    expect(await store.processes()).toHaveLength(1);
    expect(await bot.end('SIGTERM')).toBe(0);
    expect(await store.processes()).toEqual([]);
  });
});
