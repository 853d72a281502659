/** What ending a set of processes gives back, and what removing shared memory does: ranges in KiB, never from VIRT. */
import type { RangeKiB } from '../contract.ts';
import type { Proc } from './table.ts';

export const sum = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((total, item) => total + value(item), 0);

/**
 * Forked copies of one another have the same arguments; their RssAnon counts shared pages once per copy. Others of the
 * same arguments fall in the same family, which only lowers what is promised.
 */
const familyOf = (proc: Proc): string => (proc.commandLine === '' ? proc.comm : proc.commandLine);

/**
 * Private memory of a set. smaps_rollup divides shared pages by their users, so it adds up; with RssAnon alone, forked
 * copies may share all but nothing of it, so only the largest of a family is certain.
 */
export function privateRange(procs: readonly Proc[]): RangeKiB {
  const largest = new Map<string, number>();
  let low = 0;
  for (const proc of procs) {
    if (proc.source === 'smaps_rollup') low += proc.unsharedKiB ?? proc.privateKiB;
    if (proc.source !== 'RssAnon') continue;
    const family = familyOf(proc);
    largest.set(family, Math.max(largest.get(family) ?? 0, proc.privateKiB));
  }
  for (const kiB of largest.values()) low += kiB;
  const high = sum(procs, (proc) => proc.privateKiB);
  return { low: Math.min(low, high), high };
}

/** Kernel stack of a thread: 16 KiB on x86-64 and arm64. */
const stackKiB = 16;

export interface KillYield {
  readonly free: RangeKiB;
  readonly available: RangeKiB;
}

/**
 * Kill yield: private memory plus page tables and stacks. File pages stay as cache (already in `available`), swap goes
 * back to swap, huge pages to their pool. `lastShmemKiB` is shared memory nobody else holds and no name keeps.
 */
export function killYield(procs: readonly Proc[], lastShmemKiB = 0): KillYield {
  const memory = privateRange(procs);
  const tables = sum(procs, (proc) => (proc.status?.pageTablesKiB ?? 0) + stackKiB * (proc.status?.threads ?? 1));
  // The set goes on living between the look and the signal: a few per cent either way.
  const range = {
    low: Math.floor(memory.low * 0.95),
    high: Math.ceil(memory.high * 1.02) + tables + lastShmemKiB,
  };
  return { free: range, available: range };
}
