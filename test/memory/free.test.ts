import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { commandText, fileText } from '../../src/memory/blob.ts';
import { availableOf, freeFormulas, inferFormula, memoryBy, parseFreeOutput } from '../../src/memory/free.ts';
import { freeSize, renderFreeDiff, renderFreeTable } from '../../src/memory/free-table.ts';
import { parseMeminfo } from '../../src/memory/meminfo.ts';
import { caseOf, meminfoText, plainBox, sample, samples, withMeminfo } from './cases.ts';

const of = (fields: Readonly<Record<string, number>>) => parseMeminfo(meminfoText(fields));

/** Recorded from procps 4.0.2 with made-up meminfo files bound over /proc/meminfo. */
const recorded = z
  .array(z.object({ meminfo: z.record(z.string(), z.number()), out: z.string() }))
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/free/procps-4.0.2.json'), 'utf8')));

describe('free -h', () => {
  it('prints what procps 4.0.2 printed for 58 made-up boxes, to the digit', () => {
    for (const { meminfo, out } of recorded) {
      const human = out.split('\n').slice(0, 3).join('\n');
      expect(renderFreeTable(memoryBy('4.0.1', of(meminfo)))).toBe(human);
    }
    expect(recorded.length).toBeGreaterThan(50);
  });

  it('prints what the installed free prints, when both see the same figures', () => {
    if (!spawnSync('free', ['--version'], { encoding: 'utf8' }).stdout.includes('procps')) {
      console.warn('LEFT OUT: no procps free on this machine to compare with');
      return;
    }
    const env = { LC_ALL: 'C', PATH: process.env['PATH'] };
    // The figures move between the reads, so several tries are needed; a wrong digit would never agree.
    const agreed = Array.from({ length: 100 }).some(() => {
      const meminfo = parseMeminfo(readFileSync('/proc/meminfo', 'utf8'));
      const human = spawnSync('free', ['-h'], { encoding: 'utf8', env }).stdout.trimEnd();
      const kibi = spawnSync('free', ['-k'], { encoding: 'utf8', env }).stdout;
      return renderFreeTable(memoryBy(inferFormula(parseFreeOutput(kibi), meminfo).formula, meminfo)) === human;
    });
    expect(agreed).toBe(true);
  });

  it.each([
    [0, '0B'],
    [1, '1.0Ki'],
    [10, '10Ki'],
    [999, '999Ki'],
    [1000, '1.0Mi'],
    [8448, '8.2Mi'], // 8.25: C rounds half to even
    [8960, '8.8Mi'], // 8.75
    [10188, '9.9Mi'],
    [10189, '9Mi'], // 9.95 would round to four characters, so procps cuts it
    [10240, '10Mi'],
    [386_924_544, '369Gi'],
    [1_072_693_248, '1.0Ti'],
  ])('%i KiB is %s', (kiB, text) => {
    expect(freeSize(kiB)).toBe(text);
  });

  it('never needs more than five characters below an exbibyte', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 44 }), (kiB) => freeSize(kiB).length <= 5));
  });

  it('is never off by more than procps is: a tenth', () => {
    const units = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
    const bytes = (text: string) => {
      const [, number = '', unit = ''] = /^([\d.]+)(\D+)$/.exec(text) ?? [];
      return Number(number) * 1024 ** units.indexOf(unit);
    };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (kiB) => {
        return Math.abs(bytes(freeSize(kiB)) - kiB * 1024) <= kiB * 102.4;
      }),
    );
  });

  it('shows before, after and change', () => {
    const before = memoryBy('4.0.1', of(plainBox));
    const after = { ...before, usedKiB: before.usedKiB - 5 * 1024 * 1024, freeKiB: before.freeKiB + 5 * 1024 * 1024 };
    const lines = renderFreeDiff(before, after).split('\n');
    expect(lines.map((line) => line.trim().split(/\s+/))).toEqual([
      ['total', 'used', 'free', 'shared', 'buff/cache', 'available'],
      ['before', '64Gi', '25Gi', '10Gi', '1.0Gi', '31Gi', '39Gi'],
      ['after', '64Gi', '20Gi', '15Gi', '1.0Gi', '31Gi', '39Gi'],
      ['change', '0', '-5.0Gi', '+5.0Gi', '0', '0', '0'],
    ]);
    expect(new Set(lines.map((line) => line.length)).size).toBe(1);
  });
});

