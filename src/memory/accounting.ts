/**
 * Where the memory is: classes that sum to MemTotal exactly. The identity (fs/proc/meminfo.c and mm/show_mem.c of 5.10,
 * 6.1 and 6.12): MemTotal = free + pages of users and files + kernel + huge page pools + what no counter names.
 */
import type { MemoryFacts } from './facts.ts';
import { field, pageCacheKiB, type Meminfo } from './meminfo.ts';

/** In the order shown. `unaccounted` is last: pages drivers took straight from the allocator and whatever else. */
export const memoryClasses = [
  'free',
  'per_cpu_free', // free too, parked on per-CPU lists
  'anonymous', // private memory of processes
  'shared', // tmpfs, /dev/shm, SysV, memfd, shared anonymous: cache to the kernel, but not droppable
  'page_cache', // file pages and buffers
  'swap_cache',
  'reclaimable_slab',
  'unreclaimable_slab',
  'kernel_stacks',
  'page_tables',
  'percpu',
  'vmalloc',
  'hugepages',
  'zswap',
  'zram',
  'io_buffers',
  'balloon',
  'zfs_arc', // what of the ARC no other counter holds
  'unaccounted',
] as const;
export type MemoryClass = (typeof memoryClasses)[number];

export interface Accounting {
  readonly classes: readonly { readonly class: MemoryClass; readonly kiB: number }[];
  /** How much more the counters name than there is memory: they are read one after another, and some overlap. */
  readonly overlapKiB: number;
  /** Pages on the LRU that no counter of users or files holds: pinned and leaked, or parts of split huge pages. */
  readonly strayLruKiB: number;
}

/** Where an overlap is taken off, least reliable counter first: virtual sizes, then caches, then what is sure. */
const leastSureFirst: readonly MemoryClass[] = [
  'vmalloc',
  'swap_cache',
  'zram',
  'zswap',
  'io_buffers',
  'percpu',
  'kernel_stacks',
  'page_tables',
  'balloon',
  'page_cache',
  'reclaimable_slab',
  'unreclaimable_slab',
  'shared',
  'anonymous',
  'hugepages',
  'free',
];

export function account(facts: MemoryFacts): Accounting {
  const totalKiB = field(facts.meminfo, 'MemTotal');
  const named = namedClasses(facts);
  const sum = [...named.values()].reduce((a, b) => a + b, 0);
  const overlapKiB = Math.max(0, sum - totalKiB);
  takeOff(named, overlapKiB);

  // Known inhabitants of the remainder, never more than it holds.
  let rest = Math.max(0, totalKiB - sum);
  for (const [name, kiB] of [
    ['per_cpu_free', facts.perCpuFreeKiB],
    ['balloon', balloonBefore618(facts)],
    ['zfs_arc', facts.arc?.sizeKiB ?? 0],
  ] as const) {
    const taken = Math.min(kiB, rest);
    named.set(name, (named.get(name) ?? 0) + taken);
    rest -= taken;
  }
  named.set('unaccounted', rest);
  return {
    classes: memoryClasses.map((name) => ({ class: name, kiB: named.get(name) ?? 0 })).filter(worthALine),
    overlapKiB,
    strayLruKiB: strayLru(facts.meminfo),
  };
}

/** Always there for scripts that look them up; the rest only where the box has some. */
const always: readonly MemoryClass[] = ['free', 'anonymous', 'shared', 'page_cache', 'unaccounted'];
const worthALine = (entry: { class: MemoryClass; kiB: number }): boolean =>
  entry.kiB !== 0 || always.includes(entry.class);

function namedClasses({ meminfo, vmstat, hugePages, pageKiB }: MemoryFacts): Map<MemoryClass, number> {
  const has = (name: string): number => field(meminfo, name);
  const reclaimable = has('SReclaimable');
  const zswap = has('Zswap');
  return new Map<MemoryClass, number>([
    ['free', has('MemFree')],
    ['anonymous', anonymousKiB(meminfo)],
    ['shared', has('Shmem')],
    ['page_cache', pageCacheKiB(meminfo)],
    ['swap_cache', swapCacheKiB(meminfo)],
    // KReclaimable holds a little more than slab (ION and the like), all of it under a shrinker.
    ['reclaimable_slab', Math.max(reclaimable, has('KReclaimable'))],
    ['unreclaimable_slab', meminfo.get('SUnreclaim') ?? Math.max(0, has('Slab') - reclaimable)],
    ['kernel_stacks', has('KernelStack')],
    ['page_tables', has('PageTables') + has('SecPageTables')],
    ['percpu', has('Percpu')],
    // Stacks sit inside VmallocUsed on kernels with VMAP_STACK, hence the subtraction.
    ['vmalloc', Math.max(0, has('VmallocUsed') - has('KernelStack'))],
    ['hugepages', hugePages.totalKiB],
    ['zswap', zswap],
    // zsmalloc pages serve zswap and zram alike; meminfo has a line for the former only.
    ['zram', Math.max(0, Math.min((vmstat.get('nr_zspages') ?? 0) * pageKiB, has('MemTotal')) - zswap)],
    ['io_buffers', has('Bounce') + has('WritebackTmp')],
    ['balloon', has('Balloon')],
  ]);
}

/** Meminfo has a Balloon line since 6.18; before, the pages that went in less those that came out tell. */
function balloonBefore618({ vmstat, pageKiB, meminfo }: MemoryFacts): number {
  if (meminfo.has('Balloon')) return 0;
  const pages = (vmstat.get('balloon_inflate') ?? 0) - (vmstat.get('balloon_deflate') ?? 0);
  return Math.min(Math.max(0, pages) * pageKiB, field(meminfo, 'MemTotal'));
}

function anonymousKiB(meminfo: Meminfo): number {
  const printed = meminfo.get('AnonPages');
  if (printed !== undefined) return printed;
  return Math.max(0, field(meminfo, 'Active(anon)') + field(meminfo, 'Inactive(anon)') - field(meminfo, 'Shmem'));
}

const lruNames = ['Active(anon)', 'Inactive(anon)', 'Active(file)', 'Inactive(file)', 'Unevictable'];

/** LRU pages beyond AnonPages, Cached and Buffers; null when the dump lacks one of the lines. */
function lruBeyondParts(meminfo: Meminfo): number | null {
  const needed = [...lruNames, 'AnonPages', 'Cached', 'Buffers'];
  if (needed.some((name) => !meminfo.has(name))) return null;
  const lru = lruNames.reduce((sum, name) => sum + field(meminfo, name), 0);
  return lru - field(meminfo, 'AnonPages') - field(meminfo, 'Cached') - field(meminfo, 'Buffers');
}

/** SwapCached counts pages that are mapped again (and so in AnonPages) a second time; the LRU tells how many. */
function swapCacheKiB(meminfo: Meminfo): number {
  const printed = field(meminfo, 'SwapCached');
  const beyond = lruBeyondParts(meminfo);
  return beyond === null ? printed : Math.min(printed, Math.max(0, beyond));
}

function strayLru(meminfo: Meminfo): number {
  return Math.max(0, (lruBeyondParts(meminfo) ?? 0) - field(meminfo, 'SwapCached'));
}

function takeOff(named: Map<MemoryClass, number>, overlapKiB: number): void {
  let left = overlapKiB;
  for (const name of leastSureFirst) {
    if (left === 0) return;
    const kiB = named.get(name) ?? 0;
    const off = Math.min(kiB, left);
    named.set(name, kiB - off);
    left -= off;
  }
}
