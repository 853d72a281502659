/** Shared memory without a name, which comes back when the last process that maps it ends. */
import { sizeText } from '../sizes.ts';
import { meminfoKiB } from './driver-findings.ts';
import type { Capture } from '../contract.ts';
import { sum } from './predict.ts';
import type { SharedMemory } from './shm-findings.ts';
import type { World } from './signs.ts';
import type { Proc } from './table.ts';

/** KiB of shared memory that may come back with the last of `procs`; at least 0 of it does. */
export type LastShm = (procs: readonly Proc[]) => number;

/**
 * Upper bound, as the kernel tells no process which shared pages are its own: what the set maps beyond the named files it
 * holds, and no more than all the shared memory of the box that has no name. Named files in /dev/shm stay, and so do SysV
 * segments that nobody marked for removal. A memfd or deleted file that somebody outside the set holds too stays as well.
 */
export function lastShmOf(world: World, shared: SharedMemory, capture: Capture): LastShm {
  const shmem = meminfoKiB(capture, 'Shmem');
  if (shmem === null) return () => 0;
  const named = new Map(shared.files.map((file) => [file.path, file.kiB]));
  const elsewhere = shared.mounts.filter(({ mount }) => mount !== '/dev/shm');
  const lasting = shared.segments.filter((segment) => !segment.condemned);
  const unnamedKiB = Math.max(
    0,
    shmem -
      sum(shared.files, (file) => file.kiB) -
      sum(elsewhere, (mount) => mount.usedKiB) -
      sum(lasting, (segment) => segment.rssKiB ?? 0),
  );
  return (procs) => {
    const mapped = sum(procs, (proc) =>
      Math.max(0, proc.shmemKiB - sum([...new Set(proc.held)], (target) => named.get(target) ?? 0)),
    );
    return Math.min(mapped, unnamedKiB, onlyTheirs(world, procs) ? Infinity : 0);
  };
}

const unnamed = /^(\/memfd:|\/dev\/shm\/.* \(deleted\)$)/s;

/** False when everything without a name that they hold is held by others as well. */
function onlyTheirs(world: World, procs: readonly Proc[]): boolean {
  const held = new Set(procs.flatMap((proc) => proc.held.filter((target) => unnamed.test(target))));
  // Nothing of the kind in the list of open files: it may be mapped without one (SysV, /dev/zero), or not have been read.
  if (held.size === 0) return true;
  const inside = new Set(procs.map((proc) => proc.pid));
  const outside = new Set(
    world.table.all.filter((proc) => !inside.has(proc.pid) && !proc.zombie).flatMap((proc) => proc.held),
  );
  return [...held].some((target) => !outside.has(target));
}

/** Said where it is worth a line. */
export const lastShmLine = (kiB: number): string[] =>
  kiB < 64 * 1024
    ? []
    : [`up to ${sizeText(kiB)} of shared memory without a name comes back too, if nobody else maps it`];
