/**
 * Signs that nobody is waiting for a process, and signs that somebody is. A process is an orphan on two independent
 * signs and no sign of life; what could not be seen is a sign of life (MEMORY.md section 2).
 */
import type { ThinkOptions } from '../story.ts';
import { targetKey } from '../story.ts';
import { escapeText } from '../redact.ts';
import type { GpuUse } from './gpu.ts';
import { headsNamespace, isAdopter, partOf, type Part } from './roles.ts';
import { editors, shells } from './names.ts';
import type { Proc, ProcessTable } from './table.ts';
import { baseName } from './text.ts';

export interface World {
  readonly table: ProcessTable;
  readonly options: ThinkOptions;
  /** Enough of the process list was read to say that something is NOT in it. */
  readonly complete: boolean;
  /** What the look could not read of a stranger's process counts as alive. */
  readonly privileged: boolean;
  readonly collectorUid: number | null;
  /** The box is swapping hard: waiting for memory is then no sign of anything. */
  readonly thrashing: boolean;
  readonly gpu: GpuUse;
  readonly swapUsedKiB: number;
  /** A name of the box, safe to print. */
  shown(name: string): string;
  part(proc: Proc): Part;
  /** Must never be signalled, whatever it looks like. */
  guarded(proc: Proc): boolean;
}

export function makeWorld(
  table: ProcessTable,
  options: ThinkOptions,
  facts: Omit<World, 'table' | 'options' | 'part' | 'shown' | 'guarded'>,
): World {
  const parts = new Map<number, Part>();
  const part = (proc: Proc): Part => {
    let known = parts.get(proc.pid);
    if (known === undefined) parts.set(proc.pid, (known = partOf(proc)));
    return known;
  };
  const judged = new Map<Proc, boolean>();
  const guarded = (proc: Proc): boolean => {
    let known = judged.get(proc);
    if (known === undefined) judged.set(proc, (known = isGuarded(options, proc, part(proc))));
    return known;
  };
  return { table, options, ...facts, part, guarded, shown: (name) => escapeText(name, 64) };
}

export const isBusy = (proc: Proc): boolean => proc.cpuShare !== null && proc.cpuShare >= 0.03;

/** Independent of one another: the parent; whoever led the session or group; the folder; the job or login it ran under. */
export type OrphanKind = 'parent' | 'leader' | 'folder' | 'keeper' | 'owner';
export type OrphanSigns = ReadonlyMap<OrphanKind, string>;

/**
 * Whether its first parent died: it hangs below whoever adopts orphans, or it is in a session that its parent never
 * shared, which only happens when the process in between is gone (a subreaper of any name).
 */
export function lostParent(world: World, proc: Proc): boolean {
  const parent = world.table.byPid.get(proc.ppid);
  if (parent === undefined) return false;
  if (isAdopter(parent)) return parent.session !== proc.session || parent.session === 0;
  return handedOver(world, proc, parent);
}

function handedOver(world: World, proc: Proc, parent: Proc): boolean {
  const { session } = proc;
  if (session === null || session === 0 || session === proc.pid || session === parent.session) return false;
  return leaderIsGone(world, session);
}

const leaderIsGone = (world: World, pid: number | null): boolean =>
  world.complete && pid !== null && pid > 0 && !world.table.byPid.has(pid);

/** A zombie leads nothing any more, but its parent has not even noticed: that is a life sign of the parent, not of it. */
export const sessionLeaderGone = (world: World, proc: Proc): boolean => leaderIsGone(world, proc.session);
export const groupLeaderGone = (world: World, proc: Proc): boolean => leaderIsGone(world, proc.pgrp);

export function orphanSigns(world: World, proc: Proc): OrphanSigns {
  const signs = new Map<OrphanKind, string>();
  if (lostParent(world, proc)) signs.set('parent', `its parent is gone (now under pid ${proc.ppid})`);
  if (sessionLeaderGone(world, proc)) {
    signs.set('leader', `the session it was started in (${proc.session ?? 0}) has ended`);
  } else if (groupLeaderGone(world, proc)) {
    signs.set('leader', `the command it was started by (process group ${proc.pgrp ?? 0}) has ended`);
  }
  if (proc.cwd?.deleted === true) signs.set('folder', 'its working folder was deleted');
  const keeper = deadKeeper(world, proc);
  if (keeper !== null) signs.set('keeper', keeper);
  return signs;
}

