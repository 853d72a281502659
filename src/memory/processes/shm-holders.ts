/** Who may still use a piece of shared memory. Whoever cannot be ruled out counts as a user of it. */
import type { World } from './signs.ts';
import type { ShmFile, SysvSegment } from './shared.ts';
import type { Proc } from './table.ts';
import { holdsGpu } from './gpu.ts';
import { baseName } from './text.ts';

/** Path -> pids that have it open or mapped. */
export function holdersByPath(world: World): ReadonlyMap<string, readonly number[]> {
  const byPath = new Map<string, number[]>();
  for (const [pid, targets] of world.table.listings.holders) {
    for (const target of targets) {
      const pids = byPath.get(target);
      if (pids === undefined) byPath.set(target, [pid]);
      else if (!pids.includes(pid)) pids.push(pid);
    }
  }
  return byPath;
}

/**
 * Pids that a file name carries: `torch_4711_…`, `sgl_shm_mm_4711_…`, `joblib_memmapping_folder_4711_…`, `sem.loky-4711-…`,
 * `64060-19015….npy`. Only the first two numbers that could be pids are looked at.
 */
export function pidsInName(path: string): number[] {
  const name = path
    .replace(/^\/dev\/shm\//, '')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '');
  const numbers = name.match(/(?<![A-Za-z0-9])[1-9]\d{1,6}(?![A-Za-z0-9])/g) ?? [];
  return [...new Set(numbers.map(Number))].filter((n) => n > 1 && n <= 4_194_304).slice(0, 2);
}

/** Alive, and already there when the thing was last written: a younger process of that pid is somebody else. */
export function wasThere(world: World, pid: number, atUnixSeconds: number, nowUnixSeconds: number): boolean {
  const proc = world.table.byPid.get(pid);
  if (proc === undefined || proc.zombie || proc.kernel) return false;
  return proc.ageSeconds === null || nowUnixSeconds - proc.ageSeconds <= atUnixSeconds + 2;
}

export const usesGpu = (world: World, proc: Proc): boolean =>
  !proc.zombie && (holdsGpu(proc.held) || (world.gpu.byPid.has(proc.pid) && !proc.kernel));

/** Why a file may still be in use, or null when everything says that it is not. */
export function fileInUse(
  world: World,
  file: ShmFile,
  holders: ReadonlyMap<string, readonly number[]>,
  nowUnixSeconds: number,
): string | null {
  const held = holders.get(file.path);
  if (held !== undefined)
    return `held by ${nameOf(world, held[0] ?? 0)}${held.length > 1 ? ` and ${held.length - 1} more` : ''}`;
  if (/^sem\./.test(baseName(file.path))) return 'a semaphore, never removed';
  const creators = pidsInName(file.path);
  const alive = creators.find((pid) => wasThere(world, pid, file.mtime, nowUnixSeconds));
  if (alive !== undefined) return `its name carries the pid of ${nameOf(world, alive)}, which is alive`;
  if (creators.length > 0) return null;
  // No pid in the name: whoever of the owner's is at work on a GPU may be about to open it.
  const gpu = world.table.all.find((proc) => proc.uid === file.uid && usesGpu(world, proc));
  return gpu === undefined ? null : `${nameOf(world, gpu.pid)} of the same owner is at work on a GPU`;
}

/** Why a segment may be in use; null when nobody is. Creator and last user from another pid namespace show as 0: not known. */
export function segmentUse(world: World, segment: SysvSegment, nowUnixSeconds: number): string | null {
  if (segment.attached > 0)
    return segment.attached === 1 ? '1 process is attached' : `${segment.attached} processes are attached`;
  if (segment.creatorPid === 0) return 'its creator is in another pid namespace and may be alive';
  const alive = [segment.creatorPid, segment.lastPid].find(
    (pid) => pid > 0 && wasThere(world, pid, segment.touched, nowUnixSeconds),
  );
  return alive === undefined ? null : `nobody is attached, but ${nameOf(world, alive)}, which used it, is alive`;
}

function nameOf(world: World, pid: number): string {
  const proc = world.table.byPid.get(pid);
  return proc === undefined ? `pid ${pid}` : `pid ${pid} (${world.shown(proc.comm)})`;
}
