/** /proc/zoneinfo: watermarks and the per-CPU free lists, in pages. */

export interface Zoneinfo {
  /** Sum of the low watermarks of all zones: what si_mem_available withholds of each kind of cache, at most. */
  readonly lowPages: number;
  /** Pages parked on per-CPU lists: free, yet in no meminfo field. */
  readonly perCpuFreePages: number;
  readonly cpus: number;
}

export function parseZoneinfo(text: string): Zoneinfo {
  let lowPages = 0;
  let perCpuFreePages = 0;
  let cpus = 0;
  for (const match of text.matchAll(/^[ \t]*(low|count:|cpu:)[ \t]+(\d{1,12})[ \t]*$/gm)) {
    const value = Number(match[2]);
    if (match[1] === 'low') lowPages += value;
    else if (match[1] === 'count:') perCpuFreePages += value;
    else if (value < 65_536) cpus = Math.max(cpus, value + 1);
  }
  return { lowPages, perCpuFreePages, cpus };
}
