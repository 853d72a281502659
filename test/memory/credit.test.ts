import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { creditBound, creditStep, otherChange } from '../../src/memory/credit.ts';
import type { Finding, StepReport } from '../../src/memory/contract.ts';
import { memorySample, settled, type MemorySample } from '../../src/memory/sample.ts';
import { captureOf, caseOf, plainBox } from './cases.ts';

const gib = 1024 * 1024;
const at = (over: Partial<Record<keyof typeof plainBox, number>>, parkedPages = 0): MemorySample =>
  memorySample(captureOf({ ...plainBox, ...over }, { '/proc/zoneinfo': `  cpu: 0\n    count: ${parkedPages}\n` }))!;
const before = at({});

describe('what a step gave back', () => {
  it('credits a kill with the memory of its processes, not with what a backup read meanwhile', () => {
    const after = at({
      AnonPages: 10 * gib,
      'Active(anon)': 10 * gib,
      Cached: 34 * gib,
      'Active(file)': 18 * gib,
      MemFree: 17 * gib,
      MemAvailable: 49 * gib,
    });
    const credit = creditStep(before, after, 'kill');
    expect(credit).toEqual({ freeKiB: 10 * gib, availableKiB: 10 * gib, byClass: { anonymous: 10 * gib } });
    expect(otherChange(before, after, [credit])).toEqual({ freeKiB: -3 * gib, availableKiB: 0 });
  });

  it('credits a drop with cache in free, and next to nothing in available: free +26 GiB, available +0', () => {
    const after = at({ Cached: 5 * gib, 'Active(file)': 2 * gib, 'Inactive(file)': 2 * gib, MemFree: 36 * gib });
    const credit = creditStep(before, after, 'drop_caches');
    expect(credit).toEqual({ freeKiB: 26 * gib, availableKiB: 0, byClass: { page_cache: 26 * gib } });
    expect(otherChange(before, after, [credit])).toEqual({ freeKiB: 0, availableKiB: 0 });
  });

  it('does not credit a drop with the memory of a job that ended beside it', () => {
    const after = at({ AnonPages: 15 * gib, Cached: 21 * gib, MemFree: 25 * gib, MemAvailable: 44 * gib });
    const credit = creditStep(before, after, 'drop_caches');
    expect(credit).toMatchObject({ freeKiB: 10 * gib, availableKiB: 0 });
    expect(otherChange(before, after, [credit])).toEqual({ freeKiB: 5 * gib, availableKiB: 5 * gib });
  });

  it('credits no step with what moved by itself during a sync (beastie-sync)', () => {
    const { meminfo, evidence } = caseOf('beastie-sync');
    const first = memorySample(captureOf(meminfo))!;
    const last = memorySample(captureOf({ ...meminfo, ...(evidence['after_sync'] as Record<string, number>) }))!;
    expect(otherChange(first, last, [])).toEqual({ freeKiB: 24_656, availableKiB: 24_752 });
    expect(creditStep(first, last, 'drop_caches').freeKiB).toBe(-100);
  });

  it('counts pages on per-CPU lists as free on both sides', () => {
    const after = at({ AnonPages: 18 * gib, MemFree: 11.5 * gib }, 131_072);
    expect(after.freeKiB).toBe(12 * gib);
    expect(creditStep(before, after, 'kill').freeKiB).toBe(2 * gib);
    expect(otherChange(before, after, [creditStep(before, after, 'kill')]).freeKiB).toBe(0);
  });
});

