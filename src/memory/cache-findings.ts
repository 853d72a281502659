/** Memory the kernel gives up by itself: file cache, and the names and inodes of files. */
import type { Finding } from './contract.ts';
import type { Dentries } from './dentries.ts';
import { cacheList, classKiB, noticeableKiB, type KernelView } from './kernel-view.ts';
import { field } from './meminfo.ts';
import { sizeText } from './sizes.ts';
import { isFileSystemCache } from './slab.ts';

export function cacheFindings(view: KernelView): Finding[] {
  return [pageCache(view), reclaimableSlab(view)].filter((finding) => finding !== null);
}

function pageCache({ facts, memory, accounting, outlook, dropLevel, freeWords, lustre }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'page_cache');
  if (kiB < noticeableKiB(memory.totalKiB)) return null;
  const { meminfo } = facts;
  const dirty = field(meminfo, 'Dirty') + field(meminfo, 'Writeback');
  const inDrop = dropLevel === 1 || dropLevel === 3;
  const gain = outlook.gain(1).available.high;
  return {
    class: 'page_cache',
    kiB,
    reclaimableKiB: { low: Math.min(outlook.cache.low, kiB), high: Math.min(outlook.cache.high, kiB) },
    action: inDrop ? 'drop_caches' : 'none',
    evidence: [
      'files read or written lately, kept in case they are needed again',
      `programs get it the moment they ask, so \`available\` counts it already: a drop adds ${gain < 1024 ? 'nothing' : `at most ${sizeText(gain)}`} there`,
      `\`free\` on this box prints ${freeWords}`,
      ...(dirty > 64 * 1024 ? [`${sizeText(dirty)} of it is not written to disk yet`] : []),
      ...(lustre
        ? ['Lustre keeps cache that the kernel does not count as available, so `available` may be higher']
        : []),
      'only where /proc/pressure/memory shows programs waiting for memory all the same is it a problem',
    ],
  };
}

const namesLine = ({ total, unused }: Dentries): string =>
  `${(total - unused).toLocaleString('en')} of ${total.toLocaleString('en')} cached file names are in use (dentry-state)`;

/** Freeing very many names and inodes holds the box up: 50 GiB of them stalled one for minutes. */
const stallKiB = 8 * 1024 * 1024;

function reclaimableSlab({ facts, memory, accounting, outlook, dropLevel }: KernelView): Finding | null {
  const kiB = classKiB(accounting, 'reclaimable_slab');
  if (kiB < noticeableKiB(memory.totalKiB)) return null;
  const caches = facts.slabs.filter(isFileSystemCache);
  const inDrop = dropLevel === 2 || dropLevel === 3;
  return {
    class: 'reclaimable_slab',
    kiB,
    reclaimableKiB: { low: Math.min(outlook.slab.low, kiB), high: Math.min(outlook.slab.high, kiB) },
    action: inDrop ? 'drop_caches' : 'none',
    evidence: [
      `${sizeText(kiB)} is the kernel's memory of file names and inodes, which it gives up when programs need memory`,
      caches.length > 0 ? `largest: ${cacheList(caches, 5)}` : 'slabinfo could not be read, so the kinds are not known',
      ...(facts.dentries === null ? [] : [namesLine(facts.dentries)]),
      'a name still open keeps its whole page, so how much a drop gives is known only within a wide range',
      'something walks many files: a backup, updatedb, find or a data loader; it will fill again until that stops',
      ...(kiB > stallKiB ? ['dropping this much can hold the box up for minutes'] : []),
    ],
  };
}
