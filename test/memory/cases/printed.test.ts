/** Public outputs of `free` and of the like: what may be read from them, and what is only shown. */
import { describe, expect, it } from 'vitest';
import { inferFormula, memoryBy, parseFreeOutput } from '../../../src/memory/free.ts';
import { parseMeminfo } from '../../../src/memory/meminfo.ts';
import { redactCommand } from '../../../src/memory/redact.ts';
import { parseCmdline } from '../../../src/memory/processes/table.ts';
import { think } from '../../../src/memory/think.ts';
import { creditStep, otherChange } from '../../../src/memory/credit.ts';
import { memorySample } from '../../../src/memory/sample.ts';
import { deltaText } from '../../../src/memory/sizes.ts';
import { defaultOptions, makeBox } from '../box.ts';
import { captureOf, caseOf, meminfoText } from '../cases.ts';
import { reportOf as publicReport } from '../report-cases.ts';
import { attended, figures, GB, GiB, shell } from './check.ts';

const input = (id: string) => publicReport(id).input;
const lines = (id: string, name: string): string => (input(id)[name] as string[]).join('\n');
/** A box of 64 GiB whose `free -k` printed this. */
const printing = (text: string) => {
  const files = figures({ total: 64 * GiB, anon: 20 * GiB, file: 30 * GiB });
  const box = makeBox({
    files,
    processes: [shell, attended({ pid: 4000, anonKiB: 20 * GiB })],
    commands: { 'free -k': text },
  });
  return think(box, defaultOptions);
};
const silent = printing('').diagnosis;

describe('the figures of a box come from meminfo, whatever its free prints', () => {
  it.each([
    ['F01, a table in another language and in MiB', lines('F01', 'free_m')],
    ['F02, no space after the label, and bytes', lines('F02', 'free_b')],
    ['F05, a decimal comma', `Mem: ${String(input('F05')['row'])}`],
    ['F06, columns run together', lines('F06', 'free_b')],
    ['F08, the usage text of busybox', lines('F08', 'stderr')],
    ['F09, six columns of which the last is cached', lines('F09', 'free_m_1')],
    ['F09, its second box', lines('F09', 'free_m_2')],
    ['D15, shared larger than total', `Mem: ${String(input('D15')['free_h'])}`],
    ['D09, before', String(input('D09')['free_h_before'])],
  ])('%s', (_, text) => {
    const { diagnosis, freeWords } = printing(text);
    expect(diagnosis).toEqual(silent);
    expect(freeWords).toContain('assumed, as its own output was not read');
  });

  it('F02: is read past the label, all the same', () => {
    expect(parseFreeOutput(lines('F02', 'free_b'))).toMatchObject({
      totalKiB: 33_678_610_432,
      freeKiB: 19_486_801_920,
    });
  });

  it.each(['F05', 'F06', 'F08'])('%s: nothing is read from it', (id) => {
    const text = id === 'F05' ? `Mem: ${String(input(id)['row'])}` : lines(id, id === 'F06' ? 'free_b' : 'stderr');
    expect(parseFreeOutput(text)).toBeNull();
  });

  it('F09: cached is not taken for available where the heading has the old words', () => {
    const heading = '             total       used       free     shared    buffers     cached\n';
    for (const name of ['free_m_1', 'free_m_2']) {
      const [row = ''] = input('F09')[name] as string[];
      const [total, used, free, , buffers, cached] = (row.match(/\d+/g) ?? []).map(Number);
      expect(parseFreeOutput(heading + lines('F09', name))).toEqual({
        ...{ totalKiB: total, usedKiB: used, freeKiB: free },
        buffCacheKiB: (buffers ?? 0) + (cached ?? 0),
      });
    }
  });

  it('F07: procps and busybox print two kinds of used for one box, and each is recognised', () => {
    const { meminfo_kb, busybox, procps } = input('F07') as Record<string, Record<string, number>>;
    const meminfo = parseMeminfo(meminfoText({ ...meminfo_kb, MemAvailable: 7_333_736, Slab: 90_000 }));
    for (const [formula, printed] of [
      ['busybox', busybox],
      ['3.3.12', procps],
    ] as const) {
      const ours = memoryBy(formula, meminfo);
      expect(ours).toMatchObject({ usedKiB: printed!['used'], buffCacheKiB: printed!['cache'] });
      expect(inferFormula(ours, meminfo)).toEqual({ formula, known: true });
    }
  });

  // Published without the meminfo behind them: one is made up that fits, with all of buff/cache in Cached.
  it.each([
    ['digihunch', '3.3.12'],
    ['rh-406773', '3.3.12'],
    ['babka-talk', '4.0.1'],
  ])('%s: its used is the sum it should be', (id, formula) => {
    const { free } = caseOf(id);
    const unit = free.unit === 'MB' ? 1024 : 1;
    const kiB = (name: string): number => Number(free[name]) * unit;
    const meminfo = parseMeminfo(
      meminfoText({
        ...{ MemTotal: kiB('total'), MemFree: kiB('free'), MemAvailable: kiB('available'), Buffers: 0 },
        ...{ Cached: kiB('buff_cache'), Shmem: kiB('shared'), SReclaimable: 0, Slab: 0 },
      }),
    );
    const printed = {
      totalKiB: kiB('total'),
      usedKiB: kiB('used'),
      freeKiB: kiB('free'),
      buffCacheKiB: kiB('buff_cache'),
    };
    expect(inferFormula(printed, meminfo)).toEqual({ formula, known: true });
    // Printed in MiB, the last digit may be rounded.
    expect(
      Math.abs(memoryBy(formula === '4.0.1' ? '4.0.1' : '3.3.12', meminfo).usedKiB - kiB('used')),
    ).toBeLessThanOrEqual(2 * unit);
  });

  it('nopipi-rhel66: MemAvailable is found wherever it is printed, and none is needed', () => {
    const { meminfo } = caseOf('nopipi-rhel66');
    const last = parseMeminfo(`${meminfoText(meminfo)}MemAvailable: 700000 kB\n`);
    expect(memoryBy('3.3.9', last)).toMatchObject({ availableKiB: 700_000, usedKiB: 1_020_236 - 76_136 });
    expect(memoryBy('3.3.9', parseMeminfo(meminfoText(meminfo))).availableKiB).toBeGreaterThan(800_000);
  });
});

