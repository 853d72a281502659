/** The life of an incident as a model: random days of alerts, ends, measurements and clocks, and what always holds. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checked,
  closeByClock,
  fire,
  incidentMoves,
  type IncidentMove,
  isOver,
  openIncident,
  recover,
  resolve,
  silenced,
} from '../../src/alerts/incident/state.ts';
import type { Incident, IncidentState } from '../../src/alerts/topics.ts';

const settings = { availableBelow: 8, recoverAbove: 15, reopenWithinMs: 1_800_000, measureAgainMinutes: [1, 5, 15] };
const start = Date.parse('2026-11-30T20:00:00Z');
const alert = (fingerprint: string) => ({ fingerprint, title: 'Low', source: 'alertmanager' as const });
const opened = () => openIncident('i1', 'box', 'C1', alert('a'), { nowMs: start }).topic;
const figure = (share: number) => ({ at: new Date(start).toISOString(), availableKiB: share, totalKiB: 100 });
const reclaimed = (incident: Incident): Incident => ({
  ...incident,
  state: 'recovered',
  endedAt: new Date(start).toISOString(),
  reclaim: { request: 'r1', at: new Date(start).toISOString(), before: figure(5), after: figure(60) },
});

const step = fc.oneof(
  fc.record({ do: fc.constantFrom('fire' as const, 'resolve' as const), of: fc.constantFrom('a', 'b', 'c') }),
  fc.record({ do: fc.constantFrom('recover' as const, 'close' as const, 'silence' as const, 'speak' as const) }),
  fc.record({ do: fc.constant('wait' as const), minutes: fc.integer({ min: 0, max: 60 }) }),
);

describe('an incident', () => {
  it('moves along its table only, counts every firing, and closes for good', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let now = start;
        let incident = opened();
        for (const each of steps) {
          if (each.do === 'wait') {
            now += each.minutes * 60_000;
            continue;
          }
          const before = incident;
          const move = apply(each, before, now);
          if (move === null) continue;
          incident = move.topic;
          expect(incident.version).toBe(before.version + 1);
          const may: readonly IncidentState[] = incidentMoves[before.state];
          expect(incident.state === before.state || may.includes(incident.state)).toBe(true);
          expect(before.state).not.toBe('closed');
          if (each.do === 'fire') expect(incident.count).toBe(before.count + 1);
          if (incident.state === 'resolved') expect(incident.firing).toEqual([]);
          expect(isOver(incident.state)).toBe(incident.endedAt !== undefined || incident.state === 'closed');
          expect(incident.slot === null).toBe(incident.state === 'closed');
        }
      }),
    );
  });

  function apply(each: { do: string; of?: string }, incident: Incident, nowMs: number): IncidentMove | null {
    switch (each.do) {
      case 'fire':
        return fire(incident, alert(each.of ?? 'a'), { nowMs });
      case 'resolve':
        return resolve(incident, [each.of ?? 'a'], nowMs);
      case 'recover':
        return recover(incident, figure(50), nowMs);
      case 'silence':
        return silenced(incident, { until: new Date(nowMs).toISOString(), by: 'U1' }, nowMs);
      case 'speak':
        return silenced(incident, undefined, nowMs);
      default:
        return closeByClock(incident, settings, nowMs);
    }
  }

  it('reopens inside the window, and is closed after it', () => {
    const over = resolve(opened(), ['a'], start)!.topic;
    expect(closeByClock(over, settings, start + 1_799_000)).toBeNull();
    expect(fire(over, alert('a'), { nowMs: start + 1_000 })!.topic).toMatchObject({ state: 'open', reopened: 1 });
    const closed = closeByClock(over, settings, start + 1_800_000)!.topic;
    expect(closed).toMatchObject({ state: 'closed', slot: null });
    expect(fire(closed, alert('a'), { nowMs: start + 1_900_000 })).toBeNull();
  });

  it('takes a stale repeat right after a reclaim for what it is, and a later one for news', () => {
    const done = reclaimed(opened());
    expect(fire(done, alert('a'), { nowMs: start + 60_000 })!.topic).toMatchObject({ state: 'recovered', count: 2 });
    expect(fire(done, alert('a'), { nowMs: start + 660_000 })!.topic).toMatchObject({ state: 'open', reopened: 1 });
  });

  it('measures again after a reclaim: held, in use again, or back below the limit, which reopens it', () => {
    const done = reclaimed(opened());
    const check = (share: number) =>
      checked(done, { minutes: 5, at: figure(0).at, figure: figure(share) }, settings, start)!.topic;
    expect(check(58)).toMatchObject({ state: 'recovered', checks: [{ minutes: 5 }] });
    expect(check(4)).toMatchObject({ state: 'open', reopened: 1 });
    expect(check(4).reason).toMatch(/It came back/);
    const once = check(58);
    expect(checked(once, { minutes: 5, at: figure(0).at, figure: figure(58) }, settings, start)).toBeNull();
  });

  it('counts while it is silent, and shows nothing', () => {
    const silence = { until: figure(0).at, by: 'U1' };
    expect(fire(opened(), alert('a'), { nowMs: start, silence })).toMatchObject({ topic: { count: 2 }, deliver: [] });
  });
});
