/** What every store must do, whichever backend it stands on. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chainStart, eventHash } from '../../src/requests/chain.ts';
import { auditEvent, cancel, stay, systemAct } from '../../src/requests/state.ts';
import type { Store } from '../../src/requests/store.ts';
import { draftOf, TestClock } from './fixtures.ts';

export interface Backend {
  /** Opens one more connection to the same data. */
  open(clock: TestClock): Promise<Store>;
  close(): Promise<void>;
}

let serial = 0;
/** Every test works on hosts and ids of its own, so that one database serves the whole suite. */
const fresh = (prefix: string) => `${prefix}${(serial += 1)}`;

export function describeStore(name: string, start: () => Promise<Backend>): void {
  describe(`the store on ${name}`, () => {
    const clock = new TestClock();
    let backend: Backend;
    let store: Store;
    let other: Store;
    let id = '';
    let host = '';

    beforeAll(async () => {
      backend = await start();
      store = await backend.open(clock);
      other = await backend.open(clock);
    });
    afterAll(async () => {
      await other.close();
      await store.close();
      await backend.close();
    });
    beforeEach(() => {
      id = fresh('r');
      host = fresh('host');
      clock.ms += 3_600_000;
    });

    const made = (given: { channel?: string } = {}) => draftOf({ id, host, nowMs: clock.ms, ...given });
    const mine = async (claimed: ReturnType<Store['claimDeliveries']>) =>
      (await claimed).filter((d) => d.requestId === id);

    it('gives back exactly what was written', async () => {
      const { record } = made();
      expect(await store.create(made())).toEqual({ ok: true, record });
      expect(await other.get(id)).toEqual(record);
      expect(await other.openFor(host)).toEqual(record);
      expect(await store.get('nothing')).toBeNull();
      expect(await store.openFor('nowhere')).toBeNull();
    });

    it('keeps one open request per host, whoever comes first', async () => {
      const asks = Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? store : other).create(draftOf({ id: `${id}-${n}`, host, nowMs: clock.ms })),
      );
      const results = await Promise.all(asks);
      const winners = results.filter((r) => r.ok);
      expect(winners).toHaveLength(1);
      const winner = winners[0]!;
      for (const result of results.filter((r) => !r.ok)) {
        expect(result).toMatchObject({ ok: false, why: 'host_busy', current: { id: winner.record.id } });
      }
    });

    it('says when an id is taken, and frees the host when its request ends', async () => {
      const first = made();
      await store.create(first);
      expect(await store.create(made())).toMatchObject({ ok: false, why: 'exists' });
      const cancelled = cancel(first.record, { who: 'UANN', surface: 'slack', nowMs: clock.ms });
      expect(cancelled.ok && (await store.update(cancelled)).ok).toBe(true);
      expect(await store.openFor(host)).toBeNull();
      expect((await store.create(draftOf({ id: `${id}-next`, host, nowMs: clock.ms }))).ok).toBe(true);
    });

    it('lets one of many writers of the same version through, and shows the others what it became', async () => {
      const first = made();
      await store.create(first);
      const writes = Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? store : other).update(
          stay(first.record, { act: systemAct(clock.ms), what: 'noted', reason: `writer ${n}` }),
        ),
      );
      const results = await Promise.all(writes);
      expect(results.filter((r) => r.ok)).toHaveLength(1);
      const now = await store.get(id);
      for (const r of results.filter((r) => !r.ok)) expect(r).toEqual({ ok: false, why: 'changed', current: now });
      const events = await store.events({ request: id, limit: 100 });
      expect(events.map((e) => e.what)).toEqual(['asked', 'noted']);
      expect(await store.update({ record: { ...first.record, id: 'ghost', version: 2 } })).toMatchObject({
        ok: false,
        why: 'changed',
        current: null,
      });
    });

    it('chains every event of every writer into one log without gaps', async () => {
      const { record } = made();
      await store.create(made());
      const act = systemAct(clock.ms);
      await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          (n % 2 === 0 ? store : other).appendEvents([auditEvent(record, act, 'refused', `try ${n}`)]),
        ),
      );
      const all = [];
      for (;;) {
        const page = await other.events({ afterSeq: all.length, limit: 7 });
        all.push(...page);
        if (page.length < 7) break;
      }
      let previous = chainStart;
      for (const [n, event] of all.entries()) {
        expect(event.seq).toBe(n + 1);
        expect(event.previousHash).toBe(previous);
        expect(event.hash).toBe(eventHash(event));
        previous = event.hash;
      }
      expect(await store.events({ host, limit: 100 })).toHaveLength(31);
      expect(await store.events({ request: id, afterSeq: all.length - 1, limit: 100 })).toHaveLength(1);
    });

    it('lists newest first, by state and host', async () => {
      await store.create(made());
      const b = { id: `${id}-b`, host: `${host}-b`, nowMs: clock.ms + 5 };
      await store.create(draftOf(b));
      expect((await store.list({ limit: 2 })).map((r) => r.id)).toEqual([b.id, id]);
      expect((await store.list({ host, limit: 5 })).map((r) => r.id)).toEqual([id]);
      expect(await store.list({ host, states: ['pending', 'denied'], limit: 5 })).toEqual([]);
      expect((await store.list({ host, states: ['draft'], limit: 5 })).map((r) => r.id)).toEqual([id]);
      expect((await store.list({ states: ['draft', 'succeeded'], host, limit: 5 })).map((r) => r.id)).toEqual([id]);
    });

    it('hands each delivery to one claimer, oldest first, again after the claim ran out', async () => {
      await store.create({ ...made(), deliver: ['card', 'details'] });
      const [a, b] = await Promise.all([
        store.claimDeliveries('a', 1_000, 100),
        other.claimDeliveries('b', 1_000, 100),
      ]);
      const got = [...a, ...b].filter((d) => d.requestId === id);
      expect(got.map((d) => d.view).sort()).toEqual(['card', 'details']);
      expect(await mine(store.claimDeliveries('c', 1_000, 100))).toEqual([]);
      clock.ms += 1_001;
      const again = await mine(store.claimDeliveries('c', 1_000, 100));
      expect(again.map((d) => [d.view, d.attempts, d.claimedBy])).toEqual([
        ['card', 2, 'c'],
        ['details', 2, 'c'],
      ]);
    });

    it('coalesces new states of a message, and sends again only what changed since', async () => {
      const first = made();
      await store.create(first);
      const [card] = await mine(store.claimDeliveries('a', 60_000, 100));
      expect(card).toMatchObject({ view: 'card', revision: 1, deliveredRevision: 0 });
      const second = stay(first.record, { act: systemAct(clock.ms), what: 'noted', reason: 'new' });
      await store.update(second);
      await store.settleDelivery(card!.key, 'a', { delivered: 1, messageTs: '12.5' });
      const [newer] = await mine(other.claimDeliveries('b', 60_000, 100));
      expect(newer).toMatchObject({ key: card!.key, revision: 2, deliveredRevision: 1, messageTs: '12.5' });
      await other.settleDelivery(card!.key, 'b', { delivered: 2 });
      expect(await mine(store.claimDeliveries('a', 60_000, 100))).toEqual([]);
      expect(await store.delivery(card!.key)).toMatchObject({ revision: 2, deliveredRevision: 2, messageTs: '12.5' });
    });

    it('waits with what is to be tried later, remembers what was given up, and heeds only the claimer', async () => {
      await store.create({ ...made(), deliver: ['card', 'details'] });
      const before = await store.undelivered();
      const [card, details] = await mine(store.claimDeliveries('a', 60_000, 100));
      await store.settleDelivery(card!.key, 'stranger', { givenUp: 'not mine' });
      expect((await store.delivery(card!.key))?.givenUp).toBeUndefined();
      const retryAt = new Date(clock.ms + 5_000).toISOString();
      await store.settleDelivery(card!.key, 'a', { retryAt });
      await store.settleDelivery(details!.key, 'a', { givenUp: 'channel_not_found' });
      expect(await store.delivery(card!.key)).toMatchObject({ notBefore: retryAt });
      expect(await store.delivery(details!.key)).toMatchObject({ givenUp: 'channel_not_found' });
      expect(await mine(store.claimDeliveries('a', 60_000, 100))).toEqual([]);
      expect((await store.undelivered()).count).toBe(before.count - 1);
      expect((await store.undelivered()).oldestAt).not.toBeNull();
      clock.ms += 5_000;
      expect(await mine(store.claimDeliveries('a', 60_000, 100))).toHaveLength(1);
    });

    it('puts nothing up for requests without a channel', async () => {
      const { record, events } = made();
      delete record.channel;
      await store.create({ record, events, deliver: ['card'] });
      expect(await mine(store.claimDeliveries('a', 60_000, 100))).toEqual([]);
    });

    it('wakes listeners of other connections when there is something to deliver', async () => {
      let wake = () => {};
      const first = new Promise<void>((resolve) => (wake = resolve));
      const stop = other.onDelivery(() => {
        wake();
      });
      await first; // once when the listener is up
      const second = new Promise<void>((resolve) => (wake = resolve));
      await store.create(made());
      await second;
      stop();
    });

    it('remembers wishes of owners by boot, and who was first', async () => {
      const wish = { host, bootId: 'b1', target: '5:50', by: 'UBOB', at: new Date(clock.ms).toISOString() };
      await store.keep(wish);
      await store.keep({ ...wish, by: 'UANN' });
      await store.keep({ ...wish, target: '4:40' });
      expect(await other.kept(host, 'b1')).toEqual([
        { target: '4:40', by: 'UBOB' },
        { target: '5:50', by: 'UBOB' },
      ]);
      expect(await other.kept(host, 'b2')).toEqual([]);
    });

    it('lets one holder hold a name until it lets go or its time is over', async () => {
      const tries = await Promise.all(
        Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? store : other).hold(host, `h${n}`, 1_000)),
      );
      expect(tries.filter(Boolean)).toHaveLength(1);
      const holder = `h${tries.indexOf(true)}`;
      expect(await store.hold(host, holder, 1_000)).toBe(true);
      await store.release(host, 'somebody else');
      expect(await store.hold(host, 'next', 1_000)).toBe(false);
      clock.ms += 1_000;
      expect(await other.hold(host, 'next', 1_000)).toBe(true);
      await other.release(host, 'next');
      expect(await store.hold(host, 'third', 1_000)).toBe(true);
    });

    it('answers a ping', async () => {
      await store.ping();
    });
  });
}
