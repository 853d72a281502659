/** /proc/slabinfo (version 2.x). Sizes are whole slabs, as the memory they take from the system. */

export interface SlabCache {
  readonly name: string;
  readonly activeObjects: number;
  readonly objects: number;
  readonly objectBytes: number;
  readonly kiB: number;
}

/** Largest first. Lines that do not read as a cache are left out. */
export function parseSlabinfo(text: string, pageKiB: number): SlabCache[] {
  const caches: SlabCache[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('#') || line.length > 400) continue;
    const words = line.trim().split(/\s+/);
    const slabdata = words.indexOf('slabdata');
    const [name, active, objects, objectBytes, , pagesPerSlab] = words;
    if (name === undefined || slabdata < 0) continue;
    const numbers = [active, objects, objectBytes, pagesPerSlab, words[slabdata + 2]].map(Number);
    if (numbers.some((n) => !Number.isSafeInteger(n) || n < 0)) continue;
    const [activeObjects = 0, count = 0, bytes = 0, pages = 0, slabs = 0] = numbers;
    const kiB = slabs * pages * pageKiB;
    if (kiB < 2 ** 44) caches.push({ name, activeObjects, objects: count, objectBytes: bytes, kiB });
  }
  return caches.sort((a, b) => b.kiB - a.kiB || (a.name < b.name ? -1 : 1));
}

/** Caches of file names and inodes: what drop_caches=2 shrinks. */
export const isFileSystemCache = (cache: SlabCache): boolean =>
  cache.name === 'dentry' || /(^|_)inode(_|$)|inode_cache|_inode\b/.test(cache.name);
