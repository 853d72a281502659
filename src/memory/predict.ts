/**
 * What a drop of caches would give, before anyone approves it. It moves cache to `free`; `available` counts that cache
 * already and gains next to nothing, and nobody who is short of memory is helped by it.
 */
import type { DropTarget, RangeKiB } from './contract.ts';
import { dentryKiB, unusedShare, type Dentries } from './dentries.ts';
import type { MemoryFacts } from './facts.ts';
import { availableOf } from './free.ts';
import { field, fileLruKiB, reclaimableKernelKiB, type Meminfo } from './meminfo.ts';
import { isFileSystemCache, type SlabCache } from './slab.ts';

export type DropLevel = DropTarget['level'];

export interface DropGain {
  readonly free: RangeKiB;
  readonly available: RangeKiB;
}

export interface DropOutlook {
  /** Clean, unmapped file pages (level 1). */
  readonly cache: RangeKiB;
  /** File names and inodes (level 2). */
  readonly slab: RangeKiB;
  /** What the ARC may let go at level 2: often nothing, at most down to its minimum. */
  readonly arc: RangeKiB;
  gain(level: DropLevel): DropGain;
}

const nothing: RangeKiB = { low: 0, high: 0 };
const plus = (a: RangeKiB, b: RangeKiB): RangeKiB => ({ low: a.low + b.low, high: a.high + b.high });

export function predictDrop(facts: MemoryFacts): DropOutlook {
  const cache = droppableCache(facts.meminfo, { synced: true });
  const slab = droppableSlab(facts);
  const arc = { low: 0, high: Math.max(0, (facts.arc?.sizeKiB ?? 0) - (facts.arc?.minKiB ?? 0)) };
  const gain = (level: DropLevel): DropGain => {
    const ofCache = level === 2 ? nothing : cache;
    const ofSlab = level === 1 ? nothing : slab;
    const ofArc = level === 1 ? nothing : arc;
    const caps = watermarkCaps(facts, ofCache.high, ofSlab.high);
    return { free: plus(plus(ofCache, ofSlab), ofArc), available: { low: 0, high: caps + ofArc.high } };
  };
  return { cache, slab, arc, gain };
}

/**
 * Level 1 frees a page only if it is clean and nobody maps or pins it. Mapped counts mapped shmem too, so at best only the
 * rest of it is file pages, and at worst all of it. `synced`: dirty pages are written first, at the high end all of them.
 */
export function droppableCache(meminfo: Meminfo, { synced }: { synced: boolean }): RangeKiB {
  const cache = fileLruKiB(meminfo);
  const dirty = field(meminfo, 'Dirty') + field(meminfo, 'Writeback');
  const mapped = field(meminfo, 'Mapped');
  const mappedFiles = Math.max(0, mapped - field(meminfo, 'Shmem'));
  const low = Math.max(0, cache - dirty - Math.min(cache, mapped));
  return { low, high: Math.max(low, cache - (synced ? 0 : dirty) - mappedFiles) };
}

/** Without slabinfo: published drops gave from a tenth to nearly all of the reclaimable slab. */
const shareWithoutSlabinfo = { low: 0.1, high: 0.95 };

/**
 * A slab page goes back only when every object on it is free. Objects the allocator calls inactive are sure to be unused;
 * those it calls active are mostly unused names and inodes as well, which the drop frees first. How many names are unused
 * the kernel counts by itself.
 */
function droppableSlab({ meminfo, slabs, dentries }: MemoryFacts): RangeKiB {
  const reclaimable = field(meminfo, 'SReclaimable');
  const caches = slabs.filter(isFileSystemCache);
  const names = namesKiB(reclaimable, caches, dentries);
  const share = dentries === null ? shareWithoutSlabinfo : unusedShare(dentries);
  const high = Math.floor((reclaimable - names) * shareWithoutSlabinfo.high + names * share.high);
  if (caches.length === 0) {
    const low = (reclaimable - names) * shareWithoutSlabinfo.low + names * share.low;
    return { low: Math.min(high, Math.floor(low)), high };
  }
  const low = caches.reduce((kiB, cache) => {
    const inactive = cache.objects === 0 ? 0 : Math.max(0, 1 - cache.activeObjects / cache.objects);
    const certain = cache.name === 'dentry' && dentries !== null ? Math.max(inactive, share.low) : inactive;
    return kiB + cache.kiB * certain;
  }, 0);
  return { low: Math.min(high, Math.floor(low)), high };
}

/** Memory of cached file names: as slabinfo has it, else by their number. Without that number none is set apart. */
function namesKiB(reclaimable: number, caches: readonly SlabCache[], dentries: Dentries | null): number {
  if (dentries === null) return 0;
  const listed = caches.find((cache) => cache.name === 'dentry')?.kiB;
  return Math.min(reclaimable, listed ?? dentries.total * dentryKiB);
}

/**
 * MemAvailable leaves out half of each kind of cache, or the low watermark where that is less (si_mem_available). Cache
 * that is dropped is no longer subject to this, so this much may appear as new: megabytes, or a few GiB on the largest boxes.
 */
function watermarkCaps(facts: MemoryFacts, cacheHigh: number, slabHigh: number): number {
  const { meminfo } = facts;
  const cache = fileLruKiB(meminfo);
  const slab = reclaimableKernelKiB(meminfo);
  const available = availableOf(meminfo, facts.lowWatermarkKiB);
  const withheld = Math.max(0, field(meminfo, 'MemFree') + cache + slab - available);
  const low = Math.min(facts.lowWatermarkKiB ?? withheld, withheld);
  const released = (size: number, dropped: number): number =>
    Math.max(0, Math.min(size / 2, low) - Math.min(Math.max(0, size - dropped) / 2, low));
  return Math.ceil(Math.min(released(cache, cacheHigh) + released(slab, slabHigh), withheld));
}

const middle = (range: RangeKiB): number => (range.low + range.high) / 2;

/** A kind of cache is worth its part of the drop when it brings at least this share of what both would. */
const worthItsLevel = 0.2;

/** The lowest level that brings most of what a drop can; null when there is nothing to drop. */
export function lowestLevel(outlook: DropOutlook): DropLevel | null {
  const cache = middle(outlook.cache);
  const slab = middle(outlook.slab);
  const all = cache + slab;
  if (all < 1) return null;
  if (slab < all * worthItsLevel) return 1;
  return cache < all * worthItsLevel ? 2 : 3;
}
