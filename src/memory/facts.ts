/** The memory side of a capture, parsed once: what accounting, findings, prediction and credit read. */
import { parseArcstats, type Arc } from './arcstats.ts';
import { fileText } from './blob.ts';
import type { Capture } from './contract.ts';
import { parseDentries, type Dentries } from './dentries.ts';
import { readHugePages, type HugePages } from './hugepages.ts';
import { parseMeminfo, type Meminfo } from './meminfo.ts';
import { parseSlabinfo, type SlabCache } from './slab.ts';
import { pageSizeKiB, parseVmstat, type Vmstat } from './vmstat.ts';
import { parseZoneinfo, type Zoneinfo } from './zoneinfo.ts';

export interface MemoryFacts {
  readonly meminfo: Meminfo;
  readonly vmstat: Vmstat;
  readonly zoneinfo: Zoneinfo;
  readonly slabs: readonly SlabCache[];
  /** Null when the box did not tell. */
  readonly dentries: Dentries | null;
  readonly arc: Arc | null;
  readonly hugePages: HugePages;
  readonly pageKiB: number;
  /** Free pages parked on per-CPU lists, in no meminfo field. */
  readonly perCpuFreeKiB: number;
  /** Sum of the low watermarks; null when zoneinfo was not read. */
  readonly lowWatermarkKiB: number | null;
}

export function readFacts(capture: Capture): MemoryFacts {
  const meminfo = parseMeminfo(fileText(capture, '/proc/meminfo') ?? '');
  const vmstat = parseVmstat(fileText(capture, '/proc/vmstat') ?? '');
  const zoneText = fileText(capture, '/proc/zoneinfo');
  const zoneinfo = parseZoneinfo(zoneText ?? '');
  const pageKiB = pageSizeKiB(meminfo, vmstat);
  const totalKiB = meminfo.get('MemTotal') ?? 0;
  return {
    meminfo,
    vmstat,
    zoneinfo,
    slabs: parseSlabinfo(fileText(capture, '/proc/slabinfo') ?? '', pageKiB),
    dentries: parseDentries(fileText(capture, '/proc/sys/fs/dentry-state')),
    arc: parseArcstats(fileText(capture, '/proc/spl/kstat/zfs/arcstats')),
    hugePages: readHugePages(capture, meminfo),
    pageKiB,
    // More on the lists than there is memory is a faked or damaged file.
    perCpuFreeKiB: Math.min(zoneinfo.perCpuFreePages * pageKiB, totalKiB),
    lowWatermarkKiB: zoneText === undefined ? null : Math.min(zoneinfo.lowPages * pageKiB, totalKiB),
  };
}
