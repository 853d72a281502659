/** The tables people know from `free -h`, and the same with before, after and change. */
import type { Memory } from './contract.ts';

const suffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/**
 * A size as `free -h` prints it (procps 3.3.x and 4.x, scale_size): at most three digits, one decimal below ten, cut and
 * not rounded above. Rounds in single precision and half to even, because C does, so that both agree to the digit.
 */
export function freeSize(kiB: number): string {
  const bytes = kiB * 1024;
  if (bytes < 1000) return `${bytes}B`;
  for (const [index, suffix] of suffixes.entries()) {
    const value = bytes / 1024 ** (index + 1);
    const rounded = oneDecimal(Math.fround(value));
    if (rounded.length <= 3) return `${rounded}${suffix}`;
    if (value < 1000) return `${Math.floor(value)}${suffix}`;
  }
  return `${Math.floor(bytes / 1024 ** 5)}Pi`;
}

/** printf's %.1f. Only x.25 is a tie that toFixed would decide otherwise (.75 goes up either way). */
function oneDecimal(value: number): string {
  const fraction = value - Math.floor(value);
  return fraction === 0.25 ? (value - 0.05).toFixed(1) : value.toFixed(1);
}

const columns = ['total', 'used', 'free', 'shared', 'buff/cache', 'available'] as const;

function row(label: string, cells: readonly string[]): string {
  return `${label.padEnd(9)}${cells.map((cell, i) => cell.padStart(i === 0 ? 11 : 12)).join('')}`;
}

const header = (): string => row('', columns);

function memoryCells(memory: Memory, format: (kiB: number) => string): string[] {
  const { totalKiB, usedKiB, freeKiB, sharedKiB, buffCacheKiB, availableKiB } = memory;
  return [totalKiB, usedKiB, freeKiB, sharedKiB, buffCacheKiB, availableKiB].map(format);
}

function swapCells(memory: Memory, format: (kiB: number) => string): string[] {
  return [memory.swapTotalKiB, memory.swapUsedKiB, memory.swapTotalKiB - memory.swapUsedKiB].map(format);
}

/** The layout of `free -h`, without a trailing newline. */
export function renderFreeTable(memory: Memory): string {
  return [header(), row('Mem:', memoryCells(memory, freeSize)), row('Swap:', swapCells(memory, freeSize))].join('\n');
}

const signed = (kiB: number): string => (kiB === 0 ? '0' : `${kiB < 0 ? '-' : '+'}${freeSize(Math.abs(kiB))}`);

/** Rows before, after and change; swap only where there is some. */
export function renderFreeDiff(before: Memory, after: Memory): string {
  const change = (cells: (memory: Memory, format: (kiB: number) => string) => string[]): string[] => {
    const was = cells(before, String).map(Number);
    return cells(after, String).map((now, i) => signed(Number(now) - (was[i] ?? 0)));
  };
  const lines = [
    header(),
    row('before', memoryCells(before, freeSize)),
    row('after', memoryCells(after, freeSize)),
    row('change', change(memoryCells)),
  ];
  if (before.swapTotalKiB > 0 || after.swapTotalKiB > 0) {
    lines.push(
      row('swap bef.', swapCells(before, freeSize)),
      row('swap aft.', swapCells(after, freeSize)),
      row('change', change(swapCells)),
    );
  }
  return lines.join('\n');
}
