/**
 * What a step gave back, and only it. Totals lie: a kill of 10 GiB beside a backup that reads 3 GiB shows 7. So each step is
 * credited by the classes of memory it can move, and the rest of the change is `other`.
 */
import type { MemoryClass } from './accounting.ts';
import type { StepAction } from './contract.ts';
import type { MemorySample } from './sample.ts';
import type { Credit } from './story.ts';

/** Classes a step of this kind gives back. Huge pages go back to their pool and slab of dead tasks is noise: not counted. */
const claims: Readonly<Record<StepAction, readonly MemoryClass[]>> = {
  kill: ['anonymous', 'shared', 'page_tables', 'swap_cache'],
  remove_files: ['shared', 'page_tables'],
  ipcrm: ['shared', 'page_tables', 'swap_cache'],
  drop_caches: ['page_cache', 'reclaimable_slab', 'zfs_arc'],
};

/** Pages a GPU driver held for a process leave `unaccounted` when it dies; below this it is drift. */
const driverPagesKiB = 64 * 1024;

/** Counted as available by the kernel already, so giving them back moves `free` only. */
const cacheClasses: readonly MemoryClass[] = ['free', 'per_cpu_free', 'page_cache', 'reclaimable_slab'];

const gaveBack = (before: MemorySample, after: MemorySample, name: MemoryClass): number =>
  (before.classes[name] ?? 0) - (after.classes[name] ?? 0);

/** Positive = given back. `byClass` holds the classes that moved. */
export function creditStep(before: MemorySample, after: MemorySample, action: StepAction): Credit {
  const claimed: MemoryClass[] = [...claims[action]];
  if (action === 'kill' && gaveBack(before, after, 'unaccounted') >= driverPagesKiB) claimed.push('unaccounted');
  const byClass: Record<string, number> = {};
  let freeKiB = 0;
  for (const name of claimed) {
    const kiB = gaveBack(before, after, name);
    if (kiB !== 0) byClass[name] = kiB;
    freeKiB += kiB;
  }
  return { freeKiB, availableKiB: availableCredit(before, after, action, claimed, freeKiB), byClass };
}

/** Memory of processes becomes available in full. Of a drop only what no other activity explains counts: mostly nothing. */
function availableCredit(
  before: MemorySample,
  after: MemorySample,
  action: StepAction,
  claimed: readonly MemoryClass[],
  freeKiB: number,
): number {
  if (action !== 'drop_caches') return freeKiB;
  const names = new Set([...Object.keys(before.classes), ...Object.keys(after.classes)]);
  const others = [...names]
    .filter((name): name is MemoryClass => !claimed.some((c) => c === name) && !cacheClasses.some((c) => c === name))
    .reduce((sum, name) => sum + gaveBack(before, after, name), 0);
  return after.availableKiB - before.availableKiB - others;
}

/** The change from first to last that no step of ours caused (positive = more free). */
export function otherChange(
  first: MemorySample,
  last: MemorySample,
  credits: readonly Credit[],
): { freeKiB: number; availableKiB: number } {
  const credited = (pick: (credit: Credit) => number): number => credits.reduce((sum, c) => sum + pick(c), 0);
  return {
    freeKiB: last.freeKiB - first.freeKiB - credited((c) => c.freeKiB),
    availableKiB: last.availableKiB - first.availableKiB - credited((c) => c.availableKiB),
  };
}
