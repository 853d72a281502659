/** Processes no signal ends: stuck in the kernel, or dead and not yet collected by their parent. */
import type { Finding } from '../contract.ts';
import type { World } from './signs.ts';
import { shortList } from './steps.ts';
import type { Proc } from './table.ts';
import type { Told } from './told.ts';
import { count, largestFirst, ownerWords, privateSum, refOf } from './words.ts';

const nothing = { low: 0, high: 0 };
/** Waits that end by themselves: page faults, swap, ordinary disk and network I/O. */
const passing = /fault|swap|folio|page_wait|wait_on_page|io_schedule|blk_|iomap|submit_bio|nfs_wait|rpc_wait/;
const inDriver = /\[(nvidia|nvidia_uvm|amdgpu|amdkfd)\]|\buvm_|\bnvidia_|\bamdgpu_|\bkfd_/;

/**
 * Stuck: waiting without interruption through both looks on something that is not plain I/O, or running only kernel
 * code inside a GPU driver. One look in state D proves nothing: a box that swaps is full of such processes.
 */
export function isStuck(world: World, proc: Proc): boolean {
  if (proc.kernel || proc.own || proc.state !== proc.stateBefore) return false;
  if (proc.state === 'R') {
    // A healthy program calls into the driver as well, but comes back to its own code.
    const onlyKernel = (proc.cpuShare ?? 0) === 0 || proc.systemPart >= 0.95;
    return onlyKernel && inDriver.test(proc.wait) && world.part(proc).role !== 'protected';
  }
  if (proc.state !== 'D') return false;
  if (world.part(proc).role === 'protected') return false;
  return (proc.cpuShare ?? 1) === 0 && !world.thrashing && !passing.test(proc.wait);
}

export function stuckFindings(world: World): Told[] {
  const told: Told[] = [];
  const stuck = largestFirst(world.table.all.filter((proc) => isStuck(world, proc)));
  if (stuck.length > 0) {
    const driver = stuck.some((proc) => inDriver.test(proc.wait));
    told.push({
      procs: stuck,
      step: null,
      finding: finding('unkillable', stuck, 'tell_admin', [
        `${count(stuck.length, 'process', 'processes')} stuck in the kernel, ${ownerWords(stuck)}`,
        ...stuckWords(stuck),
        driver
          ? 'the wait is inside the GPU driver: only a reboot helps'
          : 'a dead network mount or a driver may be behind it',
        'a later look that finds them in another state would change this',
      ]),
    });
  }
  const zombies = world.table.all.filter((proc) => proc.zombie && !proc.own);
  if (zombies.length > 0) told.push({ procs: zombies, step: null, finding: zombieFinding(world, zombies) });
  return told;
}

function stuckWords(stuck: readonly Proc[]): string[] {
  const where = (procs: readonly Proc[]): string => {
    const symbols = procs.map((proc) => /[a-z_]\w{3,60}/i.exec(proc.wait)?.[0]).filter((name) => name !== undefined);
    return symbols.length === 0 ? '' : ` (${shortList([...new Set(symbols)], 3).join(', ')})`;
  };
  const waiting = stuck.filter((proc) => proc.state === 'D');
  const spinning = stuck.filter((proc) => proc.state === 'R');
  return [
    ...(waiting.length > 0
      ? [`uninterruptible at both looks${where(waiting)}, without any CPU use: no signal, not even KILL, ends them`]
      : []),
    ...(spinning.length > 0
      ? [`running inside the kernel at both looks${where(spinning)}: no signal, not even KILL, reaches them there`]
      : []),
  ];
}

function zombieFinding(world: World, zombies: readonly Proc[]): Finding {
  const parents = [...new Set(zombies.map((proc) => proc.ppid))].map((pid) => {
    const parent = world.table.byPid.get(pid);
    return parent === undefined ? `pid ${pid}` : `pid ${pid} (${refOf(parent).comm})`;
  });
  const waiting = parents.length <= 3 ? parents : [...parents.slice(0, 3), `and ${parents.length - 3} more`];
  const onGpu = zombies.filter((proc) => world.gpu.byPid.has(proc.pid));
  return finding('zombie', zombies, 'none', [
    `${count(zombies.length, 'process has ended and waits', 'processes have ended and wait')} to be collected by ${waiting.join(', ')}`,
    'they hold no memory; a signal does nothing to them, only their parent can let them go',
    ...onGpu.map(
      (proc) => `pid ${proc.pid} still has a GPU context: a living child or thread of it holds the GPU memory`,
    ),
  ]);
}

function finding(
  of: 'unkillable' | 'zombie',
  procs: readonly Proc[],
  action: Finding['action'],
  evidence: string[],
): Finding {
  return {
    class: of,
    kiB: privateSum(procs),
    reclaimableKiB: nothing,
    action,
    evidence,
    processes: procs.slice(0, 200).map(refOf),
  };
}