describe('what people are told of a drop', () => {
  it('D18: free +51 GB, available +0', () => {
    const kiB = (gb: number): number => Math.round(gb * GB);
    const at = (free: number, cache: number) =>
      memorySample(
        captureOf({
          ...{ MemTotal: kiB(188), MemFree: kiB(free), MemAvailable: kiB(116), AnonPages: kiB(60) },
          ...{ Buffers: 0, Cached: kiB(cache), 'Active(file)': kiB(cache) },
        }),
      )!;
    const [before, after] = [at(66, 51), at(117, 0)];
    const credit = creditStep(before, after, 'drop_caches');
    expect([credit.freeKiB, credit.availableKiB]).toEqual([kiB(117) - kiB(66), 0]);
    expect([deltaText(credit.freeKiB), deltaText(credit.availableKiB)]).toEqual(['+47 GiB', '+0']);
    expect(otherChange(before, after, [credit])).toEqual({ freeKiB: 0, availableKiB: 0 });
  });
});

describe('F18: a command line of 261,237 bytes', () => {
  const argv = [
    'java',
    '-classpath',
    'x'.repeat(Number(input('F18')['ps_bytes'])),
    '-jar',
    'server.jar',
    '--token',
    'hunter2hunter2',
  ];
  it('is cut to a readable length, and its secrets are gone all the same', () => {
    expect(parseCmdline(argv.join('\0'))).toHaveLength(argv.length);
    const shown = redactCommand(argv);
    expect(shown.length).toBeLessThan(1000);
    expect(shown).toMatch(/^java -classpath x/);
    expect(shown).not.toContain('hunter2');
  });
});