function deadKeeper(world: World, proc: Proc): string | null {
  const { slurm, sessions } = world.table.listings;
  const { keeper } = proc;
  if (keeper.kind === 'slurm' && slurm !== null && !slurm.has(keeper.job)) {
    return `its Slurm job ${keeper.job} is no longer in the queue`;
  }
  if (keeper.kind === 'login' && sessions !== null) {
    const state = sessions.get(keeper.session);
    if (state === undefined) return `its login session ${keeper.session} is over`;
    if (state === 'closing') return `its login session ${keeper.session} is closing`;
  }
  return null;
}

const shims = /^(containerd-shim.*|conmon)$/;

/** Why a process counts as alive, in words; empty when nothing says so. */
export function lifeSigns(world: World, proc: Proc): string[] {
  const signs: string[] = [];
  const kept = keeperAlive(world, proc);
  if (kept !== null) signs.push(kept);
  const above = world.table.ancestorsOf(proc);
  const multiplexer = above.find((at) => world.part(at).role === 'multiplexer');
  if (multiplexer !== undefined) signs.push(`runs inside ${multiplexer.comm}`);
  const inContainer = above.some((at) => at.pid !== 1 && headsNamespace(at)) || above.some((at) => shims.test(at.comm));
  if (inContainer && kept === null) signs.push('runs in a container');
  if (above.some((at) => at.comm === 'slurmstepd') && kept === null) signs.push('slurmstepd still looks after it');
  if (proc.tty !== 0) {
    const attached = proc.foreground === proc.pgrp || !groupLeaderGone(world, proc);
    if (attached) signs.push('is attached to a terminal');
  }
  if (proc.state === 'T' || proc.state === 't') signs.push('was stopped on purpose');
  if (!proc.seen) signs.push('could not be seen well enough');
  else if (!world.privileged && proc.uid !== world.collectorUid)
    signs.push('belongs to somebody this look cannot see into');
  if (world.options.kept.includes(targetKey(proc))) signs.push('its owner asked to keep it');
  return signs;
}

function keeperAlive(world: World, proc: Proc): string | null {
  const { keeper } = proc;
  const { slurm, sessions, containers } = world.table.listings;
  switch (keeper.kind) {
    case 'slurm': {
      const job = slurm?.get(keeper.job);
      if (job !== undefined) return `Slurm job ${keeper.job} (${job.state.toLowerCase()})`;
      return slurm === null ? `Slurm job ${keeper.job}, and squeue did not answer` : null;
    }
    case 'container': {
      const name = containers.find((c) => c.id.startsWith(keeper.id.slice(0, 12)) && keeper.id !== '')?.name;
      return `runs in ${keeper.runtime} container ${name ?? keeper.id.slice(0, 12)}`;
    }
    case 'unit':
      return `belongs to the unit ${keeper.name}`;
    case 'login': {
      // A process handed to init out of a session whose shell lives on is not what that person is working with.
      const state = sessions?.get(keeper.session);
      const stray = lostParent(world, proc) && (groupLeaderGone(world, proc) || sessionLeaderGone(world, proc));
      return state === undefined || state === 'closing' || stray
        ? null
        : `its login session ${keeper.session} is ${state}`;
    }
    case 'none':
      return null;
  }
}

/** What must never be signalled, whatever it looks like. */
export const isProtected = (world: World, proc: Proc): boolean => world.guarded(proc);

function isGuarded(options: ThinkOptions, proc: Proc, { role }: Part): boolean {
  if (proc.pid < 2 || proc.kernel || proc.zombie || proc.own || proc.startTime < 0) return true;
  if (role === 'protected' || role === 'multiplexer' || isAdopter(proc)) return true;
  const exe = baseName(proc.exe?.path ?? '');
  if (proc.tty !== 0 && (role === 'editor' || role === 'shell' || editors.has(exe) || shells.has(exe))) return true;
  return options.protect.some((rule) => {
    const named = [rule.exe, rule.comm, rule.unit, rule.user].some((part) => part !== undefined);
    return (
      named &&
      (rule.exe === undefined || rule.exe === proc.exe?.path) &&
      (rule.comm === undefined || rule.comm === proc.comm) &&
      (rule.unit === undefined || (proc.keeper.kind === 'unit' && rule.unit === proc.keeper.name)) &&
      (rule.user === undefined || rule.user === proc.user || rule.user === String(proc.uid))
    );
  });
}

export const isOldEnough = (world: World, proc: Proc): boolean =>
  world.options.minAgeSeconds.process <= 0 || (proc.ageSeconds ?? -1) >= world.options.minAgeSeconds.process;
