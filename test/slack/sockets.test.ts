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

/** Counts the sockets opened from now on. */
function connectionsOpened(): () => number {
  let opened = 0;
  office.slack.onChange((change) => {
    if (change.type === 'call' && change.method === 'apps.connections.open' && change.ok) opened += 1;
  });
  return () => opened;
}

/** A command every 20 ms until `during` has ended; answers how each was taken. */
async function commandsWhile(during: () => Promise<void>): Promise<string[]> {
  const taken: Promise<string>[] = [];
  const asker = office.slack.actAs(priya);
  const asking = setInterval(() => {
    taken.push(asker.command(channel, '/reclaim status').then((ack) => ack.outcome));
  }, 20);
  await during();
  clearInterval(asking);
  return await Promise.all(taken);
}

describe('sockets', () => {
  it.each(['refresh_requested', 'warning'] as const)(
    'lose no command when Slack retires them one by one: %s',
    async (reason) => {
      await both();
      ageMs += 3_600_000;
      const fresh = connectionsOpened();
      const taken = await commandsWhile(async () => {
        for (let n = 0; n < 6; n += 1) {
          ageMs += 3_600_000;
          office.slack.sockets.refresh('oldest', reason);
          await expect.poll(() => fresh(), { timeout: 20_000, interval: 10 }).toBe(n + 1);
          await both();
        }
      });
      expect(taken.length).toBeGreaterThan(10);
      expect(taken.filter((outcome) => outcome !== 'acked')).toEqual([]);
    },
    60_000,
  );

  it('lose no command when both are retired together', async () => {
    await both();
    ageMs += 3_600_000;
    const fresh = connectionsOpened();
    const taken = await commandsWhile(async () => {
      office.slack.sockets.refresh('all');
      await expect.poll(() => fresh(), { timeout: 20_000, interval: 20 }).toBe(2);
      await both();
    });
    expect(taken.length).toBeGreaterThan(2);
    expect(taken.filter((outcome) => outcome !== 'acked')).toEqual([]);
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
