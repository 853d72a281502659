/**
 * What `free` prints. Its `used` has meant four things over the years, so the figure is computed by the formula the box's
 * own `free` uses, found by trying each against its output.
 *
 * used, by procps version (read in its sources: proc/sysinfo.c, proc/meminfo.c, library/meminfo.c):
 *   up to 3.3.9           total - free (cache included)
 *   3.3.10, 3.3.11        total - free - Buffers - Cached - Slab
 *   3.3.12 .. 4.0.0       total - free - Buffers - Cached - SReclaimable
 *   4.0.1 and later       total - available
 */
import type { Memory } from './contract.ts';
import { field, fileLruKiB, reclaimableKernelKiB, type Meminfo } from './meminfo.ts';

export const freeFormulas = ['4.0.1', '3.3.12', '3.3.10', '3.3.9', 'busybox'] as const;
export type FreeFormula = (typeof freeFormulas)[number];

/** What each formula calls `used`, in words, for the report. */
export const formulaWords: Readonly<Record<FreeFormula, string>> = {
  '4.0.1': 'used = total - available (procps 4.0.1 and later)',
  '3.3.12': 'used = total - free - buff/cache (procps 3.3.12 to 4.0.0)',
  '3.3.10': 'used = total - free - buff/cache, all slab counted as cache (procps 3.3.10 and 3.3.11)',
  '3.3.9': 'used = total - free, cache included (procps 3.3.9 and older)',
  busybox: 'used = total - free - buffers - cached (busybox)',
};

/** The figures of `free` by one formula. Never negative, whatever meminfo says. */
export function memoryBy(formula: FreeFormula, meminfo: Meminfo, lowWatermarkKiB: number | null = null): Memory {
  const totalKiB = field(meminfo, 'MemTotal');
  const freeKiB = field(meminfo, 'MemFree');
  const estimate = availableOf(meminfo, lowWatermarkKiB);
  // procps 4 takes an available of 0 for a missing one, and prints free.
  const availableKiB = estimate === 0 && formula === '4.0.1' ? freeKiB : estimate;
  const buffCacheKiB = field(meminfo, 'Buffers') + field(meminfo, 'Cached') + slabInCache(formula, meminfo);
  const used = usedBy(formula, { totalKiB, freeKiB, availableKiB, buffCacheKiB });
  // procps does the same when the sum turns negative, which containers with borrowed figures bring about.
  const usedKiB = used < 0 ? Math.max(0, totalKiB - freeKiB) : used;
  const swapTotalKiB = field(meminfo, 'SwapTotal');
  return {
    totalKiB,
    usedKiB,
    freeKiB,
    availableKiB,
    sharedKiB: field(meminfo, 'Shmem'),
    buffCacheKiB,
    swapTotalKiB,
    swapUsedKiB: Math.max(0, swapTotalKiB - field(meminfo, 'SwapFree')),
  };
}

interface Sums {
  readonly totalKiB: number;
  readonly freeKiB: number;
  readonly availableKiB: number;
  readonly buffCacheKiB: number;
}

function usedBy(formula: FreeFormula, sums: Sums): number {
  if (formula === '4.0.1') return sums.totalKiB - sums.availableKiB;
  if (formula === '3.3.9') return sums.totalKiB - sums.freeKiB;
  return sums.totalKiB - sums.freeKiB - sums.buffCacheKiB;
}

function slabInCache(formula: FreeFormula, meminfo: Meminfo): number {
  if (formula === '3.3.10') return field(meminfo, 'Slab');
  return formula === 'busybox' || formula === '3.3.9' ? 0 : field(meminfo, 'SReclaimable');
}

/**
 * MemAvailable (since 3.14), or the kernel's own estimate redone from its parts where the box does not print it: free
 * memory above the low watermark, and of each kind of cache all but half or the watermark.
 */
export function availableOf(meminfo: Meminfo, lowWatermarkKiB: number | null): number {
  const totalKiB = field(meminfo, 'MemTotal');
  const printed = meminfo.get('MemAvailable');
  // In some containers the figure of the host shows through; procps then prints `free` instead.
  if (printed !== undefined) return printed > totalKiB ? field(meminfo, 'MemFree') : printed;
  const low = lowWatermarkKiB ?? 0;
  const cache = fileLruKiB(meminfo);
  const slab = reclaimableKernelKiB(meminfo);
  const estimate = field(meminfo, 'MemFree') - low + cache - Math.min(cache / 2, low) + slab - Math.min(slab / 2, low);
  return Math.min(Math.max(0, Math.floor(estimate)), totalKiB);
}

export interface PrintedFree {
  readonly totalKiB: number;
  readonly usedKiB: number;
  readonly freeKiB: number;
  readonly buffCacheKiB: number | null;
}

/**
 * The first row of `free -k`. The words before the figures are not trusted (another locale prints `Speicher:`): it is the
 * first line holding at least five plain numbers. Figures with decimals or units are text for people, not for us.
 */
export function parseFreeOutput(text: string): PrintedFree | null {
  const lines = text.split('\n');
  const header = lines.find((line) => /[a-z]/i.test(line)) ?? '';
  const oldLayout = header.includes('cached') && !header.includes('/');
  for (const line of lines) {
    const match = /^\S{0,40}:\s*(\d{1,15}(?:\s+\d{1,15}){4,5})$/.exec(line.trimEnd());
    if (match === null) continue;
    const [total = 0, used = 0, free = 0, , fifth = 0, sixth] = (match[1] ?? '').trim().split(/\s+/).map(Number);
    const buffCacheKiB = oldLayout ? (sixth === undefined ? null : fifth + sixth) : fifth;
    return { totalKiB: total, usedKiB: used, freeKiB: free, buffCacheKiB };
  }
  return null;
}

export interface FormulaGuess {
  readonly formula: FreeFormula;
  /** False when the box did not show enough to tell, and the usual formula is assumed. */
  readonly known: boolean;
}

/** Which formula explains what the box printed. Figures drift a little between two reads, formulas differ by far more. */
export function inferFormula(printed: PrintedFree | null, meminfo: Meminfo, low: number | null = null): FormulaGuess {
  const usual: FreeFormula = meminfo.has('MemAvailable') ? '4.0.1' : '3.3.12';
  if (printed === null || printed.totalKiB !== field(meminfo, 'MemTotal')) return { formula: usual, known: false };
  const misses = freeFormulas.map((formula) => {
    const ours = memoryBy(formula, meminfo, low);
    const usedMiss = Math.abs(ours.usedKiB - printed.usedKiB);
    const cacheMiss = printed.buffCacheKiB === null ? 0 : Math.abs(ours.buffCacheKiB - printed.buffCacheKiB);
    return { formula, usedMiss, miss: usedMiss + cacheMiss };
  });
  const best = misses.reduce((a, b) => (b.miss < a.miss ? b : a));
  // Vendors count more or less as cache under the same `used` (SLES adds reclaimable slab in 3.3.9).
  return best.usedMiss <= Math.max(65_536, printed.totalKiB * 0.01)
    ? { formula: best.formula, known: true }
    : { formula: usual, known: false };
}
