import { describe, expect, it } from 'vitest';
import { creditStep, otherChange } from '../../src/memory/credit.ts';
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
