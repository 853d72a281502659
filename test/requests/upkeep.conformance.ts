/** What every store must do for those who run it: count, know its processes, let go of what is old, take a backup back. */
import { afterAll, beforeAll, expect, describe, it } from 'vitest';
import { headAfter } from '../../src/requests/backup.ts';
import { chainStart, emptyChain } from '../../src/requests/chain.ts';
import { auditEvent, cancel, systemAct } from '../../src/requests/state.ts';
import type { Store } from '../../src/requests/store.ts';
import { totalsOf } from '../../src/requests/totals.ts';
import type { AuditEvent, RequestRecord } from '../../src/requests/types.ts';
import { draftOf, TestClock } from './fixtures.ts';

export interface UpkeepBackend {
  /** Opens one more connection to the data of this name; each name is a store of its own. */
  open(clock: TestClock, name: string): Promise<Store>;
  /** Makes the data look as the first release left it, or as one from the future would. */
  setVersion(name: string, version: 1 | 99): Promise<void>;
  close(): Promise<void>;
}

const day = 86_400_000;
const iso = (ms: number) => new Date(ms).toISOString();

async function everything(store: Store): Promise<{ records: RequestRecord[]; events: AuditEvent[] }> {
  return { records: await store.list({ limit: 10_000 }), events: await store.events({ limit: 10_000 }) };
}

