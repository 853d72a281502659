/** Socket Mode on bad days: a planned reconnect loses nothing, a deaf socket is noticed and replaced, a cut one shows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import type { Gateway } from '../../src/slack/gateway.ts';
import { systemClock } from '../../src/system-clock.ts';
import { channel, priya } from '../standin/world.ts';
import { openOffice, type Office } from './office.ts';

let office: Office, gateway: Gateway;
/** Sockets are as old as a test needs them. */
let ageMs = 0;
const clock: Clock = { now: () => systemClock.now() + ageMs, sleep: (ms, signal) => systemClock.sleep(ms, signal) };
const both = () =>
  expect
    .poll(() => [office.slack.sockets.count, gateway.openSockets()], { timeout: 20_000, interval: 20 })
    .toEqual([2, 2]);

beforeAll(async () => {
  office = await openOffice(clock, { slack: { rateLimits: false } });
  gateway = await office.startGateway();
}, 60_000);
afterAll(() => office.close());

/** Commands one after the other for as long as `during` lasts; answers how each was taken. */
async function commandsWhile(during: () => Promise<void>): Promise<string[]> {
  let over = false;
  const taken: string[] = [];
  const asking = (async () => {
    while (!over) taken.push((await office.slack.actAs(priya).command(channel, '/reclaim status')).outcome);
  })();
  await during();
  over = true;
  await asking;
  return taken;
}

describe('sockets', () => {
  it.each(['refresh_requested', 'warning'] as const)(
    'lose no command when Slack retires them one by one: %s',
    async (reason) => {
      await both();
      ageMs += 3_600_000;
      const taken = await commandsWhile(async () => {
        for (let n = 0; n < 2; n += 1) {
          office.slack.sockets.refresh('oldest', reason);
          await office.slack.waitFor('one to go', () => office.slack.sockets.count < 2);
          await both();
        }
      });
      expect(taken.length).toBeGreaterThan(10);
      expect(taken.filter((outcome) => outcome !== 'acked')).toEqual([]);
    },
    60_000,
  );

  it('are back at once, not after the five seconds of the library, when both are retired together', async () => {
    await both();
    ageMs += 3_600_000;
    office.slack.sockets.refresh('all');
    await office.slack.waitFor('both to go', () => office.slack.sockets.count === 0);
    const gone = Date.now();
    await office.slack.waitFor('one', () => office.slack.sockets.count > 0);
    expect(Date.now() - gone).toBeLessThan(3_000);
    await both();
  }, 60_000);

  it('show within 10 s that nothing is heard any more, and are replaced within 30 s', async () => {
    office.slack.sockets.freeze(true);
    const deafSince = Date.now();
    await expect.poll(async () => (await gateway.health()).ok, { timeout: 20_000, interval: 50 }).toBe(false);
    expect(Date.now() - deafSince).toBeLessThan(10_000);
    await expect.poll(() => gateway.openSockets(), { timeout: 40_000, interval: 50 }).toBe(2);
    expect(Date.now() - deafSince).toBeLessThan(30_000);
    office.slack.sockets.freeze(false);
    await office.slack.waitFor('the old ones to go', () => office.slack.sockets.count === 2);
    expect((await office.slack.actAs(priya).command(channel, '/reclaim status')).outcome).toBe('acked');
  }, 90_000);

  it('show at once that they were cut, and come back when Slack does', async () => {
    await both();
    office.slack.sockets.refusing = true;
    office.slack.sockets.drop();
    const cut = Date.now();
    await expect.poll(async () => (await gateway.health()).ok, { timeout: 20_000, interval: 50 }).toBe(false);
    expect(Date.now() - cut).toBeLessThan(10_000);
    office.slack.sockets.refusing = false;
    await expect.poll(async () => (await gateway.health()).ok, { timeout: 60_000, interval: 50 }).toBe(true);
  }, 120_000);
});
