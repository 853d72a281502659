/** What ending a set of processes gives back, and what removing shared memory does: ranges in KiB, never from VIRT. */
import type { RangeKiB } from '../contract.ts';
import type { Proc } from './table.ts';

export const sum = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((total, item) => total + value(item), 0);

/** Forked copies of one another: same program, same arguments. Their RssAnon counts shared pages once per copy. */
function familyKey(proc: Proc): string {
  return `${proc.uid ?? -1} ${proc.exe?.path ?? proc.comm} ${proc.argv.join('\0').slice(0, 2048)}`;
}

/**
 * Private memory of a set. smaps_rollup divides shared pages by their users, so it adds up; with RssAnon alone, forked
 * copies may share all but nothing of it, so only the largest of a family is certain.
 */
export function privateRange(procs: readonly Proc[]): RangeKiB {
  const families = new Map<string, Proc[]>();
  for (const proc of procs) {
    const key = proc.source === 'smaps_rollup' ? `own ${proc.pid}` : familyKey(proc);
    const family = families.get(key);
    if (family === undefined) families.set(key, [proc]);
    else family.push(proc);
  }
  let low = 0;
  for (const family of families.values()) {
    for (const proc of family) if (proc.source === 'smaps_rollup') low += proc.unsharedKiB ?? proc.privateKiB;
    const rough = family.filter((proc) => proc.source === 'RssAnon').map((proc) => proc.privateKiB);
    if (rough.length > 0) low += Math.max(...rough);
  }
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
