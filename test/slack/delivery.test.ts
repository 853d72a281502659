/** Bad days of Slack against the real gateway and a real store: nothing lost, nothing twice, in order. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/requests/types.ts';
import type { Message } from '../../src/standin/model.ts';
import { channel, priya, sam } from '../standin/world.ts';
import { HurryingClock, openOffice, type Office } from './office.ts';
import { everyCard } from './records.ts';

let office: Office;
const clock = new HurryingClock();
/** Number of the first box of a test: each test has boxes of its own. */
let first = 0;
beforeAll(async () => {
  const paint = (svg: string) => Promise.resolve(Buffer.from(svg));
  office = await openOffice(clock, { slack: { rateLimits: false }, paint });
}, 150_000);
beforeEach(() => {
  first += 100;
});
afterEach(async () => {
  office.slack.faults.clear();
  await office.stopGateways();
});
afterAll(async () => {
  await office.close();
});

/** A record of the examples, as the request of a box of its own. */
function recordOf(n: number, state: string, version: number): RequestRecord {
  const example = everyCard[state];
  if (example === undefined) throw new Error(`there is no example ${state}`);
  const now = new Date(clock.now()).toISOString();
  const far = '2099-01-01T00:00:00.000Z';
  return {
    ...example,
    ...(state === 'pending' ? { pendingUntil: far } : {}),
    id: `r${n}`,
    host: `box-${n}`,
    version,
    channel,
    createdAt: now,
    updatedAt: now,
  };
}

async function pend(n: number): Promise<void> {
  expect((await office.store.create({ record: recordOf(n, 'looking', 1), deliver: ['card'] })).ok).toBe(true);
  const change = { record: recordOf(n, 'pending', 2), deliver: ['plan_file', 'card', 'picture', 'details'] as const };
  expect((await office.store.update(change)).ok).toBe(true);
}

async function finish(n: number): Promise<void> {
  const change = { record: recordOf(n, 'succeeded', 3), deliver: ['card', 'outcome', 'picture'] as const };
  expect((await office.store.update(change)).ok).toBe(true);
}

/** Everything is out: nothing waits in the store any more. */
async function allDelivered(): Promise<void> {
  await expect.poll(async () => (await office.store.undelivered()).count, { timeout: 100_000, interval: 20 }).toBe(0);
}

const cardsOf = (n: number): Message[] =>
  office.slack.messages(channel).filter((m) => m.threadTs === undefined && whole(m).includes(`box-${n}:`));
const repliesTo = (card: Message): Message[] =>
  office.slack.messages(channel).filter((m) => m.threadTs === card.ts && m.ts !== card.ts);
const whole = (message: Message): string => JSON.stringify(message);

/** One card per request in its last state, with its details before its outcome, each once. */
function expectEachOnceInOrder(count: number): void {
  for (const n of numbers(count)) {
    const mine = cardsOf(n);
    expect(mine).toHaveLength(1);
    const [card] = mine;
    expect(card?.text).toContain(`box-${n}: done`);
    expect(whole(card!)).not.toContain('"type":"button"');
    const replies = repliesTo(card!).map((m) => m.text);
    expect(replies.filter((t) => t.startsWith('Details of'))).toHaveLength(1);
    expect(replies.filter((t) => t.includes(`box-${n}: done`))).toHaveLength(1);
    // A picture stands wherever it fits: nothing waits for it.
    expect(replies.findLast((t) => !t.includes('memory before and after'))).toContain(`box-${n}: done`);
    const pictures = repliesTo(card!).flatMap((m) => m.files.map((f) => f.name));
    expect(pictures.filter((name) => name.endsWith('before-after.png'))).toHaveLength(1);
    expect(pictures.filter((name) => name.endsWith('memory.png')).length).toBeLessThanOrEqual(1);
  }
}

const numbers = (count: number): number[] => [...Array(count).keys()].map((n) => first + n);
const uploads = ['files.getUploadURLExternal', 'files.completeUploadExternal'];
const allMethods = ['chat.postMessage', 'chat.update', 'conversations.history', 'conversations.replies', ...uploads];