describe('what used means', () => {
  it.each(withMeminfo.filter((c) => c.derived_kB?.['free_used_3312'] !== undefined))(
    '$id: used by the sum of 3.3.12',
    ({ meminfo, derived_kB }) => {
      expect(memoryBy('3.3.12', of(meminfo)).usedKiB).toBe(derived_kB!['free_used_3312']);
    },
  );

  it.each(withMeminfo.filter((c) => c.derived_kB?.['free_used_401'] !== undefined))(
    '$id: used by the sum of 4.0.1',
    ({ meminfo, derived_kB }) => {
      expect(memoryBy('4.0.1', of(meminfo)).usedKiB).toBe(derived_kB!['free_used_401']);
    },
  );

  it('agrees with procps 3.3.15 and busybox on the same box (libreelec-3550)', () => {
    const { meminfo, free } = caseOf('libreelec-3550');
    expect(memoryBy('3.3.12', of(meminfo))).toMatchObject({ usedKiB: free['used'], buffCacheKiB: free['buff_cache'] });
    expect(memoryBy('busybox', of(meminfo))).toMatchObject(
      z
        .object({ used: z.number(), buff_cache: z.number() })
        .transform((b) => ({ usedKiB: b.used, buffCacheKiB: b.buff_cache }))
        .parse(free['busybox']),
    );
  });

  it('agrees with what old procps printed on the box of awesome-prom-50, who counted all slab as cache', () => {
    const { meminfo, free } = caseOf('awesome-prom-50');
    const printed = {
      totalKiB: 16_268_028,
      usedKiB: Number(free['used']),
      freeKiB: Number(free['free']),
      buffCacheKiB: Number(free['buff_cache']),
    };
    expect(inferFormula(printed, of(meminfo))).toEqual({ formula: '3.3.10', known: true });
  });

  it.each(freeFormulas)('finds formula %s by what it printed', (formula) => {
    const meminfo = of({ ...plainBox, Shmem: 3 * 1024 * 1024 });
    const { totalKiB, usedKiB, freeKiB, buffCacheKiB } = memoryBy(formula, meminfo);
    expect(inferFormula({ totalKiB, usedKiB: usedKiB + 40, freeKiB, buffCacheKiB }, meminfo)).toEqual({
      formula,
      known: true,
    });
  });

  it.each(samples)('prints the figures the box %s printed', (name) => {
    const capture = sample(name);
    const meminfo = parseMeminfo(fileText(capture, '/proc/meminfo')!);
    const printed = parseFreeOutput(commandText(capture, 'free -k')!)!;
    const { formula, known } = inferFormula(printed, meminfo);
    expect(known).toBe(true);
    expect(memoryBy(formula, meminfo)).toMatchObject(printed);
  });

  it.each([
    ['nothing', ''],
    ['usage text of busybox', 'BusyBox v1.36.1 multi-call binary.\n\nUsage: free [-bkmgh]\n'],
    ['figures run together', 'Mem:   1676422348815827468288  936755200   11292672  620691456 8835600384\n'],
    ['a decimal comma', 'Mem:            62Gi       5,5Gi        18Gi        27Mi        38Gi        56Gi\n'],
  ])('does not compute from %s', (_, text) => {
    expect(parseFreeOutput(text)).toBeNull();
  });

  it('reads the row of another locale, even with no space after its label', () => {
    expect(
      parseFreeOutput(
        '         gesamt\nSpeicher:33678610432  4541730816 19486801920   201273344  9650077696 28465971200\n',
      ),
    ).toMatchObject({ totalKiB: 33_678_610_432, usedKiB: 4_541_730_816 });
  });

  it('does not take cached for available in the old layout', () => {
    const text =
      '             total       used       free     shared    buffers     cached\nMem:      32977920   31124480    1852416     674816     378880   21277696\n-/+ buffers/cache:    9467904   23508992\n';
    expect(parseFreeOutput(text)).toEqual({
      totalKiB: 32_977_920,
      usedKiB: 31_124_480,
      freeKiB: 1_852_416,
      buffCacheKiB: 378_880 + 21_277_696,
    });
  });
});

describe('available on kernels that do not print it', () => {
  const { MemAvailable, ...old } = plainBox;
  it('is estimated as the kernel does it, and never beyond the box', () => {
    const low = 100 * 1024;
    expect(availableOf(of(old), low)).toBe(plainBox.MemFree + 30 * 1024 * 1024 + 512 * 1024 - 3 * low);
    expect(MemAvailable).toBeLessThan(plainBox.MemTotal);
  });
  it('is free memory where a container shows the figure of its host', () => {
    expect(availableOf(of({ ...plainBox, MemAvailable: plainBox.MemTotal + 1 }), null)).toBe(plainBox.MemFree);
  });
});
