/** Shared memory and GPU contexts that belong to drivers: pinned buffers, leaks, and pids only nvidia-smi knows. */
import { sizeText } from '../sizes.ts';
import type { Capture, Finding } from '../contract.ts';
import { parseCards } from './gpu.ts';
import { usesGpu } from './shm-holders.ts';
import type { SharedMemory } from './shm-findings.ts';
import { sum } from './predict.ts';
import type { World } from './signs.ts';
import { shortList, type Telling } from './steps.ts';
import type { Proc } from './table.ts';
import { commandOf, integerOf, textOf } from './text.ts';
import type { Told } from './told.ts';
import { count, ownerWords, refOf } from './words.ts';

export function meminfoKiB(capture: Capture, name: string): number | null {
  const text = textOf(capture.files['/proc/meminfo']) ?? '';
  return integerOf(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]);
}

/** Below this, shared memory nobody named is the small change of desktops and databases. */
const worthNamingKiB = 2 * 1024 * 1024;

/** Shmem beyond every tmpfs and SysV segment: pinned by CUDA or shared anonymously, or leaked when no process maps any. */
function unnamedShmem(world: World, shared: SharedMemory, capture: Capture): Told[] {
  const shmem = meminfoKiB(capture, 'Shmem');
  // In some containers the figure is that of the host, and says nothing about this box.
  if (shmem === null || !shared.mountsKnown || shmem > (meminfoKiB(capture, 'MemTotal') ?? 0)) return [];
  const rest = shmem - sum(shared.mounts, (m) => m.usedKiB) - sum(shared.segments, (s) => s.rssKiB ?? 0);
  if (rest < worthNamingKiB) return [];
  const users = world.table.all.filter((proc) => proc.shmemKiB > 1024).sort((a, b) => b.shmemKiB - a.shmemKiB);
  return [users.length > 0 ? pinned(rest, users) : leaked(rest)];
}

function pinned(kiB: number, users: readonly Proc[]): Told {
  const finding: Finding = {
    class: 'pinned_shm',
    kiB,
    reclaimableKiB: { low: 0, high: 0 },
    action: 'ask_owner',
    evidence: [
      `${sizeText(kiB)} of shared memory without a name, in use by ${count(users.length, 'process', 'processes')}, ${ownerWords(users.slice(0, 20))}`,
      'pinned buffers of CUDA and memory shared between workers look like this (`/dev/zero (deleted)` in maps): it is live',
      'it comes back when the last process that maps it ends',
    ],
    processes: users.slice(0, 20).map((proc) => ({ ...refOf(proc), kiB: proc.shmemKiB })),
  };
  return { finding, step: null, procs: [] };
}

function leaked(kiB: number): Told {
  const finding: Finding = {
    class: 'gpu_driver',
    kiB,
    reclaimableKiB: { low: 0, high: 0 },
    action: 'tell_admin',
    evidence: [
      `${sizeText(kiB)} of shared memory is in no file and no segment, and no process maps any`,
      'graphics drivers keep buffers this way, and some leak them: a driver update or a reboot gives it back',
      'deleting files in /dev/shm or ending processes does not',
    ],
  };
  return { finding, step: null, procs: [] };
}

/** Contexts of pids this box does not show: in another pid namespace, or dead with the driver still holding on. */
function strangersOnGpu(world: World): Told[] {
  if (world.gpu.byPid.size === 0) return [];
  const known = new Set(world.table.all.flatMap((proc) => [proc.pid, ...(proc.status?.namespacePids ?? [])]));
  const strangers = [...world.gpu.byPid].filter(([pid]) => !known.has(pid));
  if (strangers.length === 0) return [];
  const mib = sum(strangers, ([, used]) => used ?? 0);
  const evidence = [
    `nvidia-smi lists ${count(strangers.length, 'process', 'processes')} with ${mib} MiB of GPU memory that this box does not show ` +
      `(pid ${shortList(
        strangers.map(([pid]) => String(pid)),
        5,
      ).join(', ')})`,
    'they live in another pid namespace, or they are dead and something still holds their context',
    holderWords(world),
  ];
  return [{ finding: gpuFinding(evidence), step: null, procs: [] }];
}

/** Every card keeps some memory for itself. */
const driverOwnMiB = 1024;

/** GPU memory in use beyond what the listed processes have: a dying context, another namespace, or a graphics client. */
function unlistedOnGpu(world: World, capture: Capture): Told[] {
  const apps = commandOf(capture, 'nvidia-smi compute-apps');
  // A driver that tells no sizes (`[N/A]`), or did not finish its list, leaves nothing to compare.
  if (!apps.answered || apps.timedOut || [...world.gpu.byPid.values()].includes(null)) return [];
  const cards = parseCards(commandOf(capture, 'nvidia-smi gpus').text);
  if (cards.length === 0) return [];
  const listedMiB = sum([...world.gpu.byPid.values()], (mib) => mib ?? 0);
  const missing = sum(cards, (card) => card.usedMiB) - listedMiB;
  if (missing < Math.max(driverOwnMiB * cards.length, sum(cards, (card) => card.totalMiB) * 0.05)) return [];
  const full = [...cards].sort((a, b) => b.usedMiB - a.usedMiB).filter((card) => card.usedMiB > driverOwnMiB);
  const evidence = [
    `${missing} MiB of GPU memory is in use by no process that nvidia-smi lists (` +
      `${shortList(
        full.map((card) => `GPU ${card.index}: ${card.usedMiB} of ${card.totalMiB} MiB`),
        4,
      ).join(', ')}); this is not RAM`,
    holderWords(world),
    'it stays until whoever holds it ends; with no holder anywhere, only a reset of the GPU by an administrator helps',
  ];
  return [{ finding: gpuFinding(evidence), step: null, procs: [] }];
}

const gpuFinding = (evidence: string[]): Finding => ({
  class: 'gpu_driver',
  kiB: 0,
  reclaimableKiB: { low: 0, high: 0 },
  action: 'tell_admin',
  evidence,
});

/** Open device nodes tell who could hold GPU memory where nvidia-smi does not. */
function holderWords(world: World): string {
  const holders = world.table.all.filter((proc) => usesGpu(world, proc) && world.part(proc).role !== 'protected');
  if (!world.table.listings.holdersKnown) return 'who has a GPU device open could not be read';
  if (holders.length === 0) return 'no process here has a GPU device open';
  const named = holders.map((proc) => `pid ${proc.pid} (${world.shown(proc.comm)})`);
  return `open GPU devices: ${shortList(named, 5).join(', ')}`;
}

export function driverFindings(world: World, shared: SharedMemory, capture: Capture, telling: Telling): Told[] {
  return [
    ...unnamedShmem(world, shared, capture),
    ...(telling.sighted ? [...strangersOnGpu(world), ...unlistedOnGpu(world, capture)] : []),
  ];
}