describe('delivery on bad days', () => {
  it.each([
    ['429 storms', { kind: 'ratelimited', count: 40, retryAfterSeconds: 7 }],
    ['5xx', { kind: 'server_error', count: 40 }],
    ['internal errors', { kind: 'internal_error', count: 40 }],
    ['connections cut after Slack took the call', { kind: 'reset_after_commit', count: 25 }],
  ] as const)(
    'loses nothing, sends nothing twice and keeps the order in %s',
    async (_name, fault) => {
      await office.startGateway();
      const interesting = fault.kind === 'reset_after_commit' ? ['chat.postMessage', ...uploads] : allMethods;
      for (const method of interesting) office.slack.faults.add({ ...fault, method });
      await Promise.all(numbers(6).map(pend));
      // The result comes while the first cards are still being tried.
      await Promise.all(numbers(6).map(finish));
      await allDelivered();
      expectEachOnceInOrder(6);
    },
    150_000,
  );

  it('brings everything after an hour in which Slack was gone, and shows the newest state at once', async () => {
    await office.startGateway();
    await Promise.all(numbers(2).map(pend));
    await allDelivered();
    const started = clock.now();
    office.slack.faults.add({ kind: 'server_error', count: 1_000_000 });
    office.slack.sockets.refusing = true;
    office.slack.sockets.drop();
    await Promise.all(numbers(4).slice(2).map(pend));
    await Promise.all(numbers(4).map(finish));
    const tried = office.slack.faults.list()[0]!.left;
    await expect.poll(() => clock.now() - started, { timeout: 100_000, interval: 20 }).toBeGreaterThan(3_600_000);
    expect((await office.store.undelivered()).count).toBeGreaterThan(0);
    // It kept trying, and did not hammer: well under one call a second for each message.
    const tries = tried - office.slack.faults.list()[0]!.left;
    expect(tries).toBeGreaterThan(50);
    expect(tries).toBeLessThan(3600);
    office.slack.faults.clear();
    office.slack.sockets.refusing = false;
    await allDelivered();
    expectEachOnceInOrder(4);
  }, 90_000);

  it('finds a card by its metadata after a restart between the post and the note of it', async () => {
    const gateway = await office.startGateway();
    office.slack.faults.add({ kind: 'reset_after_commit', count: 1, method: 'chat.postMessage' });
    await pend(first);
    await office.slack.waitFor('the card', () => cardsOf(first).length > 0);
    await gateway.stop();
    await finish(first);
    await office.startGateway();
    await allDelivered();
    expectEachOnceInOrder(1);
  }, 150_000);

  it('sends each message once when two gateways share the store', async () => {
    await Promise.all([office.startGateway(), office.startGateway()]);
    office.slack.faults.add({ kind: 'ratelimited', count: 10, retryAfterSeconds: 90, method: 'chat.postMessage' });
    await Promise.all(numbers(6).map(pend));
    await Promise.all(numbers(6).map(finish));
    await allDelivered();
    expectEachOnceInOrder(6);
  }, 150_000);

  it('counts a click, a command and their copies once', async () => {
    await office.startGateway();
    await pend(first);
    const before = office.slack.actAs(sam).ephemerals().length;
    const card = await office.slack.waitFor('the card', () => cardsOf(first).find((m) => whole(m).includes('Approve')));
    await allDelivered();
    office.slack.faults.duplicateNext = 1;
    await office.slack.actAs(sam).click(card, 'Approve', { confirm: true });
    await office.slack.waitFor('the answer', () => office.slack.actAs(sam).ephemerals().length > before);
    await office.slack.actAs(sam).click(card, 'Approve', { confirm: true });
    await office.slack.waitFor('the refusal', () => office.slack.actAs(sam).ephemerals().length > before + 1);
    expect((await office.store.get(`r${first}`))?.votes.filter((v) => v.person === sam)).toHaveLength(1);
    office.slack.faults.duplicateNext = 1;
    await office.slack.actAs(priya).command(channel, '/reclaim gpu-box-3');
    await expect.poll(() => office.enqueued.length, { interval: 10 }).toBe(1);
    await allDelivered();
    expect((await office.store.list({ host: 'gpu-box-3', limit: 10 })).length).toBe(1);
    // The copy was known as one: nobody was told that the box is busy.
    expect(office.slack.actAs(priya).ephemerals()).toEqual([]);
  }, 150_000);

  it('keeps a click whose socket is pulled under it, through the other socket or a second click', async () => {
    await office.startGateway();
    await pend(first);
    const before = office.slack.actAs(sam).ephemerals().length;
    const card = await office.slack.waitFor('the card', () => cardsOf(first).find((m) => whole(m).includes('Approve')));
    await office.slack.waitFor('both sockets', () => office.slack.sockets.count >= 2);
    const clicked = office.slack.actAs(sam).click(card, 'Approve', { confirm: true });
    office.slack.sockets.drop();
    await clicked;
    await office.slack.waitFor('a socket', () => office.slack.sockets.count > 0);
    await office.slack.actAs(sam).click(card, 'Approve', { confirm: true });
    await office.slack.waitFor('the answer', () => office.slack.actAs(sam).ephemerals().length > before);
    expect((await office.store.get(`r${first}`))?.votes.filter((v) => v.person === sam)).toHaveLength(1);
  }, 150_000);

  it('answers people at once while posts wait out a storm', async () => {
    await office.startGateway();
    office.slack.faults.add({
      kind: 'ratelimited',
      count: 1_000_000,
      retryAfterSeconds: 30,
      method: 'chat.postMessage',
    });
    await Promise.all(numbers(5).map(pend));
    await office.slack.actAs(priya).command(channel, '/reclaim nowhere');
    await office.slack.waitFor('the answer', () => office.slack.actAs(priya).ephemerals().length > 0);
  }, 150_000);
});
