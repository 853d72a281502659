/** nvidia-smi: csv whose every cell may be `[N/A]`, an error text or missing, and whose pids may be from another world. */
import type { Capture } from '../contract.ts';
import { commandOf, integerOf } from './text.ts';

export interface GpuUse {
  /** Pid -> MiB of GPU memory; null where the driver does not say (`[N/A]` on unified memory). */
  readonly byPid: ReadonlyMap<number, number | null>;
}

/** `pid, used_memory, process_name`: the name may hold commas. Lines without a positive pid say nothing. */
export function parseComputeApps(text: string): GpuUse {
  const byPid = new Map<number, number | null>();
  for (const line of text.split('\n')) {
    const cells = line.split(',').map((cell) => cell.trim());
    const pid = integerOf(cells[0]);
    if (pid === null || pid < 1) continue;
    // One process on several GPUs has one line for each.
    const more = integerOf((cells[1] ?? '').replace(/ MiB$/, ''));
    const known = byPid.get(pid) ?? null;
    byPid.set(pid, more === null ? known : (known ?? 0) + more);
  }
  return { byPid };
}

export interface GpuCard {
  readonly index: number;
  readonly usedMiB: number;
  readonly totalMiB: number;
}

/** `index, memory.used, memory.total, utilization.gpu`; a card that does not tell both sizes (`[N/A]`) is left out. */
export function parseCards(text: string): GpuCard[] {
  return text.split('\n').flatMap((line) => {
    const [index, usedMiB, totalMiB] = line.split(',').map((cell) => integerOf(cell.trim().replace(/ MiB$/, '')));
    const told = index != null && usedMiB != null && totalMiB != null && usedMiB >= 0 && usedMiB <= totalMiB;
    return told ? [{ index, usedMiB, totalMiB }] : [];
  });
}

/** What was printed before a time limit cut it off is still true. */
export const readGpuUse = (capture: Capture): GpuUse =>
  parseComputeApps(commandOf(capture, 'nvidia-smi compute-apps').text);

/** Open device nodes of a GPU. Inherited by fork, so a holder need not have a context of its own. */
export const holdsGpu = (held: readonly string[]): boolean =>
  held.some((target) => /^\/dev\/(nvidia(\d|-uvm)|kfd|dri\/render)/.test(target));
