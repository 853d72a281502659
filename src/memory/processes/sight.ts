/** How much of the processes a look really saw. What was not seen counts as alive, and the report says so. */
import type { Capture } from '../contract.ts';
import type { ThinkOptions } from '../story.ts';
import { meminfoKiB } from './driver-findings.ts';
import { readGpuUse } from './gpu.ts';
import { makeWorld, type World } from './signs.ts';
import { readTable, type ProcessTable } from './table.ts';
import { commandOf, textOf } from './text.ts';

export interface Sight {
  readonly world: World;
  readonly partial: string[];
  readonly sighted: boolean;
}

export function look(capture: Capture, options: ThinkOptions): Sight {
  const table = readTable(capture);
  const partial: string[] = [];
  const hidden = hiddenBy(capture);
  const cut = table.danglingParents > Math.max(3, table.all.length / 50);
  if (table.all.length === 0) partial.push('No process could be read.');
  else if (!table.byPid.has(1)) partial.push('Process 1 could not be read, so other people’s processes may be hidden.');
  if (hidden !== null) partial.push(hidden);
  if (cut) partial.push(`The process list is cut: ${table.danglingParents} processes have parents that are not in it.`);
  if (!capture.privileged) {
    partial.push('The look was not privileged: programs, folders and open files of other users could not be seen.');
  }
  if (table.all.length > 0 && !table.twoLooks)
    partial.push('Only one look was taken, so nothing is known about CPU use.');
  partial.push(...missingListings(capture, table));
  // The innermost of the collector's chain that could be read: the shell itself may have ended by the time it was.
  const collector = capture.collectorPids
    .map((pid) => table.byPid.get(pid))
    .find((proc) => (proc?.uid ?? null) !== null);
  const complete = table.byPid.has(1) && hidden === null && !cut;
  const world = makeWorld(table, options, {
    complete,
    privileged: capture.privileged,
    collectorUid: collector?.uid ?? null,
    thrashing: isThrashing(capture),
    gpu: readGpuUse(capture),
    swapUsedKiB: Math.max(0, (meminfoKiB(capture, 'SwapTotal') ?? 0) - (meminfoKiB(capture, 'SwapFree') ?? 0)),
  });
  return { world, partial, sighted: complete };
}

/** hidepid and subset=pid hide strangers from everybody but root. */
function hiddenBy(capture: Capture): string | null {
  if (capture.privileged) return null;
  const mounts = textOf(capture.files['/proc/mounts']) ?? '';
  const proc = mounts.split('\n').find((line) => / \/proc proc /.test(line));
  return proc !== undefined && /hidepid=(?!0\b|off\b)|subset=pid/.test(proc)
    ? 'The proc file system hides other users’ processes (hidepid), so nothing may be called left over.'
    : null;
}

function missingListings(capture: Capture, table: ProcessTable): string[] {
  const said: string[] = [];
  if (table.all.length > 0 && !table.listings.links.answered) {
    said.push(
      'Program paths and working folders could not be read; processes are judged by the names they give themselves.',
    );
  }
  if (table.all.length > 0 && !table.listings.holdersKnown) {
    said.push('Open files could not be read, so no shared memory file may be called unused.');
  }
  const gpu = commandOf(capture, 'nvidia-smi compute-apps');
  if (gpu.timedOut) said.push('nvidia-smi did not answer in time; the report goes on without GPU figures.');
  if (table.all.some((proc) => proc.keeper.kind === 'slurm') && table.listings.slurm === null) {
    said.push('squeue did not answer, so every Slurm job counts as alive.');
  }
  return said;
}

/** Pressure stall information: more than a tenth of the last ten seconds in which everybody waited for memory. */
function isThrashing(capture: Capture): boolean {
  const full = /^full avg10=(\d+(?:\.\d+)?)/m.exec(textOf(capture.files['/proc/pressure/memory']) ?? '')?.[1];
  return full !== undefined && Number(full) > 10;
}
