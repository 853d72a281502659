/** Parts that every finding about processes shares: its kill step and the lines about doubt. */
import { sizeText } from '../sizes.ts';
import type { DraftStep } from '../story.ts';
import type { LastShm } from './last-shm.ts';
import { privateRange, sum, type KillYield } from './predict.ts';
import type { Proc } from './table.ts';

export interface Telling {
  readonly takenAtMs: number;
  readonly sighted: boolean;
  readonly lastShm: LastShm;
}

/** Smaller leftovers are mentioned, but nobody is asked to approve a kill for them. */
export const worthAStepKiB = 64 * 1024;
/** Live work smaller than this is not worth a line. */
export const worthALineKiB = 64 * 1024;

/** Many trees say the same with other pids: three examples and a count. */
export function shortList(lines: readonly string[], most = 4): string[] {
  return lines.length <= most ? [...lines] : [...lines.slice(0, most), `and ${lines.length - most} more of the kind`];
}

export const swapLine = (procs: readonly Proc[]): string[] => {
  const swap = sum(procs, (proc) => proc.swapKiB);
  return swap > 0 ? [`also ${sizeText(swap)} in swap, which goes back to swap, not to RAM`] : [];
};

export const sourceLine = (procs: readonly Proc[]): string[] => {
  const range = privateRange(procs);
  return range.low < range.high * 0.8
    ? [`sizes are upper bounds: forked copies may share memory (${sizeText(range.low)} is certain)`]
    : [];
};

export function killStep(inOrder: readonly Proc[], given: KillYield): DraftStep {
  return {
    action: 'kill',
    targets: inOrder.map(({ pid, startTime }) => ({ pid, startTime })),
    expectedFreeKiB: given.free,
    expectedAvailableKiB: given.available,
  };
}
