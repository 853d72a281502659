/** /proc/vmstat: counters by name, in pages or events. */
import { field, type Meminfo } from './meminfo.ts';

export type Vmstat = ReadonlyMap<string, number>;

export function parseVmstat(text: string): Vmstat {
  const counters = new Map<string, number>();
  for (const match of text.matchAll(/^([a-z0-9_]{1,60}) (\d{1,15})$/gm)) {
    const [, name = '', value] = match;
    if (!counters.has(name)) counters.set(name, Number(value));
  }
  return counters;
}

/** Figures that both files have: meminfo in KiB, vmstat in pages. */
const spelledTwice: readonly (readonly [string, string])[] = [
  ['AnonPages', 'nr_anon_pages'],
  ['Mapped', 'nr_mapped'],
  ['SReclaimable', 'nr_slab_reclaimable'],
  ['PageTables', 'nr_page_table_pages'],
  ['MemFree', 'nr_free_pages'],
];

/**
 * Page size in KiB: 4 nearly everywhere, 16 or 64 on some ARM boxes (GH200). Read off figures that have two spellings. The
 * middle ratio counts: a virtual machine may hold more free memory than its zones know of, which once made 4 look like 16.
 */
export function pageSizeKiB(meminfo: Meminfo, vmstat: Vmstat): number {
  const ratios = spelledTwice
    .map(([name, counter]) => [field(meminfo, name), vmstat.get(counter) ?? 0] as const)
    .filter(([kiB, pages]) => kiB > 0 && pages >= 100)
    .map(([kiB, pages]) => kiB / pages)
    .sort((a, b) => a - b);
  const ratio = ratios[Math.floor((ratios.length - 1) / 2)] ?? 4;
  if (ratio > 32) return 64;
  return ratio > 8 ? 16 : 4;
}
