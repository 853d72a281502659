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

/** Page size in KiB: 4 nearly everywhere, 16 or 64 on some ARM boxes (GH200). Read off two spellings of the same figure. */
export function pageSizeKiB(meminfo: Meminfo, vmstat: Vmstat): number {
  const anonPages = vmstat.get('nr_anon_pages') ?? 0;
  const pages = (vmstat.get('nr_free_pages') ?? 0) + anonPages;
  if (pages < 1000) return 4;
  const ratio = (field(meminfo, 'MemFree') + (anonPages > 0 ? field(meminfo, 'AnonPages') : 0)) / pages;
  if (ratio > 32) return 64;
  return ratio > 8 ? 16 : 4;
}
