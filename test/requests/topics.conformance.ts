/** What every store must do for incidents, sweeps and readings. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openIncident } from '../../src/alerts/incident/state.ts';
import type { Sample } from '../../src/alerts/watch/sample.ts';
import type { Incident, Sweep, Topic } from '../../src/alerts/topics.ts';
import type { Store } from '../../src/requests/store.ts';
import { TestClock } from './fixtures.ts';
import type { Backend } from './store.conformance.ts';

let serial = 0;
const fresh = (prefix: string) => `${prefix}${(serial += 1)}`;

export function describeTopics(name: string, start: () => Promise<Backend>): void {
  describe(`topics on ${name}`, () => {
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
      id = fresh('i');
      host = fresh('topic-host');
      clock.ms += 3_600_000;
    });

    const alert = { fingerprint: 'f1', title: 'Memory is low', source: 'alertmanager' } as const;
    const incident = (as = id): Incident => openIncident(as, host, 'C1', alert, { nowMs: clock.ms }).topic;
    const sweep = (): Sweep => ({
      kind: 'sweep',
      id,
      version: 1,
      slot: `sweep.${id}`,
      channel: 'C1',
      createdAt: new Date(clock.ms).toISOString(),
      updatedAt: new Date(clock.ms).toISOString(),
      requester: { id: 'UANN' },
      asked: 'all',
      hosts: ['a', 'b'],
    });
    const over = (topic: Topic): Topic => ({ ...topic, slot: null, version: topic.version + 1 });
    const waiting = async () =>
      (await store.claimDeliveries('t', 60_000, 1000)).filter((d) => d.requestId === id).map((d) => d.view);

    it('gives back exactly what was written, by id and by slot', async () => {
      const topic = incident();
      expect(await store.topics.create({ topic })).toEqual({ ok: true, topic });
      expect(await other.topics.get(id)).toEqual(topic);
      expect(await other.topics.inSlot(`incident.${host}`)).toEqual(topic);
      expect((await other.topics.live('incident')).map((t) => t.id)).toContain(id);
      expect((await other.topics.live('sweep')).map((t) => t.id)).not.toContain(id);
      expect(await store.topics.get('nothing')).toBeNull();
      expect(await store.topics.inSlot('incident.nowhere')).toBeNull();
    });

    it('lets one of many into a slot, and shows the others who stands there', async () => {
      const tries = Array.from({ length: 12 }, (_, n) =>
        (n % 2 === 0 ? store : other).topics.create({ topic: incident(`${id}-${n}`) }),
      );
      const results = await Promise.all(tries);
      const winners = results.filter((r) => r.ok);
      expect(winners).toHaveLength(1);
      for (const r of results.filter((each) => !each.ok)) {
        expect(r).toMatchObject({ ok: false, why: 'slot_taken', current: { id: winners[0]!.topic.id } });
      }
      expect(await store.topics.create({ topic: winners[0]!.topic })).toMatchObject({ ok: false, why: 'exists' });
    });

    it('lets one of many writers of a version through, and frees the slot of what is over', async () => {
      const topic = incident();
      await store.topics.create({ topic });
      const writes = Array.from({ length: 12 }, (_, n) =>
        (n % 2 === 0 ? store : other).topics.update({ topic: { ...topic, version: 2, reason: `writer ${n}` } }),
      );
      const results = await Promise.all(writes);
      expect(results.filter((r) => r.ok)).toHaveLength(1);
      const now = await store.topics.get(id);
      for (const r of results.filter((each) => !each.ok))
        expect(r).toEqual({ ok: false, why: 'changed', current: now });
      await store.topics.update({ topic: over(now!) });
      expect(await store.topics.inSlot(`incident.${host}`)).toBeNull();
      expect(await store.topics.get(id)).toMatchObject({ slot: null });
      expect((await store.topics.create({ topic: incident(`${id}-next`) })).ok).toBe(true);
      expect(await store.topics.update({ topic: { ...topic, id: 'ghost', version: 2 } })).toMatchObject({
        ok: false,
        current: null,
      });
    });

    it('puts up what is to be shown, once per view, and nothing for topics without a channel', async () => {
      const topic = incident();
      await store.topics.create({ topic, deliver: ['incident'] });
      await store.topics.update({ topic: { ...topic, version: 2 }, deliver: ['incident', 'incident_end'] });
      expect(await store.delivery(`${id}.incident`)).toMatchObject({ revision: 2, channel: 'C1', requestId: id });
      expect((await waiting()).sort()).toEqual(['incident', 'incident_end']);
      const quiet = { ...incident(`${id}-q`), slot: null, channel: null };
      await store.topics.create({ topic: quiet, deliver: ['incident'] });
      expect(await store.delivery(`${id}-q.incident`)).toBeNull();
    });

    it('keeps the newest answer of each host of a sweep, and shows the sweep again with each', async () => {
      const topic = sweep();
      await store.topics.create({ topic, deliver: ['sweep'] });
      const row = (of: string, text: string) =>
        ({ host: of, at: topic.createdAt, tookMs: 5, outcome: 'fine', text }) as const;
      await Promise.all([store.topics.putRow(topic, row('b', 'first')), other.topics.putRow(topic, row('a', 'only'))]);
      await other.topics.putRow(topic, row('b', 'second'));
      expect(await store.topics.rows(id)).toEqual([row('a', 'only'), row('b', 'second')]);
      expect(await store.topics.rows('nothing')).toEqual([]);
      expect(await store.delivery(`${id}.sweep`)).toMatchObject({ revision: 4 });
    });

    it('keeps a bounded day of readings per host', async () => {
      const sample = (at: number): Sample => ({
        at,
        totalKiB: 1000,
        availableKiB: at % 1000,
        swapUsedKiB: 0,
        oomKills: 0,
        swapInPages: 0,
        swapOutPages: 0,
        pageKiB: 4,
        stalledPercent: null,
        shm: null,
      });
      const first = clock.ms;
      for (let n = 0; n < 1450; n += 1) await store.topics.addSample(host, sample(first + n));
      const kept = await other.topics.samples(host, 0);
      expect(kept).toHaveLength(1440);
      expect(kept[0]).toEqual(sample(first + 10));
      expect(kept.at(-1)).toEqual(sample(first + 1449));
      await store.topics.addSample(host, sample(first + 86_400_000 + 1440));
      expect((await store.topics.samples(host, 0)).map((s) => s.at - first)).toEqual([
        1440, 1441, 1442, 1443, 1444, 1445, 1446, 1447, 1448, 1449, 86_401_440,
      ]);
      expect(await store.topics.samples(host, first + 86_400_000)).toHaveLength(1);
      expect(await store.topics.samples('nowhere', 0)).toEqual([]);
    });

    it('removes what was over long ago with all that belongs to it, never what is live or still to be shown', async () => {
      const topic = sweep();
      await store.topics.create({ topic, deliver: ['sweep'] });
      await store.topics.putRow(topic, { host: 'a', at: topic.createdAt, tookMs: 1, outcome: 'fine', text: '' });
      const later = new Date(clock.ms + 10_000).toISOString();
      await store.topics.trim(later);
      expect(await store.topics.get(id)).not.toBeNull();
      await store.topics.update({ topic: over(topic) });
      await store.topics.trim(later);
      expect(await store.topics.get(id)).not.toBeNull();
      const [delivery] = (await store.claimDeliveries('t', 1_000, 1000)).filter((d) => d.requestId === id);
      await store.settleDelivery(delivery!.key, 't', { delivered: delivery!.revision, messageTs: '1.2' });
      expect(await store.topics.trim(topic.createdAt)).toBe(0);
      expect(await store.topics.trim(later)).toBeGreaterThan(0);
      expect(await store.topics.get(id)).toBeNull();
      expect(await store.topics.rows(id)).toEqual([]);
      expect(await store.delivery(`${id}.sweep`)).toBeNull();
    });
  });
}
