/** /proc/sys/fs/dentry-state: how many cached file names nobody uses. The allocator counts those as active all the same. */

export interface Dentries {
  readonly total: number;
  readonly unused: number;
}

/** `TOTAL UNUSED AGE WANT NEGATIVE 0`. Null when it does not read as that. */
export function parseDentries(text: string | undefined): Dentries | null {
  const [, total, unused] = /^\s*(\d{1,15})\s+(\d{1,15})\b/.exec(text ?? '') ?? [];
  const read = { total: Number(total), unused: Number(unused) };
  return total === undefined || read.total === 0 || read.unused > read.total ? null : read;
}

/** Names on one 4 KiB page: 192 bytes each. */
export const dentriesPerPage = 21;
export const dentryKiB = 4 / dentriesPerPage;

/**
 * Part of the memory of names that comes back when all unused ones go. A page goes back only when none on it is in use:
 * at best those in use sit close together, at worst each of them pins a page by chance.
 */
export function unusedShare({ total, unused }: Dentries): { low: number; high: number } {
  const share = unused / total;
  return { low: share ** dentriesPerPage, high: share };
}