describe('what a step can have given back at most', () => {
  const range = (high: number) => ({ low: 0, high });
  const mib = 1024;
  const kill = (results: StepReport['targets'][number][], high = 600 * mib): StepReport => ({
    ...{ id: 'kill-1', action: 'kill', state: 'done', tookMs: 1 },
    targets: results as { pid: number; startTime: number }[],
    ...{ expectedFreeKiB: range(high), expectedAvailableKiB: range(high) },
  });
  const target = (pid: number, result?: 'exited' | 'killed' | 'still_there' | 'already_gone') => ({
    ...{ pid, startTime: 5 },
    ...(result === undefined ? {} : { result }),
  });
  const held = (...kiB: number[]): Finding[] => [
    {
      ...{ class: 'leftover_build', kiB: 0, reclaimableKiB: range(0), action: 'kill', evidence: [] },
      processes: kiB.map((size, i) => ({
        ...{ pid: 10 + i, startTime: 5, uid: 1, user: 'ana', comm: 'cicc', command: 'cicc', kiB: size },
      })),
    },
  ];

  it('is what the ended ones held: memory another job freed meanwhile is other activity', () => {
    const bound = creditBound(kill([target(10, 'exited'), target(11, 'killed')]), held(300 * mib, 300 * mib));
    const after = at({
      AnonPages: 20 * gib - 850 * mib,
      MemFree: 10 * gib + 850 * mib,
      MemAvailable: 39 * gib + 850 * mib,
    });
    const credit = creditStep(before, after, 'kill', bound);
    expect(credit.freeKiB).toBeGreaterThanOrEqual(600 * mib);
    expect(credit.freeKiB).toBeLessThanOrEqual(700 * mib);
    expect(credit).toMatchObject({ availableKiB: credit.freeKiB, byClass: { anonymous: credit.freeKiB } });
    expect(otherChange(before, after, [credit]).freeKiB).toBe(850 * mib - credit.freeKiB);
  });

  it.each([
    ['one of two is still there', kill([target(10, 'exited'), target(11, 'still_there')]), 300, 400],
    ['none ended', kill([target(10, 'still_there'), target(11, 'still_there')]), 0, 40],
    ['one ended by itself before', kill([target(10, 'already_gone'), target(11, 'killed')]), 300, 400],
    ['the answer was lost', { ...kill([target(10, 'already_gone'), target(11)]), state: 'unknown' as const }, 600, 700],
  ])('shrinks with what did not end: %s', (_, done, least, most) => {
    const { freeKiB } = creditBound(done, held(300 * mib, 300 * mib));
    expect(freeKiB / mib).toBeGreaterThanOrEqual(least);
    expect(freeKiB / mib).toBeLessThanOrEqual(most);
  });

  it('counts what the targets hold now, where they grew since the plan', () => {
    const done = kill([target(10, 'exited')], 100 * mib);
    expect(creditBound(done, held(5 * gib)).freeKiB).toBeGreaterThanOrEqual(5 * gib);
  });

  it('leaves pages of a driver to the kill of their holder, whatever its processes held', () => {
    const after = at({ AnonPages: 19 * gib, MemFree: 13 * gib });
    const bound = creditBound(kill([target(10, 'exited')], gib), held(gib));
    expect(creditStep(before, after, 'kill', bound).byClass).toEqual({ anonymous: gib, unaccounted: 2 * gib });
  });

  it.each([
    ['another job freed memory', 283, 200, 200],
    ['another job took memory', -57, 200, 0],
    ['the caps on cache were lifted', 120, 200, 120],
  ])('is for a drop what the kernel had withheld of the cache: %s', (_, movedMiB, capMiB, credited) => {
    const after = at({ Cached: 30 * gib, MemFree: 11 * gib, MemAvailable: plainBox.MemAvailable + movedMiB * mib });
    const drop: StepReport = {
      ...{ id: 'drop-1', action: 'drop_caches', state: 'done', tookMs: 1, targets: [{ level: 1 }] },
      ...{ expectedFreeKiB: range(gib), expectedAvailableKiB: range(capMiB * mib) },
    };
    const credit = creditStep(before, after, 'drop_caches', creditBound(drop, []));
    expect(credit.availableKiB).toBe(credited * mib);
    const other = otherChange(before, after, [credit]);
    expect(other.availableKiB + credit.availableKiB).toBe(after.availableKiB - before.availableKiB);
    expect(other.freeKiB + credit.freeKiB).toBe(after.freeKiB - before.freeKiB);
  });
});

describe('when memory has come to rest', () => {
  const free = (...kiB: number[]) => kiB.map((MemFree) => at({ MemFree }));
  it.each([
    ['fewer than three readings', free(1000, 1000), false],
    ['the newest three agree', free(9 * gib, 1000, 1000, 60_000), true],
    ['it still moves', free(1000, 40_000, 80_000), false],
  ])('%s', (_, samples, rest) => {
    expect(settled(samples)).toBe(rest);
  });

  it('is no reading at all without meminfo', () => {
    expect(memorySample(captureOf({}))).toBeNull();
  });
});

describe('whatever moved between any two looks', () => {
  const size = fc.integer({ min: 0, max: 8 * gib });
  const look = fc
    .record({
      AnonPages: size,
      Cached: size,
      Shmem: size,
      SReclaimable: size,
      PageTables: size,
      MemFree: size,
      MemAvailable: size,
    })
    .map((over) => at({ ...over, Cached: over.Cached + over.Shmem, KReclaimable: over.SReclaimable }));
  const step = fc.record({
    action: fc.constantFrom('kill', 'remove_files', 'ipcrm', 'drop_caches'),
    most: fc.record({ freeKiB: size, availableKiB: size }),
    after: look,
  });

  const sizeOf = ({ classes }: MemorySample, name: string): number =>
    Object.entries(classes).find(([entry]) => entry === name)?.[1] ?? 0;

  it('what is credited, and what is left over as other, are the whole change, and nobody is credited beyond his due', () => {
    fc.assert(
      fc.property(look, fc.array(step, { maxLength: 4 }), look, (first, steps, last) => {
        let from = first;
        const credits = steps.map(({ action, most, after }) => {
          const credit = creditStep(from, after, action, most);
          expect(Object.values(credit.byClass).reduce((sum, kiB) => sum + kiB, 0)).toBe(credit.freeKiB);
          for (const [name, kiB] of Object.entries(credit.byClass)) {
            const moved = sizeOf(from, name) - sizeOf(after, name);
            // No class gives more than it lost, and one that grew counts against the step in full.
            expect(kiB).toBeLessThanOrEqual(moved);
            if (moved < 0) expect(kiB).toBe(moved);
          }
          const driverKiB = credit.byClass['unaccounted'] ?? 0;
          if (action === 'drop_caches') {
            expect(credit.availableKiB).toBeGreaterThanOrEqual(0);
            expect(credit.availableKiB).toBeLessThanOrEqual(most.availableKiB);
          } else {
            expect(credit.freeKiB - driverKiB).toBeLessThanOrEqual(most.freeKiB);
            expect(credit.availableKiB).toBe(credit.freeKiB);
          }
          if (action !== 'kill') expect(driverKiB).toBe(0);
          from = after;
          return credit;
        });
        const other = otherChange(first, last, credits);
        for (const figure of ['freeKiB', 'availableKiB'] as const) {
          const credited = credits.reduce((sum, credit) => sum + credit[figure], 0);
          expect(credited + other[figure]).toBe(last[figure] - first[figure]);
        }
      }),
    );
  });
});
