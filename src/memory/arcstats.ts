/** /proc/spl/kstat/zfs/arcstats: lines `name type bytes`. */

export interface Arc {
  readonly sizeKiB: number;
  /** Where the ARC wants to be now, how small it may be made and how large it may grow; null when not printed. */
  readonly targetKiB: number | null;
  readonly minKiB: number | null;
  readonly maxKiB: number | null;
}

/** Null where there is no ZFS, or no size in what was read. */
export function parseArcstats(text: string | undefined): Arc | null {
  if (text === undefined) return null;
  const bytes = new Map<string, number>();
  for (const match of text.matchAll(/^([a-z0-9_]{1,60})[ \t]+\d+[ \t]+(\d{1,16})[ \t]*$/gm)) {
    bytes.set(match[1] ?? '', Number(match[2]));
  }
  const kiB = (name: string): number | null => {
    const value = bytes.get(name);
    return value === undefined ? null : Math.floor(value / 1024);
  };
  const sizeKiB = kiB('size');
  return sizeKiB === null ? null : { sizeKiB, targetKiB: kiB('c'), minKiB: kiB('c_min'), maxKiB: kiB('c_max') };
}