export function describeUpkeep(name: string, start: () => Promise<UpkeepBackend>): void {
  describe(`upkeep on ${name}`, () => {
    const clock = new TestClock();
    let backend: UpkeepBackend;
    const opened: Store[] = [];

    beforeAll(async () => {
      backend = await start();
    });
    afterAll(async () => {
      for (const store of opened) await store.close();
      await backend.close();
    });
    const open = async (data: string) => {
      const store = await backend.open(clock, data);
      opened.push(store);
      return store;
    };
    /** A request that was asked and cancelled, `daysAgo` days before now. */
    async function ended(store: Store, id: string, daysAgo: number, channel?: string): Promise<void> {
      const nowMs = clock.ms - daysAgo * day;
      const made = draftOf({ id, host: `host-${id}`, nowMs, ...(channel === undefined ? {} : { channel }) });
      if (channel === undefined) delete made.record.channel;
      await store.create(made);
      const gone = cancel(made.record, { who: 'UANN', surface: 'slack', nowMs });
      if (!gone.ok) throw new Error(gone.text);
      await store.update({ record: gone.record, events: gone.events });
    }

    it('counts what each request adds, once, whoever writes and however often', async () => {
      const [a, b] = [await open('count'), await open('count')];
      await Promise.all(Array.from({ length: 20 }, (_, n) => ended(n % 2 === 0 ? a : b, `c${n}`, 0)));
      const first = draftOf({ id: 'open', host: 'open', nowMs: clock.ms });
      await a.create(first);
      // Losers of a race change nothing, in the totals either.
      const gone = cancel(first.record, { who: 'UANN', surface: 'slack', nowMs: clock.ms });
      if (!gone.ok) throw new Error(gone.text);
      const moves = [a, b, a, b].map((s) => s.update(gone));
      expect((await Promise.all(moves)).filter((r) => r.ok)).toHaveLength(1);
      await b.create(draftOf({ id: 'open', host: 'other', nowMs: clock.ms }));
      await a.appendEvents([auditEvent(first.record, systemAct(clock.ms), 'refused', 'no')]);
      const { records, events } = await everything(a);
      expect(await a.totals()).toEqual(totalsOf(records, events));
      expect(await b.totals()).toMatchObject({
        'requests.asked': 21,
        'requests.ended.cancelled': 21,
        'events.refused': 1,
      });
    });

    it('has one name, whoever asks', async () => {
      const [a, b] = [await open('name'), await open('name')];
      const names = await Promise.all([a.deployment(), b.deployment(), a.deployment()]);
      expect(new Set(names).size).toBe(1);
      expect(names[0]).toMatch(/^[0-9a-f]{16}$/);
      expect(await (await open('other-name')).deployment()).not.toBe(names[0]);
    });

    it('knows the processes that are here, and forgets those that went or fell silent', async () => {
      const [a, b] = [await open('beat'), await open('beat')];
      const info = (instance: string) => ({
        instance,
        role: 'worker' as const,
        startedAt: iso(clock.ms),
        seenAt: iso(clock.ms),
        release: '1',
        policyVersion: 'p',
        sockets: 0,
      });
      await a.beat(info('w2'), 1_000);
      await b.beat(info('w1'), 5_000);
      await b.beat(info('w3'), 5_000);
      expect(await a.processes()).toEqual([info('w1'), info('w2'), info('w3')]);
      await a.leave('w3');
      clock.ms += 1_000;
      expect((await b.processes()).map((p) => p.instance)).toEqual(['w1']);
    });

    it('lets go of old requests with their messages, never of open or undelivered ones, and still counts them', async () => {
      const store = await open('trim');
      for (const [n, daysAgo] of [200, 120, 91, 50, 10, 0].entries()) await ended(store, `t${n}`, daysAgo);
      await store.create(draftOf({ id: 'waits', host: 'waits', nowMs: clock.ms - 300 * day }));
      await ended(store, 'unsent', 150, 'C0');
      const [sent] = await store
        .claimDeliveries('me', 1_000, 100)
        .then((all) => all.filter((d) => d.requestId === 'waits'));
      await store.settleDelivery(sent!.key, 'me', { delivered: 1 });
      const before = await store.totals();
      const limits = { requestsBefore: iso(clock.ms - 90 * day), requestsAtMost: 1_000, auditBefore: iso(0) };
      expect(await store.trim(limits)).toEqual({ requests: 3, events: 0 });
      expect(await store.trim(limits)).toEqual({ requests: 0, events: 0 });
      const kept = (await store.list({ limit: 100 })).map((r) => r.id).sort();
      expect(kept).toEqual(['t3', 't4', 't5', 'unsent', 'waits']);
      expect((await store.trim({ ...limits, requestsAtMost: 2 })).requests).toBe(1);
      expect(await store.get('t3')).toBeNull();
      expect(await store.totals()).toEqual(before);
      expect(await store.delivery('unsent.card')).not.toBeNull();
      expect(await store.events({ request: 't0', limit: 10 })).toHaveLength(2);
    });

    it('lets go of the oldest audit events only, so that the rest is still one chain that goes on', async () => {
      const store = await open('audit');
      for (const [n, daysAgo] of [500, 450, 401, 300, 1].entries()) await ended(store, `a${n}`, daysAgo);
      const limits = { requestsBefore: iso(0), requestsAtMost: 1_000, auditBefore: iso(clock.ms - 400 * day) };
      expect(await store.trim(limits)).toEqual({ requests: 0, events: 6 });
      await ended(store, 'after', 0);
      const left = await store.events({ limit: 100 });
      expect(left.map((e) => e.seq)).toEqual([7, 8, 9, 10, 11, 12]);
      expect(headAfter(emptyChain, { events: left }).to.seq).toBe(12);
      expect(await store.events({ request: 'a0', limit: 10 })).toEqual([]);
      expect(await store.events({ host: 'host-a3', limit: 10 })).toHaveLength(2);
      expect(await store.events({ afterSeq: 9, limit: 1 })).toEqual([left[3]]);
      expect((await store.trim({ ...limits, auditBefore: iso(clock.ms + day) })).events).toBe(5);
      expect((await store.events({ limit: 100 })).map((e) => e.seq)).toEqual([12]);
    });

    it('takes a backup back piece by piece, exactly, also one whose oldest events are gone', async () => {
      const from = await open('from');
      for (const n of [0, 1, 2, 3]) await ended(from, `b${n}`, 500 - n * 100);
      await from.trim({ requestsBefore: iso(0), requestsAtMost: 1_000, auditBefore: iso(clock.ms - 450 * day) });
      const whole = await everything(from);
      const totals = await from.totals();
      const into = await open('into');
      await into.restore({ events: whole.events.slice(0, 3) });
      await into.restore({ events: whole.events.slice(3), records: whole.records });
      await into.restore({ records: whole.records, totals });
      expect(await everything(into)).toEqual(whole);
      expect(await into.totals()).toEqual(totals);
      await ended(into, 'goes-on', 0);
      const after = await everything(into);
      expect(headAfter(emptyChain, { events: after.events }).to.seq).toBe(10);
      expect(await into.totals()).toEqual({
        ...totals,
        'requests.asked': 5,
        'requests.ended.cancelled': 5,
        'events.asked': 5,
        'events.cancelled': 5,
      });
      expect(await into.events({ host: 'host-b3', limit: 10 })).toHaveLength(2);
    });

    it('refuses a backup that was changed, has a gap, is of another store, or holds an open request', async () => {
      const from = await open('bad-from');
      await ended(from, 'x', 1);
      await ended(from, 'y', 1);
      const { records, events } = await everything(from);
      const into = await open('bad-into');
      const changed = events.map((e) => (e.seq === 2 ? { ...e, who: 'USOMEBODY' } : e));
      const opened = records.map((r) => ({ ...r, state: 'approved' as const }));
      for (const part of [{ events: changed }, { events: events.filter((e) => e.seq !== 2) }, { records: opened }]) {
        await expect(into.restore(part)).rejects.toMatchObject({ code: 'backup_invalid' });
      }
      expect(await everything(into)).toEqual({ records: [], events: [] });
      await ended(into, 'own', 0);
      await expect(into.restore({ events })).rejects.toMatchObject({ code: 'backup_invalid' });
      expect(events[0]!.previousHash).toBe(chainStart);
      expect((await everything(into)).events).toHaveLength(2);
    });

    it('brings up what the first release wrote, with totals, and refuses what a newer one wrote with a sentence', async () => {
      const first = await open('versions');
      for (const n of [0, 1, 2]) await ended(first, `v${n}`, n);
      const { records, events } = await everything(first);
      await backend.setVersion('versions', 1);
      const both = await Promise.all([open('versions'), open('versions')]);
      expect(await everything(both[0])).toEqual({ records, events });
      expect(await both[1].totals()).toEqual(totalsOf(records, events));
      await backend.setVersion('versions', 99);
      const refused = backend.open(clock, 'versions');
      await expect(refused).rejects.toThrow(/^store_schema: .*newer release.*schema 99.*Nothing was touched/);
      expect(await everything(both[0])).toEqual({ records, events });
    });
  });
}
