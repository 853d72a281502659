/**
 * What a step gave back, and only it. Totals lie: a kill of 10 GiB beside a backup that reads 3 GiB shows 7. So each step is
 * credited by the classes of memory it can move, and the rest of the change is `other`.
 */
import type { MemoryClass } from './accounting.ts';
import type { Finding, StepAction, StepReport, TargetResult } from './contract.ts';
import { heldByTarget, keepTargets } from './plan.ts';
import type { MemorySample } from './sample.ts';
import { targetKey, type Credit } from './story.ts';

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

/** The most a step can have given back, as far as is known of its targets; what moved beyond that is somebody else's. */
export interface CreditBound {
  readonly freeKiB: number;
  readonly availableKiB: number;
}

/** Positive = given back. `byClass` holds the classes that moved, and sums to `freeKiB`. */
export function creditStep(
  before: MemorySample,
  after: MemorySample,
  action: StepAction,
  most: CreditBound = { freeKiB: Infinity, availableKiB: Infinity },
): Credit {
  const claimed = new Map<MemoryClass, number>();
  for (const name of claims[action]) claimed.set(name, gaveBack(before, after, name));
  // What a drop moves is bounded by the cache there was; what processes held, only by what is known of the processes.
  if (action !== 'drop_caches') cutTo(claimed, most.freeKiB);
  // Pages a driver held are in no figure of a process, so no bound on those can hold here.
  const driverKiB = gaveBack(before, after, 'unaccounted');
  if (action === 'kill' && driverKiB >= driverPagesKiB) claimed.set('unaccounted', driverKiB);

  const freeKiB = [...claimed.values()].reduce((sum, kiB) => sum + kiB, 0);
  const byClass = Object.fromEntries([...claimed].filter(([, kiB]) => kiB !== 0));
  // Memory of processes becomes available in full.
  const availableKiB = action === 'drop_caches' ? availableOfDrop(before, after, claimed, most.availableKiB) : freeKiB;
  return { freeKiB, availableKiB, byClass };
}

/** Takes what is beyond `mostKiB` from the largest class first. */
function cutTo(claimed: Map<MemoryClass, number>, mostKiB: number): void {
  let excess = [...claimed.values()].reduce((sum, kiB) => sum + kiB, 0) - mostKiB;
  for (const [name, kiB] of [...claimed].sort((a, b) => b[1] - a[1])) {
    const cut = Math.min(excess, kiB);
    if (cut <= 0) return;
    claimed.set(name, kiB - cut);
    excess -= cut;
  }
}

/**
 * Of a drop only what no other activity explains counts: never less than nothing, and never more than the part of the cache
 * that the kernel had not counted as available before (DropOutlook.gain).
 */
function availableOfDrop(
  before: MemorySample,
  after: MemorySample,
  claimed: ReadonlyMap<MemoryClass, number>,
  mostKiB: number,
): number {
  const names = new Set([...Object.keys(before.classes), ...Object.keys(after.classes)]);
  const others = [...names]
    .filter((name): name is MemoryClass => ![...claimed.keys(), ...cacheClasses].some((c) => c === name))
    .reduce((sum, name) => sum + gaveBack(before, after, name), 0);
  const moved = after.availableKiB - before.availableKiB - others;
  return Math.max(0, Math.min(moved, mostKiB));
}

/** Targets go on living, and growing, between the look that weighed them and the signal. */
const growth = { share: 1.1, kiB: 32 * 1024 };

/**
 * The bound of a step that was done, from what its targets held: the processes that ended, the files and segments that
 * were removed, and for a drop what was predicted for `available`. `findings` are those of the look before acting.
 */
export function creditBound(done: StepReport, findings: readonly Finding[]): CreditBound {
  const grown = (kiB: number): CreditBound => {
    const most = Math.ceil(Math.max(0, kiB) * growth.share) + growth.kiB;
    return { freeKiB: most, availableKiB: most };
  };
  switch (done.action) {
    case 'drop_caches':
      return { freeKiB: Infinity, availableKiB: Math.max(0, done.expectedAvailableKiB.high) };
    case 'remove_files':
    case 'ipcrm':
      return grown(done.targets.filter((t) => mayHaveGone(done, t)).reduce((sum, t) => sum + t.kiB, 0));
    case 'kill': {
      const held = heldByTarget(findings);
      const ended = done.targets.filter((t) => mayHaveGone(done, t));
      const gone = new Set(ended.map(targetKey));
      const { expectedFreeKiB } = keepTargets(done, (t) => gone.has(targetKey(t)), held);
      const weighed = ended.reduce((sum, t) => sum + (held.get(targetKey(t)) ?? 0), 0);
      return grown(Math.max(expectedFreeKiB.high, weighed));
    }
  }
}

/** Through us, as far as is known: a lost answer leaves that open for all that is not still there. */
const mayHaveGone = (done: StepReport, { result }: { result?: TargetResult | undefined }): boolean =>
  result === undefined ||
  ['exited', 'killed', 'respawned', 'removed'].includes(result) ||
  (done.state === 'unknown' && result === 'already_gone');

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
