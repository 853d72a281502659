/**
 * /proc/meminfo, by name: the order of its lines differs between kernels (RHEL 6.6 prints MemAvailable last), fields come
 * and go, and a cut or faked file is normal input. Sizes are KiB, HugePages_* are counts.
 */

/** No machine has 16 PiB; a larger figure is damage, and would make sums lose digits. */
const implausible = 2 ** 44;

export type Meminfo = ReadonlyMap<string, number>;

/** The first line of a name counts: the kernel prints each once, anything after is not from the kernel. */
export function parseMeminfo(text: string): Meminfo {
  const fields = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([A-Za-z0-9_()]{1,40}):[ \t]+(\d{1,20})(?: kB)?\s*$/.exec(line);
    if (match === null) continue;
    const [, name = '', digits] = match;
    const value = Number(digits);
    if (value < implausible && !fields.has(name)) fields.set(name, value);
  }
  return fields;
}

/** The field, or 0 where this kernel does not have it. */
export const field = (meminfo: Meminfo, name: string): number => meminfo.get(name) ?? 0;

/** File pages on the LRU: what drop_caches looks at. Falls back to the cache less shmem on dumps without the LRU lines. */
export function fileLruKiB(meminfo: Meminfo): number {
  const active = meminfo.get('Active(file)');
  const inactive = meminfo.get('Inactive(file)');
  if (active !== undefined && inactive !== undefined) return active + inactive;
  return pageCacheKiB(meminfo);
}

/** Cached + Buffers without shared memory, which the kernel counts as cache but cannot drop. */
export const pageCacheKiB = (meminfo: Meminfo): number =>
  Math.max(0, field(meminfo, 'Cached') + field(meminfo, 'Buffers') - field(meminfo, 'Shmem'));

/** Slab the kernel calls reclaimable; older kernels lack KReclaimable (4.20). */
export const reclaimableKernelKiB = (meminfo: Meminfo): number =>
  Math.max(field(meminfo, 'KReclaimable'), field(meminfo, 'SReclaimable'));
