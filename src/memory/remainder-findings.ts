/**
 * What no counter of the kernel names. Drivers take pages straight from the allocator, so all that is known of them is
 * what is missing from the sum; who holds it is told by what else is true of the box.
 */
import type { Finding } from './contract.ts';
import { classKiB, fixed, noticeableKiB, type KernelView } from './kernel-view.ts';
import { percentOf, sizeText } from './sizes.ts';

const gib = 1024 * 1024;

/** Healthy boxes leave 0.1 to 3 % unnamed, desktops with a built-in GPU up to 13 %; small boxes must miss a quarter. */
const baselineKiB = (totalKiB: number): number => Math.max(Math.min(4 * gib, totalKiB / 4), totalKiB * 0.04);

export function remainderFindings(view: KernelView): Finding[] {
  return [balloon(view), remainder(view)].filter((finding) => finding !== null);
}

function balloon({ memory, accounting }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'balloon');
  if (kiB < noticeableKiB(memory.totalKiB)) return null;
  return fixed(
    'balloon',
    kiB,
    [
      `the hypervisor has taken ${sizeText(kiB)} of this machine's memory back through its balloon driver`,
      'nothing on this machine holds it, so nothing here can be killed or dropped to get it; whoever runs the hypervisor can give it back',
    ],
    'tell_admin',
  );
}

function remainder(view: KernelView): Finding | null {
  const { memory, accounting, kernelRelease, gpu, zfs, facts } = view;
  const kiB = classKiB(accounting, 'unaccounted');
  if (kiB <= baselineKiB(memory.totalKiB)) return null;
  const missing = `${sizeText(kiB)} (${percentOf(kiB, memory.totalKiB)} % of the box) is in use but in no counter of the kernel: no process, no cache, no slab`;
  const kernel = `kernel ${kernelRelease ?? 'version not known'}`;
  if (zfs && facts.arc === null) {
    return fixed(
      'unaccounted',
      kiB,
      [
        missing,
        'ZFS runs here and its ARC is kept in such pages, but arcstats could not be read: most of this is probably the ARC',
        'reading /proc/spl/kstat/zfs/arcstats would settle it',
      ],
      'tell_admin',
    );
  }
  if (gpu !== null) {
    return fixed(
      'gpu_driver',
      kiB,
      [
        missing,
        `${gpu}; GPU drivers take such pages for pinned and device-shared memory`,
        `${kernel}; kernels 6.11.x lose pinned pages with every GPU job that ends (mended in later 6.11 and 6.12 releases)`,
        'what running GPU programs pinned comes back when they end; what an ended one left behind comes back only by reloading the driver or a restart',
        'compare with the figure right after boot: a box that always shows this much has no leak',
      ],
      'tell_admin',
    );
  }
  return fixed(
    'unaccounted',
    kiB,
    [
      missing,
      `${kernel}; seen with: a balloon of the hypervisor, drivers of network cards or storage, ZFS, RDMA, memory shared with a built-in GPU`,
      'killing processes or dropping caches is not expected to give it back; compare with the figure right after boot',
    ],
    'tell_admin',
  );
}
