/**
 * Huge page pools. The pool is taken out of normal memory whether it is used or not. Each size has its own pool:
 * HugePages_Total x Hugepagesize sees the default size only and may miss most of it.
 */
import { textOf } from './blob.ts';
import type { Capture } from './contract.ts';
import { field, type Meminfo } from './meminfo.ts';

export interface HugePool {
  readonly pageKiB: number;
  readonly total: number;
  readonly free: number;
  /** Promised to mappings but not touched yet: part of `free`, and not to be given away. */
  readonly reserved: number;
}

export interface HugePages {
  readonly pools: readonly HugePool[];
  readonly totalKiB: number;
  /** In no use and promised to nobody. */
  readonly spareKiB: number;
}

const plausibleKiB = 2 ** 44;

export function readHugePages(capture: Capture, meminfo: Meminfo): HugePages {
  const fromSysfs = sysfsPools(capture);
  const pools = fromSysfs.length > 0 ? fromSysfs : meminfoPool(meminfo);
  const inPools = pools.reduce((sum, pool) => sum + pool.total * pool.pageKiB, 0);
  const spare = pools.reduce((sum, pool) => sum + Math.max(0, pool.free - pool.reserved) * pool.pageKiB, 0);
  const totalKiB = Math.min(meminfo.get('Hugetlb') ?? inPools, plausibleKiB);
  return { pools, totalKiB, spareKiB: Math.min(spare, totalKiB) };
}

function meminfoPool(meminfo: Meminfo): HugePool[] {
  const total = field(meminfo, 'HugePages_Total');
  if (total === 0) return [];
  return [
    {
      pageKiB: meminfo.get('Hugepagesize') ?? 2048,
      total,
      free: field(meminfo, 'HugePages_Free'),
      reserved: field(meminfo, 'HugePages_Rsvd'),
    },
  ];
}

function sysfsPools(capture: Capture): HugePool[] {
  const sizes = new Map<number, Map<string, number>>();
  for (const path of Object.keys(capture.files)) {
    // Nearly all files are of processes: a box has tens of thousands of those.
    if (!path.startsWith('/sys/')) continue;
    const match = /^\/sys\/kernel\/mm\/hugepages\/hugepages-(\d{1,9})kB\/(nr|free|resv)_hugepages$/.exec(path);
    const value = /^\s*(\d{1,9})\s*$/.exec(match === null ? '' : textOf(capture.files[path]));
    if (match === null || value === null) continue;
    const pageKiB = Number(match[1]);
    const pool = sizes.get(pageKiB) ?? new Map<string, number>();
    sizes.set(pageKiB, pool.set(match[2] ?? '', Number(value[1])));
  }
  return [...sizes]
    .map(([pageKiB, pool]) => ({
      pageKiB,
      total: pool.get('nr') ?? 0,
      free: pool.get('free') ?? 0,
      reserved: pool.get('resv') ?? 0,
    }))
    .filter((pool) => pool.total > 0)
    .sort((a, b) => a.pageKiB - b.pageKiB);
}
