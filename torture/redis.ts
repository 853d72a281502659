/**
 * Redis: killed with the append-only file on, restarted empty, full, set to evict, slow. What is lost must be exactly what Redis
 * lost, and every loss and refusal must be a sentence.
 */
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { redisRows } from '../src/cli/doctor-queue.ts';
import { ReclaimError } from '../src/errors.ts';
import { chainProblems } from '../src/requests/chain.ts';
import { requestService } from '../src/requests/service-impl.ts';
import type { RequestService } from '../src/requests/service.ts';
import type { Store } from '../src/requests/store.ts';
import { openRedisStore } from '../src/requests/store-redis.ts';
import type { RequestRecord } from '../src/requests/types.ts';
import { systemClock as clock } from '../src/system-clock.ts';
import { policyOf, TestDirectory, thoughtOf } from '../test/requests/fixtures.ts';
import { redisServer, type RedisServer } from '../test/requests/servers.ts';
import { type Chance, type Part, rounds, Tally, type Told, until } from './part.ts';

interface World {
  readonly server: RedisServer;
  readonly store: Store;
  readonly requests: RequestService;
  readonly chance: Chance;
  readonly tally: Tally;
  readonly breach: (what: string) => void;
  /** The newest version of each request that somebody was told is written. */
  readonly told: Map<string, RequestRecord>;
}

let serial = 0;
/** One request on its way to approved, as far as it gets; each answer is a promise to whoever asked. */
async function oneRequest({ requests, told, tally, breach, chance }: World): Promise<void> {
  serial += 1;
  const host = `box-${serial}`;
  const note = (record: RequestRecord) => {
    told.set(record.id, record);
    tally.add('writes that were confirmed');
  };
  try {
    const { record } = await requests.ask({ host, requester: { id: 'UANN' }, surface: 'slack', channel: 'C1' });
    note(record);
    const thought = thoughtOf([{ pid: 100 + chance.below(900), user: 'ann' }], { host });
    note(await requests.looked(record.id, { thought, hostKey: 'SHA256:k' }));
    const decision = { id: record.id, person: { id: 'UAAA' }, surface: 'slack', verdict: 'approve' } as const;
    note(await requests.decide(decision, new TestDirectory()));
  } catch (thrown) {
    if (thrown instanceof ReclaimError && thrown.code !== 'internal') tally.add(`refusals: ${thrown.code}`);
    else breach(`no sentence: ${String(thrown)}`);
  }
}

const crowd = async (world: World, count: number): Promise<void> => {
  await Promise.all(Array.from({ length: count }, () => oneRequest(world)));
};

/** All that was confirmed is there, nothing is half there, and it goes on. */
async function judgeWhole(world: World): Promise<void> {
  const { store, told, breach, tally } = world;
  const answers = await until(
    () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    20_000,
    50,
  );
  if (!answers) breach('the store does not come back');
  for (const [id, record] of told) {
    const now = await store.get(id);
    if (now === null || now.version < record.version)
      breach(`${id}: confirmed as ${record.state}, now ${now?.state ?? 'lost'}`);
  }
  const events = await store.events({ limit: 1_000_000 });
  for (const problem of chainProblems(events)) breach(`audit: ${problem}`);
  for (const record of await store.list({ limit: 10_000 })) {
    const approvals = events.filter((e) => e.request === record.id && e.what === 'approved').length;
    if (record.votes.length !== approvals)
      breach(`${record.id} has ${record.votes.length} votes and ${approvals} events`);
    if ((await store.delivery(`${record.id}.card`)) === null) breach(`${record.id} has no card to come`);
  }
  const before = tally.of('writes that were confirmed');
  await oneRequest(world);
  if (tally.of('writes that were confirmed') !== before + 3) breach('it does not go on afterwards');
}

async function killed(world: World): Promise<void> {
  const work = crowd(world, 40);
  await clock.sleep(world.chance.below(120));
  await world.server.stop();
  await work;
  await world.server.start();
  await judgeWhole(world);
}

async function emptied(world: World): Promise<void> {
  const { store, requests, told, breach, tally, server } = world;
  await crowd(world, 8);
  const admin = new Redis(server.url);
  await admin.flushall();
  admin.disconnect();
  await server.stop();
  await server.start();
  await until(
    () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    20_000,
    50,
  );
  for (const { id } of told.values()) {
    if ((await store.get(id)) !== null) breach(`${id} is there although Redis is empty`);
    const late = { id, person: { id: 'UBBB' }, surface: 'slack', verdict: 'approve' } as const;
    const answer = await requests.decide(late, new TestDirectory()).then(
      () => 'taken',
      (e: unknown) => e,
    );
    if (!(answer instanceof ReclaimError) || answer.code !== 'request_unknown')
      breach(`a click on what is lost: ${String(answer)}`);
    const run = await requests.claim(id, 'w1').catch((e: unknown) => (e instanceof ReclaimError ? null : e));
    if (run !== null) breach(`a lost request was run: ${JSON.stringify(run)}`);
    tally.add('clicks on lost requests that were told so');
  }
  told.clear();
  await judgeWhole(world);
}

