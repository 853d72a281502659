import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diagnosisSchema } from '../../src/memory/contract.ts';
import { captureOfNothing, diagnosisOfPasted, readPastedFree } from '../../src/memory/pasted-free.ts';
import { think } from '../../src/memory/think.ts';

const german = `              gesamt       benutzt     frei      gemns.  Puffer/Cache verfügbar
Speicher:          7983        2901         304          82        4777        4668
Auslagerungsspeicher:        4045           1        4044`;
const old = `             total       used       free     shared    buffers     cached
Mem:         64396      64145        251         46        198      16949
-/+ buffers/cache:      46997      17399
Swap:         4095       4094          1`;

describe('a pasted table of free', () => {
  it.each([
    ['in another language (F01)', german, /3\.3\.10 and later.*last column is what is available/],
    ['of an old procps, whose sixth column is cached (F09)', old, /3\.3\.9 and older.*no "available"/],
    [
      'with a label that eats the padding (F02)',
      'Speicher:33678610432  4541730816 19486801920   201273344  9650077696 28465971200',
      /does not tell which age/,
    ],
    [
      'rounded, with a decimal comma (F05)',
      'Mem:  62Gi       5,5Gi        18Gi        27Mi        38Gi        56Gi',
      /does not tell which age/,
    ],
    [
      'with figures no machine has (F06)',
      'Mem:   1676422348815827468288  936755200   11292672  620691456 8835600384',
      /does not tell which age/,
    ],
    ['with the line ends of another system', german.replaceAll('\n', '\r\n'), /3\.3\.10/],
  ])('%s is shown as it is, and its figures are never counted with', (_what, text, words) => {
    const pasted = readPastedFree(text)!;
    expect(pasted.table).toEqual(text.split(/\r?\n/));
    expect(pasted.words).toMatch(words);
    const diagnosis = diagnosisOfPasted(pasted, think(captureOfNothing('2026-11-30T20:54:00Z')).diagnosis);
    expect(diagnosisSchema.parse(diagnosis)).toMatchObject({ verdict: 'unknown', plan: null, findings: [] });
    expect(Object.values(diagnosis.memory)).toEqual(Array.from({ length: 8 }, () => 0));
    expect(diagnosis.headline).toMatch(/not a look at a box.*reclaim diagnose HOST/);
  });

  it.each([
    ['nothing', ''],
    ['a capture', JSON.stringify(captureOfNothing('2026-11-30T20:54:00Z'))],
    ['meminfo', 'MemTotal:       24683520 kB\nMemFree:        23556000 kB\n'],
    ['a log', 'at 12:30: 3 4 5 jobs ran\n'],
    ['a table with a book around it', `${german}\n${'and so on\n'.repeat(20)}`],
  ])('is not %s', (_what, text) => {
    expect(readPastedFree(text)).toBeNull();
  });

  it('prints nothing a terminal would obey, whatever was pasted', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (noise) => {
        const pasted = readPastedFree(`${german}\n${noise}`);
        for (const line of pasted?.table ?? []) expect(line).not.toMatch(/[\u0000-\u001f\u007f\u009b]/);
      }),
    );
  });
});
