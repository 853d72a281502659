/** What readings of a box come to: alarms and their end, with a gap between the two limits, and never by `free` or `used`. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judge, sampleOf, trendOf, type WatchSettings } from '../../src/alerts/watch/judge.ts';
import type { Sample } from '../../src/alerts/watch/sample.ts';
import { captureSchema } from '../../src/memory/contract.ts';

const settings: WatchSettings = { everyMs: 60_000, availableBelow: 8, recoverAbove: 15, for: 3 };
const start = Date.parse('2026-11-30T20:00:00Z');
const reading = (n: number, some: Partial<Sample> = {}): Sample => ({
  ...{ at: start + n * 60_000, totalKiB: 1_000_000, availableKiB: 500_000, swapUsedKiB: 0, oomKills: 0 },
  ...{ swapInPages: 0, swapOutPages: 0, pageKiB: 4, stalledPercent: 0, shm: null },
  ...some,
});
const shares = (...percents: number[]) => percents.map((p, n) => reading(n, { availableKiB: Math.round(p * 10_000) }));
const shm = (used: number) => ({ shm: { totalKiB: 1_000_000, usedKiB: used } });

describe('the watcher', () => {
  it.each<[string, Sample[], RegExp | null, boolean]>([
    ['no reading', [], null, false],
    ['two low ones', shares(3, 3), null, false],
    ['three low ones', shares(3, 3, 3), /Memory is short: .*\(3 %\), below 8 % for 3 readings/, false],
    ['a single dip', shares(50, 3, 50, 50), null, false],
    ['exactly the limit', shares(8, 8, 8), null, false],
    ['between the limits', shares(12, 12, 12), null, false],
    ['well again', shares(3, 16, 16, 16), null, true],
    ['well for too short', shares(3, 16, 16), null, false],
    ['low ones with a hole in time', [...shares(3, 3), reading(30, { availableKiB: 30_000 })], null, false],
    ['no memory free, plenty available', shares(60, 60, 60), null, true],
    ['an OOM kill, at once', [reading(0), reading(1, { oomKills: 2 })], /ended 2 processes/, false],
    ['a counter that began anew', [reading(0, { oomKills: 9 }), reading(1, { oomKills: 0 })], null, false],
    [
      'well again, but for an OOM kill',
      [reading(0), reading(1, { oomKills: 1 }), reading(2, { oomKills: 1 }), reading(3, { oomKills: 1 })],
      null,
      false,
    ],
    [
      'work that stands still',
      [0, 1, 2].map((n) => reading(n, { stalledPercent: 30 })),
      /stands still for memory 30 %/,
      false,
    ],
    ['no word about pressure', [0, 1, 2].map((n) => reading(n, { stalledPercent: null })), null, true],
    [
      'thrashing',
      [0, 1, 2, 3].map((n) => reading(n, { swapInPages: n * 600_000, swapOutPages: n * 600_000 })),
      /swaps in and out/,
      false,
    ],
    ['putting aside only', [0, 1, 2, 3].map((n) => reading(n, { swapOutPages: n * 600_000 })), null, true],
    ['a full /dev/shm', [0, 1, 2].map((n) => reading(n, shm(990_000))), /\/dev\/shm is full/, false],
    [
      'a tiny full /dev/shm',
      [0, 1, 2].map((n) => reading(n, { shm: { totalKiB: 65_536, usedKiB: 65_536 } })),
      null,
      true,
    ],
  ])('%s', (_title, samples, alarm, recovered) => {
    const judged = judge(samples, settings);
    if (alarm === null) expect(judged.alarm).toBeNull();
    else expect(judged.alarm).toMatch(alarm);
    expect(judged.recovered).toBe(recovered);
  });

  const anyReadings = fc.array(
    fc.record({
      share: fc.integer({ min: 0, max: 100 }),
      stalled: fc.option(fc.integer({ min: 0, max: 100 })),
      oom: fc.boolean(),
    }),
    { maxLength: 12 },
  );
  it('never alarms and recovers at once, and between the limits changes nothing', () => {
    fc.assert(
      fc.property(anyReadings, (given) => {
        let kills = 0;
        const samples = given.map(({ share, stalled, oom }, n) => {
          kills += oom ? 1 : 0;
          return reading(n, { availableKiB: share * 10_000, stalledPercent: stalled, oomKills: kills });
        });
        const { alarm, recovered } = judge(samples, settings);
        expect(alarm !== null && recovered).toBe(false);
        const last = samples.slice(-3);
        if (recovered) for (const s of last) expect(s.availableKiB).toBeGreaterThan(150_000);
        if (last.some((s) => s.availableKiB >= 80_000) && last.every((s) => s.availableKiB <= 150_000))
          expect(recovered).toBe(false);
      }),
    );
  });

  it('says since when', () => {
    expect(trendOf(shares(60, 40, 5))).toMatch(/^Available fell from .* at 20:00 UTC to .* in 2 min\.$/);
    expect(trendOf(shares(50, 50))).toBeNull();
    expect(trendOf([])).toBeNull();
  });

  it('reads the cheap part of a look, and is silent where the kernel does not tell what is available', () => {
    const files = {
      '/proc/meminfo': 'MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n',
      '/proc/vmstat': 'pswpin 3\npswpout 4\noom_kill 2\n',
      '/proc/pressure/memory':
        'some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.50 avg60=7.25 avg300=1.00 total=2\n',
    };
    const df =
      'Filesystem 1K-blocks Used Available Use% Mounted on\ntmpfs 5 1 4 20% /run\nshm 900 800 100 89% /dev/shm\n';
    const capture = captureSchema.parse({
      capture: 1,
      host: 'b',
      takenAt: 't',
      files,
      commands: { 'df tmpfs': { status: 0, stdout: df } },
    });
    expect(sampleOf(capture, 7)).toEqual({
      ...{
        at: 7,
        totalKiB: 1000,
        availableKiB: 400,
        swapUsedKiB: 6,
        oomKills: 2,
        swapInPages: 3,
        swapOutPages: 4,
        pageKiB: 4,
      },
      ...{ stalledPercent: 7.25, shm: { totalKiB: 900, usedKiB: 800 } },
    });
    const old = captureSchema.parse({
      capture: 1,
      host: 'b',
      takenAt: 't',
      files: { '/proc/meminfo': 'MemTotal: 1000 kB\nMemFree: 1 kB\n' },
    });
    expect(sampleOf(old, 7)).toBeNull();
  });
});
