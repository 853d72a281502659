/**
 * Load: a thousand commands for two hundred hosts, fifty approvers who all click, ten thousand webhooks at once. Memory stays
 * bounded, every command, click and delivery gets an answer, and no host waits for another's second turn.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alertReceiver } from '../src/alerts/receiver.ts';
import { buttonLabels } from '../src/demo/transcript.ts';
import { startHttp } from '../src/http.ts';
import { startGateway } from '../src/slack/gateway.ts';
import { type LocalSlack, startLocalSlack } from '../src/standin/local-slack.ts';
import type { Ack } from '../src/standin/sockets.ts';
import { type FleetWorld, openFleet } from '../test/alerts/fleet-world.ts';
import { redisServer } from '../test/requests/servers.ts';
import { type Chance, type Part, rounds, Tally, type Told, until } from './part.ts';

const token = 'a-token-of-the-webhook';
/** Far above what it takes, far below what a leak of ten thousand deliveries would be. */
const memoryMiB = 1_200;

interface World {
  readonly slack: LocalSlack;
  readonly fleet: FleetWorld;
  readonly hosts: readonly string[];
  readonly approvers: readonly string[];
  readonly channels: readonly string[];
  readonly seen: Map<string, number>;
  readonly chance: Chance;
  readonly tally: Tally;
  readonly breach: (what: string) => void;
}

const channelOf = ({ channels }: World, n: number): string => channels[n % channels.length] ?? '';

/** Several commands for each host: each gets a card or is told of the one there is. */
async function commands(world: World, count: number): Promise<void> {
  const { slack, hosts, tally, breach, fleet, seen } = world;
  // Twenty people, each of whom types the next when the last was answered.
  const typing = [...Array(count).keys()].values();
  const acks: Ack[] = [];
  const person = async () => {
    for (const n of typing) {
      const host = n % hosts.length;
      acks.push(await slack.actAs('U0ANA').command(channelOf(world, host), `/reclaim ${hosts[host] ?? ''}`));
    }
  };
  await Promise.all(Array.from({ length: 20 }, person));
  const { store } = fleet.deps;
  const acked = acks.filter((ack) => ack.outcome === 'acked').length;
  tally.add('commands', count);
  tally.add('commands acknowledged within three seconds', acked);
  const told = () => slack.actAs('U0ANA').ephemerals().length;
  const answered = async () => (await store.list({ limit: 10_000 })).length + told();
  if (!(await until(async () => (await answered()) >= count, 120_000, 250))) {
    breach(`${count} commands, ${await answered()} answers`);
  }
  const looked = async () => (await store.list({ states: ['pending'], limit: 10_000 })).length >= hosts.length;
  if (!(await until(looked, 240_000, 250))) breach('not every host was looked at');
  for (const host of hosts) if (seen.get(host) !== 1) breach(`${host} was looked at ${seen.get(host) ?? 0} times`);
  tally.add('hosts looked at, each once', seen.size);
}

/** Every approver clicks on every card; as many as are needed count, and each of the others is told why not. */
async function clicks(world: World): Promise<void> {
  const { slack, approvers, channels, tally, breach, fleet, hosts, chance } = world;
  const { store } = fleet.deps;
  const cards = () =>
    channels.flatMap((c) => slack.messages(c)).filter((m) => buttonLabels(m).some((l) => l.startsWith('Approve')));
  if (!(await until(() => cards().length >= hosts.length, 240_000, 250)))
    breach(`${cards().length} cards of ${hosts.length}`);
  const told = () => approvers.reduce((sum, who) => sum + slack.actAs(who).ephemerals().length, 0);
  const before = told();
  const some = cards().slice(0, 20);
  await Promise.all(
    some.flatMap((card) =>
      approvers
        .filter(() => chance.yes(0.9))
        .map(async (who) => {
          tally.add('clicks');
          await slack
            .actAs(who)
            .click(card, 'Approve', { confirm: true })
            .catch(() => {
              tally.add('clicks that found no button any more');
            });
        }),
    ),
  );
  const counted = async () => {
    const records = await store.list({ limit: 10_000 });
    return records.reduce((sum, r) => sum + r.votes.length, 0);
  };
  const sum = async () => (await counted()) + told() - before + tally.of('clicks that found no button any more');
  if (!(await until(async () => (await sum()) >= tally.of('clicks'), 120_000, 250))) {
    breach(`${tally.of('clicks')} clicks, ${await sum()} answers`);
  }
  for (const record of await store.list({ limit: 10_000 })) {
    if (record.votes.length > record.required)
      breach(`${record.id}: ${record.votes.length} votes of ${record.required}`);
  }
  tally.add('clicks that counted', await counted());
}

