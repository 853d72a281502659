/**
 * Crash everywhere: gateway, workers and Redis are killed, stopped and continued, the roads to Redis and to the boxes freeze, break
 * and close one way, at random times while people ask and approve. Afterwards everything must agree and nothing be lost.
 */
import { z } from 'zod';
import { chainProblems } from '../src/requests/chain.ts';
import { isOpen, openStates } from '../src/requests/state.ts';
import type { RequestRecord } from '../src/requests/types.ts';
import { buttonLabels } from '../src/demo/transcript.ts';
import { stateWords } from '../src/slack/blocks/words.ts';
import { systemClock } from '../src/system-clock.ts';
import { channel, Deployment, hosts, places } from './deployment.ts';
import { type Chance, type Part, rounds, Tally, type Told, until } from './part.ts';

const metadata = z.object({ event_payload: z.object({ key: z.string() }) });

/** What can happen to the deployment; each puts right again what it broke. */
const faults = {
  'processes killed': async (d: Deployment, chance: Chance) => {
    const place = chance.below(places.length);
    await d.sitting[place]?.end('SIGKILL');
    await d.sit(place);
  },
  'processes ended in good order': async (d: Deployment, chance: Chance) => {
    const place = chance.below(places.length);
    await d.sitting[place]?.end('SIGTERM');
    await d.sit(place);
  },
  'processes stopped and continued': async (d: Deployment, chance: Chance) => {
    const { child } = d.sitting[chance.below(places.length)] ?? {};
    child?.kill('SIGSTOP');
    await systemClock.sleep(chance.between(200, 6_000));
    child?.kill('SIGCONT');
  },
  'Redis killed': async (d: Deployment, chance: Chance) => {
    await d.world.redis.stop();
    await systemClock.sleep(chance.below(2_000));
    await d.world.redis.start();
  },
  'road to Redis reset': (d: Deployment) => {
    d.world.redisRoad.reset();
    return Promise.resolve();
  },
  'road to Redis closed one way': (d: Deployment) => {
    d.world.redisRoad.halfClose();
    return Promise.resolve();
  },
  'road to Redis frozen': async (d: Deployment, chance: Chance) => {
    d.world.redisRoad.freeze();
    await systemClock.sleep(chance.between(200, 5_000));
    d.world.redisRoad.thaw();
  },
  'road to the boxes reset': (d: Deployment) => {
    d.world.sshRoad.reset();
    return Promise.resolve();
  },
  'road to the boxes closed one way': (d: Deployment) => {
    d.world.sshRoad.halfClose();
    return Promise.resolve();
  },
  'road to the boxes frozen': async (d: Deployment, chance: Chance) => {
    d.world.sshRoad.freeze();
    await systemClock.sleep(chance.between(200, 5_000));
    d.world.sshRoad.thaw();
  },
} as const;
const kinds = Object.keys(faults) as (keyof typeof faults)[];

/** Every request as it stands at rest, against its card, its audit events and its box. */
async function judge(d: Deployment, tally: Tally, breach: (what: string) => void): Promise<void> {
  const records = await d.world.store.list({ limit: 10_000 });
  const events = await d.world.store.events({ limit: 1_000_000 });
  for (const problem of chainProblems(events)) breach(`audit: ${problem}`);
  const posted = d.world.slack.messages(channel).flatMap((m) => {
    const key = metadata.safeParse(m.metadata).data?.event_payload.key;
    return key === undefined ? [] : [{ key, message: m }];
  });
  if (new Set(posted.map((p) => p.key)).size !== posted.length) breach('a message was posted twice');
  for (const record of records) {
    const about = `${record.host} ${record.id} (${record.state})`;
    tally.add(`requests that ended ${record.state}`);
    const mine = events.filter((event) => event.request === record.id);
    if (isOpen(record.state)) breach(`${about} is still open`);
    const card = posted.find((p) => p.key === `${record.id}.card`)?.message;
    if (card === undefined) breach(`${about} has no card`);
    else if (!card.text.includes(stateWords(record))) breach(`${about}: its card says "${card.text}"`);
    else if (buttonLabels(card).some((l) => /^(Approve|Deny|Cancel)/.test(l))) breach(`${about}: its card still asks`);
    if (mine.filter((event) => event.what === 'run_started').length > 1) breach(`${about} was run more than once`);
    const yes = record.votes.filter((vote) => vote.verdict === 'approve').length;
    if (record.state === 'expired' && yes >= record.required) breach(`${about}: an approval was lost`);
    judgeBox(d, record, about, breach);
  }
}

function judgeBox(d: Deployment, record: RequestRecord, about: string, breach: (what: string) => void): void {
  const box = d.world.boxes.box(record.host);
  const planned = (record.plan?.steps ?? []).flatMap((s) => (s.action === 'kill' ? s.targets.map((t) => t.pid) : []));
  const ordered = box.orders.filter((o) => record.run !== undefined && o.startsWith(`${record.run.id} `));
  if (new Set(ordered).size !== ordered.length) breach(`${about}: a process was signalled twice: ${ordered.join()}`);
  for (const order of ordered) {
    if (!planned.includes(Number(order.split(' ')[1]))) breach(`${about}: ${order} was not on its plan`);
  }
  if (ordered.length > 0 && !['succeeded', 'failed', 'unknown'].includes(record.state))
    breach(`${about} and yet acted`);
  if (record.state === 'succeeded' && planned.some((pid) => box.alive.has(pid))) breach(`${about} and yet not done`);
}

/** A bad minute: some faults one after the other, two at a time, while people work. Then everything comes to rest. */
async function badMinute(d: Deployment, chance: Chance, count: number, tally: Tally, breach: (what: string) => void) {
  for (const host of hosts) d.world.boxes.box(host).litter();
  const enough = d.people();
  for (let n = 0; n < count; n += 1) {
    const kind = chance.pick(kinds);
    await Promise.all([faults[kind](d, chance), systemClock.sleep(chance.below(1_500))]);
    tally.add(kind);
    // Something to do all the time, so that most faults hit a run or a look.
    d.world.boxes.box(chance.pick(hosts)).litter();
  }
  await enough();
  // A run that was cut off is found out about after its lease; what stands open is approved by the people.
  const rest = await until(
    async () =>
      (await d.world.store.list({ states: openStates, limit: 1 })).length === 0 &&
      (await d.world.store.undelivered()).count === 0,
    150_000,
    250,
  );
  d.peopleLeave();
  if (!rest) {
    const open = await d.world.store.list({ states: openStates, limit: 100 });
    const { count: left } = await d.world.store.undelivered();
    breach(
      `not at rest after 150 s: ${open.map((r) => `${r.host} ${r.id} ${r.state}`).join(', ')}; ${left} undelivered`,
    );
  }
  await judge(d, tally, breach);
}

export const crash: Part = {
  name: 'crash',
  about: 'processes, Redis and roads that break at random times',
  short: { seconds: 1, inputs: 8 },
  long: { seconds: 1_200, inputs: 25 },
  async run(seed, { seconds, inputs }, told: Told) {
    const tally = new Tally();
    const d = await Deployment.open();
    try {
      const played = await rounds(seed, seconds, async (at, chance) => {
        told.at(at, 'a bad minute');
        await badMinute(d, chance, inputs, tally, (what) => {
          told.breach(at, what);
        });
      });
      // Every request is judged again each time; the numbers are those of the last.
      return { rounds: played, ...tally.counts() };
    } finally {
      await d.close();
    }
  },
};