async function full(world: World): Promise<void> {
  const { server, tally, breach, requests } = world;
  await crowd(world, 8);
  const admin = new Redis(server.url);
  const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
  await admin.config('SET', 'maxmemory', String(used));
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  await crowd(world, 8);
  const asked = { host: 'box-full', requester: { id: 'UANN' }, surface: 'slack', channel: 'C1' } as const;
  const answer = await requests.ask(asked).then(
    () => 'taken',
    (e: unknown) => e,
  );
  if (!(answer instanceof ReclaimError) || !answer.userText.includes('full')) breach(`a full Redis: ${String(answer)}`);
  else tally.add('writes a full Redis refused with a sentence');
  await admin.config('SET', 'maxmemory', '0');
  admin.disconnect();
  await judgeWhole(world);
}

async function evicting(world: World): Promise<void> {
  const { server, store, tally, breach, told, requests } = world;
  await crowd(world, 8);
  const admin = new Redis(server.url);
  await admin.config('SET', 'maxmemory-policy', 'allkeys-random');
  const rows = await redisRows(server.url);
  if (!rows.some((row) => row.what === 'Redis eviction' && row.state === 'fail'))
    breach('doctor does not tell of eviction');
  await admin.config('SET', 'maxmemory', '1500000');
  await crowd(world, 4);
  for (const [id, record] of told) {
    const now = await store.get(id).catch((e: unknown) => e);
    if (now instanceof ReclaimError || now === null) tally.add('requests that were evicted');
    else if (now instanceof Error) breach(`${id}: half a record: ${String(now)}`);
    else if (record.state !== 'approved') {
      const run = await requests.claim(id, 'w1').catch((e: unknown) => (e instanceof ReclaimError ? null : e));
      if (run !== null) breach(`${id} was run without an approval`);
    }
  }
  await admin.flushall();
  await admin.config('SET', 'maxmemory', '0');
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  admin.disconnect();
  told.clear();
  // Whatever was half there is gone with the rest; the store has to start anew.
  await judgeWhole(world);
}

/** It answers too late: what was refused may be written nevertheless, so nobody may be told that it was not. */
async function slow(world: World): Promise<void> {
  const { server, requests, store, tally, breach } = world;
  const admin = new Redis(server.url);
  const host = `box-slow-${world.chance.below(1e9)}`;
  const pauseMs = world.chance.between(3_200, 4_000);
  await admin.call('CLIENT', 'PAUSE', String(pauseMs), 'ALL');
  const asked = { host, requester: { id: 'UANN' }, surface: 'slack', channel: 'C1' } as const;
  const answer = await requests.ask(asked).then(
    () => 'taken',
    (e: unknown) => e,
  );
  admin.disconnect();
  await until(
    () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    20_000,
    50,
  );
  const written = await store.openFor(host);
  if (answer instanceof ReclaimError) {
    tally.add('answers that came too late');
    if (written !== null) tally.add('of them written nevertheless');
    if (written !== null && /nothing was recorded/i.test(answer.userText)) breach(`untrue: ${answer.userText}`);
  } else if (answer !== 'taken') breach(`a slow Redis: ${String(answer)}`);
  await judgeWhole(world);
}

const scenes = { killed, emptied, full, evicting, slow } as const;

export const redis: Part = {
  name: 'redis',
  about: 'killed, emptied, full, evicting and slow',
  short: { seconds: 12, inputs: 0 },
  long: { seconds: 300, inputs: 0 },
  async run(seed, { seconds }, told: Told) {
    const tally = new Tally();
    const log = pino({ level: 'silent' });
    const nowhere = { look: () => Promise.resolve(), run: () => Promise.resolve() };
    const played = await rounds(seed, seconds, async (at, chance) => {
      for (const [name, scene] of Object.entries(scenes)) {
        told.at(at, name);
        const server = await redisServer();
        const store = await openRedisStore({ url: server.url, clock });
        const policy = { policy: policyOf({ people: { ann: 'UANN' } }), policyVersion: 'p1' };
        const requests = requestService({ store, clock, log, policy, enqueue: nowhere });
        const breach = (what: string) => {
          told.breach(at, `${name}: ${what}`);
        };
        await scene({ server, store, requests, chance, tally, breach, told: new Map() });
        tally.add(`times Redis was ${name}`);
        await store.close();
        await server.remove();
      }
    });
    return { rounds: played, ...tally.counts() };
  },
};