async function storm(world: World, count: number): Promise<void> {
  const { fleet, hosts, tally, breach } = world;
  const { config } = fleet.deps;
  const env = { ...config.env, ALERT_WEBHOOK_TOKEN: token };
  const alerts = { ...config.alerts, channel: channelOf(world, 0) };
  const parts = { ...fleet.deps, config: { ...config, env, alerts } };
  const quiet = { ready: () => Promise.resolve({}), metrics: () => Promise.resolve('') };
  const http = await startHttp({ host: '127.0.0.1', port: 0, ...quiet, alerts: alertReceiver(parts) });
  const post = async (n: number) => {
    const labels = { alertname: 'LowMemory', instance: hosts[n % hosts.length] };
    const body = JSON.stringify({
      ...{ version: '4', status: 'firing', receiver: 'r', groupKey: String(n), commonLabels: {} },
      alerts: [{ status: 'firing', labels, annotations: {} }],
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`http://127.0.0.1:${http.port}/alerts/alertmanager`, { method: 'POST', headers, body });
    const words = await answer.text();
    tally.add(`webhooks answered with ${answer.status}`);
    if (![200, 202, 429].includes(answer.status)) breach(`a webhook was answered with ${answer.status} ${words}`);
    if (answer.status === 429 && !words.includes('Try again in')) breach(`429 without a word: ${words}`);
  };
  for (let n = 0; n < count; n += 200)
    await Promise.all(Array.from({ length: Math.min(200, count - n) }, (_, i) => post(n + i)));
  tally.add('webhooks', count);
  await http.close();
}

async function play(chance: Chance, scale: number, tally: Tally, breach: (what: string) => void): Promise<void> {
  const hosts = Array.from({ length: 40 * scale }, (_, n) => `box-${n}`);
  const approvers = Array.from({ length: 10 * scale }, (_, n) => `U0BOSS${n}`);
  const channels = Array.from({ length: 20 * scale }, (_, n) => `C0BOX${n}`);
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-load-'));
  const redis = await redisServer();
  const slack = await startLocalSlack({
    people: ['U0ANA', ...approvers].map((id) => ({ id, name: id.toLowerCase(), realName: id })),
    channels: channels.map((id) => ({ id, name: id.toLowerCase() })),
    ...{ botToken: 'xoxb-local', appToken: 'xapp-local', rateLimits: false },
  });
  const env = { SLACK_BOT_TOKEN: 'xoxb-local', SLACK_APP_TOKEN: 'xapp-local', SLACK_API_URL: slack.apiUrl };
  const seen = new Map<string, number>();
  const fleet = await openFleet({
    ...{ queueUrl: redis.url, folder, hosts, env, collectMs: 20, approvers, kindOf: () => 'leftover' },
    seen: (host) => seen.set(host, (seen.get(host) ?? 0) + 1),
  });
  const gateway = await startGateway(fleet.deps, {
    ...{ botToken: 'xoxb-local', appToken: 'xapp-local', apiUrl: slack.apiUrl },
    paint: (svg) => Promise.resolve(Buffer.from(svg)),
  });
  const timer = setInterval(() => {
    tally.most('MiB of memory at most', Math.round(process.memoryUsage.rss() / 2 ** 20));
  }, 200);
  try {
    await fleet.work();
    const world = { slack, fleet, hosts, approvers, channels, seen, chance, tally, breach };
    await commands(world, 200 * scale);
    await clicks(world);
    await storm(world, 2_000 * scale);
    if (tally.of('MiB of memory at most') > memoryMiB) breach(`${tally.of('MiB of memory at most')} MiB`);
  } finally {
    clearInterval(timer);
    await gateway.stop();
    await fleet.close();
    await slack.close();
    await redis.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const load: Part = {
  name: 'load',
  about: 'commands, clicks and webhooks by the thousand',
  short: { seconds: 1, inputs: 1 },
  long: { seconds: 1, inputs: 5 },
  async run(seed, { seconds, inputs }, told: Told) {
    const tally = new Tally();
    await rounds(seed, seconds, async (at, chance) => {
      told.at(at, 'the crowd');
      await play(chance, inputs, tally, (what) => {
        told.breach(at, what);
      });
    });
    return tally.counts();
  },
};
