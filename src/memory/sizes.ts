/** Sizes in words. Inside everything is KiB; people read GiB. */

const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `369 GiB`, `1.5 GiB`, `12 MiB`: one decimal below ten, like `free -h`, with the unit spelt out. */
export function sizeText(kiB: number): string {
  let value = Math.abs(kiB);
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && value < 9.95 && value > 0 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0);
  return `${kiB < 0 ? '-' : ''}${digits} ${units[unit] ?? 'KiB'}`;
}

/** `+51 GiB`, `-7 GiB`, `+0`. */
export function deltaText(kiB: number): string {
  return kiB === 0 ? '+0' : `${kiB > 0 ? '+' : ''}${sizeText(kiB)}`;
}

/** `3 to 5 GiB`, or one figure when both ends read the same. */
export function rangeText(range: { low: number; high: number }): string {
  const low = sizeText(range.low);
  const high = sizeText(range.high);
  if (low === high) return high;
  const [lowNumber = low, lowUnit] = low.split(' ');
  return lowUnit === high.split(' ')[1] || range.low === 0 ? `${lowNumber} to ${high}` : `${low} to ${high}`;
}

export const percentOf = (part: number, total: number): number => (total <= 0 ? 0 : Math.round((part / total) * 100));
