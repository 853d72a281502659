/**
 * A team's deployment on a bad day: two gateways and three workers, each a process of its own, on one real Redis, while
 * people ask and approve; every process is restarted in turn and some are killed outright. Only Slack and the boxes are
 * stand-ins.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { buttonLabels, messageText } from '../../src/demo/transcript.ts';
import { headAfter } from '../../src/requests/backup.ts';
import { emptyChain } from '../../src/requests/chain.ts';
import { isOpen, openStates } from '../../src/requests/state.ts';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import type { Store } from '../../src/requests/store.ts';
import { totalsOf } from '../../src/requests/totals.ts';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import type { Message } from '../../src/standin/model.ts';
import { systemClock } from '../../src/system-clock.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';
import { paperBoxes, type PaperBoxes } from './paper-boxes.ts';
import { metricsOf, serveFolder, type Folder, type Serving } from './processes.ts';

const channel = 'C0GPU';
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const hosts = Array.from({ length: 8 }, (_, n) => `gpu-box-${n + 1}`);
/** Names of the five places; whoever sits there changes. */
const places = ['gateway', 'gateway', 'worker', 'worker', 'worker'] as const;

/** mulberry32: the same seed, the same day. */
function random(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const reclaimMetadata = z.object({ event_payload: z.object({ key: z.string() }) });
const isCard = (m: Message) => m.botId !== undefined && buttonLabels(m).some((label) => label.startsWith('Approve'));

describe.skipIf(!has('redis-server'))('two gateways and three workers on one Redis', () => {
  const folder: Folder = serveFolder();
  const sitting: Serving[] = [];
  let redis: RedisServer, slack: LocalSlack, boxes: PaperBoxes, store: Store;

  const sit = async (place: number): Promise<void> => {
    const role = places[place]!;
    const tokens = { SLACK_BOT_TOKEN: 'xoxb-ops', SLACK_APP_TOKEN: 'xapp-ops', SLACK_API_URL: slack.apiUrl };
    sitting[place] = await folder.serve(role, { QUEUE_URL: redis.url, ...(role === 'gateway' ? tokens : {}) });
  };

  beforeAll(async () => {
    console.info(`rolling restart: SEED=${seed}`);
    boxes = await paperBoxes(150);
    redis = await redisServer();
    store = await openRedisStore({ url: redis.url, clock: systemClock });
    slack = await startLocalSlack({
      people: ['ana', 'bo', 'chen'].map((name) => ({ id: `U0${name.toUpperCase()}`, name, realName: name })),
      channels: [{ id: channel, name: 'gpu-boxes' }],
      botToken: 'xoxb-ops',
      appToken: 'xapp-ops',
      rateLimits: false,
    });
    writeFileSync(join(folder.path, 'known_hosts'), boxes.knownHostsLine);
    writeFileSync(join(folder.path, 'key'), boxes.privateKey, { mode: 0o600 });
    const host = (user: string) => ({ address: '127.0.0.1', port: boxes.port, user, privilege: 'root' });
    folder.configure({
      defaults: { knownHosts: ['known_hosts'], identity: 'key' },
      hosts: Object.fromEntries(hosts.map((name) => [name, host(name)])),
      policy: { approvers: ['U0BO', 'U0CHEN'], required: { kill_others: 2 }, grace: '1s', unused_ttl: '5m' },
    });
    for (const name of hosts) boxes.box(name).litter();
    await Promise.all(places.map((_, place) => sit(place)));
  }, 120_000);

  afterAll(async () => {
    await folder.remove();
    await store.close();
    await slack.close();
    await redis.remove();
    await boxes.close();
  });

  /** People who ask again when Slack says that nobody answered, and click until the card has changed. */
  async function ask(host: string): Promise<void> {
    for (;;) {
      const ack = await slack.actAs('U0ANA').command(channel, `/reclaim ${host}`);
      if (ack.outcome === 'acked' && (await store.list({ host, limit: 1 })).length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  function approveWhatCan(): () => void {
    const busy = new Set<string>();
    const click = async (card: Message): Promise<void> => {
      const who = /1 of 2/.test(messageText(card)) ? 'U0CHEN' : 'U0BO';
      if (busy.has(card.ts)) return;
      busy.add(card.ts);
      // Lost when its gateway dies at that moment; then the button is still there, and the next round clicks again.
      await slack
        .actAs(who)
        .click(card, 'Approve', { confirm: true })
        .catch(() => undefined);
      busy.delete(card.ts);
    };
    const timer = setInterval(() => {
      for (const card of slack.messages(channel).filter(isCard)) void click(card);
    }, 300);
    return () => {
      clearInterval(timer);
    };
  }

  /** Restarts each place once, and kills a place at random before each restart. */
  async function badDay(): Promise<{ drained: (number | null)[]; killed: string[] }> {
    const next = random(seed);
    const drained: (number | null)[] = [];
    const killed: string[] = [];
    for (const place of places.keys()) {
      const victim = Math.floor(next() * places.length);
      const gone = next() < 0.7 && victim !== place ? sitting[victim] : undefined;
      await gone?.end('SIGKILL');
      if (gone !== undefined) killed.push(gone.role);
      drained.push(await sitting[place]!.end('SIGTERM'));
      await Promise.all([...(gone === undefined ? [] : [sit(victim)]), sit(place)]);
    }
    return { drained, killed };
  }

  it('loses nothing and does nothing twice while each is restarted in turn and some are killed', async () => {
    const stop = approveWhatCan();
    const asking = (async () => {
      for (const host of hosts) {
        await ask(host);
        await new Promise((resolve) => setTimeout(resolve, 400));
      }
    })();
    const { drained, killed } = await badDay();
    await asking;
    console.info(`killed outright: ${killed.join(', ') || 'nobody'}`);
    expect(drained).toEqual([0, 0, 0, 0, 0]);
    await slack.waitFor(
      'every box to be clean and every card to say so',
      () =>
        hosts.every((host) => boxes.box(host).alive.size === 0) && slack.messages(channel).filter(isCard).length === 0,
      { timeoutMs: 180_000 },
    );
    for (;;) {
      const open = await store.list({ states: openStates, limit: 100 });
      if (open.length === 0 && (await store.undelivered()).count === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    stop();

    // Nothing twice: each process was signalled once, each request has one card, one outcome and one receipt.
    for (const host of hosts) expect(boxes.box(host).signalled.sort()).toEqual([5000, 5001, 5002]);
    const records = await store.list({ limit: 1_000 });
    expect(records.filter((r) => isOpen(r.state))).toEqual([]);
    const posted = slack.messages(channel).flatMap((m) => {
      const key = reclaimMetadata.safeParse(m.metadata).data?.event_payload.key;
      return key === undefined ? [] : [key];
    });
    expect(posted.length).toBe(new Set(posted).size);
    // Nothing lost: every request is on a card, and the card shows how it ended.
    for (const record of records) expect(posted).toContain(`${record.id}.card`);
    for (const host of hosts) expect(records.some((r) => r.host === host && r.run !== undefined)).toBe(true);
    // Who was killed while it acted leaves `unknown`, and the box was looked at anew.
    for (const lost of records.filter((r) => r.state === 'unknown')) {
      expect(records.some((r) => r.host === lost.host && r.createdAt > lost.createdAt)).toBe(true);
    }
    const events = await store.events({ limit: 100_000 });
    expect(headAfter(emptyChain, { events }).to.seq).toBe(events.length);
  }, 300_000);

  it('tells the same numbers at every process, and they are those of the store', async () => {
    const [records, events] = [await store.list({ limit: 1_000 }), await store.events({ limit: 100_000 })];
    const totals = totalsOf(records, events);
    expect(await store.totals()).toEqual(totals);
    const texts = await Promise.all(sitting.map((serving) => metricsOf(serving)));
    for (const metrics of texts) {
      expect(metrics.get('reclaim_requests_asked_total')).toBe(records.length);
      const succeeded = records.filter((r) => r.state === 'succeeded').length;
      expect(metrics.get('reclaim_requests_ended_total{state="succeeded"}')).toBe(succeeded);
      const gave = records.flatMap((r) => r.run?.report?.steps ?? []).filter((s) => s.action === 'kill');
      const gaveBytes = gave.reduce((sum, s) => sum + Math.max(0, s.measured?.freeKiB ?? 0), 0) * 1024;
      expect(metrics.get('reclaim_given_back_bytes_total{action="kill"}')).toBe(gaveBytes);
      const approvals = events.filter((e) => e.what === 'approved').length;
      expect(metrics.get('reclaim_audit_events_total{what="approved"}')).toBe(approvals);
      expect(metrics.get('reclaim_undelivered_messages')).toBe(0);
      expect(metrics.get('reclaim_processes{role="gateway"}')).toBeGreaterThanOrEqual(2);
      expect(metrics.get('reclaim_policy_versions')).toBe(1);
    }
    const looked = texts.map((metrics) => metrics.get('reclaim_jobs_total{job="look",outcome="done"}') ?? 0);
    expect(looked.slice(0, 2)).toEqual([0, 0]);
  }, 30_000);
});
