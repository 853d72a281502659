/** Memory no process holds: what the kernel, its caches, drivers, huge page pools and the hypervisor keep. */
import { cacheFindings } from './cache-findings.ts';
import type { Finding } from './contract.ts';
import { cacheList, classKiB, fixed, noticeableKiB, type KernelView } from './kernel-view.ts';
import { field } from './meminfo.ts';
import { escapeText } from './redact.ts';
import { remainderFindings } from './remainder-findings.ts';
import { percentOf, sizeText } from './sizes.ts';
import { isFileSystemCache, type SlabCache } from './slab.ts';

const mib = 1024;
const gib = 1024 * 1024;

export function kernelFindings(view: KernelView): Finding[] {
  if (view.memory.totalKiB === 0) return [];
  return [
    ...cacheFindings(view),
    ...[unreclaimableSlab, percpu, pageTables, hugePages, arc, mlocked, swap].flatMap((find) => find(view) ?? []),
    ...remainderFindings(view),
  ];
}

/** Healthy boxes keep below 4 % of their memory in slab the kernel cannot give back. */
function unreclaimableSlab({ facts, memory, accounting, kernelRelease, zfs }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'unreclaimable_slab');
  if (kiB < Math.max(256 * mib, memory.totalKiB * 0.04)) return null;
  const caches = facts.slabs.filter((cache) => !isFileSystemCache(cache));
  const leak = leakSign(caches, kiB);
  return fixed(
    'unreclaimable_slab',
    kiB,
    [
      `${sizeText(kiB)} (${percentOf(kiB, memory.totalKiB)} % of the box) is kernel memory that dropping caches does not give back`,
      caches.length > 0 ? `largest: ${cacheList(caches, 5)}` : 'slabinfo could not be read, so its owner is not known',
      ...(leak === null ? [] : [leak]),
      ...(zfs ? ['ZFS runs here, and keeps part of its ARC in such slab'] : []),
      `kernel ${kernelRelease ?? 'version not known'}; if it grows day by day it is a leak in the kernel or a driver, and only a restart gives it back`,
      'a second look tomorrow with the same figure would mean: large, but no leak',
    ],
    'tell_admin',
  );
}

/** Signs of a leak: one cache is most of it, or several caches hold the same number of objects, all in use. */
function leakSign(caches: readonly SlabCache[], kiB: number): string | null {
  const [first] = caches;
  if (first !== undefined && first.kiB > kiB / 2) {
    return `${escapeText(first.name, 40)} alone is ${percentOf(first.kiB, kiB)} % of it, as a leak would be`;
  }
  const full = caches.filter(
    (c) => c.name.startsWith('kmalloc-') && c.objects > 100_000 && c.activeObjects === c.objects,
  );
  const twins = full.filter((c) => full.some((d) => d !== c && Math.abs(d.objects - c.objects) < c.objects * 0.02));
  return twins.length >= 3
    ? `${twins.length} kmalloc caches hold the same number of objects, all in use: something allocates them in step and never frees`
    : null;
}

function percpu({ memory, accounting }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'percpu');
  if (kiB < Math.max(256 * mib, memory.totalKiB * 0.02)) return null;
  return fixed(
    'percpu',
    kiB,
    [
      `${sizeText(kiB)} is held once per CPU by the kernel, mostly for control groups`,
      'control groups that were removed but are still charged for something keep theirs; few containers and a large figure mean a leak',
      'compare num_cgroups in /proc/cgroups with the groups that exist; a restart gives it back',
    ],
    'tell_admin',
  );
}

function pageTables({ facts, memory, accounting }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'page_tables');
  if (kiB < Math.max(512 * mib, memory.totalKiB * 0.01)) return null;
  const machines = field(facts.meminfo, 'SecPageTables');
  return fixed(
    'page_tables',
    kiB,
    [
      `${sizeText(kiB)} describes which process maps which memory; it goes when those processes end`,
      ...(machines > 0 ? [`${sizeText(machines)} of it belongs to virtual machines or the IOMMU`] : []),
      'many processes that map the same large memory cause this; huge pages shrink it',
    ],
    'none',
  );
}

function hugePages({ facts, memory, accounting, mappedHugeKiB }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'hugepages');
  if (kiB < noticeableKiB(memory.totalKiB)) return null;
  const { pools, spareKiB } = facts.hugePages;
  const usedKiB = pools.reduce((sum, pool) => sum + Math.max(0, pool.total - pool.free) * pool.pageKiB, 0);
  const unmappedKiB = mappedHugeKiB === null ? 0 : usedKiB - mappedHugeKiB;
  return {
    class: 'hugepages',
    kiB,
    reclaimableKiB: { low: 0, high: Math.min(spareKiB, kiB) },
    action: 'tell_admin',
    evidence: [
      `${sizeText(kiB)} is set aside as huge pages; no other memory use can have it, used or not`,
      ...pools.map(
        (pool) =>
          `${sizeText(pool.pageKiB)} pages: ${pool.total} in the pool, ${pool.free} free, ${pool.reserved} of those promised`,
      ),
      spareKiB > 0
        ? `${sizeText(spareKiB)} is in no use and promised to nobody: an admin can lower nr_hugepages by that much, if no DPDK, storage or database service counts on it`
        : 'every page is in use or promised, so lowering the pool would take it from a program',
      ...(unmappedKiB >= noticeableKiB(memory.totalKiB)
        ? [
            `${sizeText(unmappedKiB)} of them is in use but mapped by no process whose status was read: files left in /dev/hugepages keep theirs, and deleting those gives pages back to the pool, not to free memory`,
          ]
        : []),
      'dropping caches or killing processes gives none of it back',
    ],
  };
}

function arc({ facts, memory }: KernelView): Finding | null {
  const { arc: stats } = facts;
  if (stats === null || stats.sizeKiB < noticeableKiB(memory.totalKiB)) return null;
  const kiB = Math.min(stats.sizeKiB, memory.totalKiB);
  const least = stats.minKiB ?? 0;
  const known = [
    stats.targetKiB === null ? '' : `wants ${sizeText(stats.targetKiB)}`,
    stats.minKiB === null ? '' : `at least ${sizeText(stats.minKiB)}`,
    stats.maxKiB === null ? '' : `at most ${sizeText(stats.maxKiB)}`,
  ].filter((part) => part !== '');
  const beyond = stats.maxKiB !== null && stats.sizeKiB > stats.maxKiB;
  return {
    class: 'zfs_arc',
    kiB,
    reclaimableKiB: { low: 0, high: Math.max(0, kiB - least) },
    action: 'tell_admin',
    evidence: [
      `ZFS caches ${sizeText(kiB)} in its ARC${known.length > 0 ? ` (${known.join(', ')})` : ''}`,
      '`free` counts it as used, not as cache, and `available` leaves it out',
      ...(beyond ? ['it is larger than its limit allows, so it does not let go by itself'] : []),
      'it shrinks when programs need memory, though slowly; lowering zfs_arc_max shrinks it for good',
    ],
  };
}

function mlocked({ facts, memory }: KernelView): Finding | null {
  const kiB = Math.min(field(facts.meminfo, 'Mlocked'), memory.totalKiB);
  if (kiB < Math.max(gib, memory.totalKiB * 0.04)) return null;
  return fixed(
    'mlocked',
    kiB,
    [
      `${sizeText(kiB)} is locked into memory by programs that asked for it (mlock): it can be neither swapped out nor dropped`,
      'it comes back only when the program that locked it ends; VmLck in /proc/PID/status names it',
    ],
    'ask_owner',
  );
}

function swap({ facts, memory }: KernelView): Finding | null {
  const kiB = memory.swapUsedKiB;
  if (kiB < noticeableKiB(memory.totalKiB)) return null;
  const cached = field(facts.meminfo, 'SwapCached');
  return fixed(
    'swap',
    kiB,
    [
      `${sizeText(kiB)} of ${sizeText(memory.swapTotalKiB)} swap is in use: memory that was pushed out when the box was short`,
      ...(cached > 0 ? [`${sizeText(cached)} of it is in memory again as well`] : []),
      'it is on disk, not in memory, and comes back as it is touched; dropping caches does not change it',
    ],
    'none',
  );
}
