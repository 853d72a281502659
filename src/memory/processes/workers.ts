/** Processes that work only for another one, found after that one died: data loaders, engines, kernels, Slurm tasks. */
import type { Finding } from '../contract.ts';
import { lastShmLine } from './last-shm.ts';
import { killYield, privateRange } from './predict.ts';
import { groupLeaderGone, isBusy, isOldEnough, isProtected, lifeSigns, lostParent, orphanSigns } from './signs.ts';
import { sessionLeaderGone, type OrphanKind, type World } from './signs.ts';
import { killStep, shortList, sourceLine, swapLine, worthAStepKiB, type Telling } from './steps.ts';
import type { Proc } from './table.ts';
import type { Told } from './told.ts';
import { count, gpuLine, largestFirst, ownerWords, privateSum, refOf, startedWords } from './words.ts';

interface WorkerTree {
  readonly root: Proc;
  readonly members: readonly Proc[];
  readonly orphan: ReadonlyMap<OrphanKind, string>;
  readonly life: readonly string[];
}

const isWorker = (world: World, proc: Proc): boolean => {
  const { role } = world.part(proc);
  return role === 'worker' || role === 'engine' || role === 'notebook_kernel';
};

/** Everything of the positive list below a worker goes with it: an inductor worker's nvcc would only run on without it. */
const goesWith = (world: World, proc: Proc): boolean => {
  const { role } = world.part(proc);
  return (
    isWorker(world, proc) || role === 'compiler' || role === 'driver' || (role === 'shell' && proc.argv[1] === '-c')
  );
};

function findOrphanedWorkers(world: World, claimed: ReadonlySet<Proc>): WorkerTree[] {
  const families = forkFamilies(world);
  const isRoot = (proc: Proc): boolean => {
    if (claimed.has(proc) || isProtected(world, proc)) return false;
    const parent = world.table.byPid.get(proc.ppid);
    if (families.has(proc) || jobIsGone(world, proc)) return lostParent(world, proc);
    if (!isWorker(world, proc) || (parent !== undefined && isWorker(world, parent))) return false;
    return lostParent(world, proc) || (parent !== undefined && onlyTheShellIsLeft(world, proc, parent));
  };
  const trees = world.table.all
    .filter(isRoot)
    .map((root) => judge(world, root, claimed, families))
    .filter((tree) => tree.orphan.size >= 2 && tree.life.length === 0);
  return outermost(trees);
}

/** A root may hang below another root; the outer tree holds all of the inner one, which must not be counted twice. */
function outermost(trees: readonly WorkerTree[]): WorkerTree[] {
  const taken = new Set<Proc>();
  return [...trees]
    .sort((a, b) => b.members.length - a.members.length || a.root.pid - b.root.pid)
    .filter(({ root, members }) => {
      if (taken.has(root)) return false;
      for (const proc of members) taken.add(proc);
      return true;
    });
}

/** A titled worker is never started by a shell: under one, the server in between is gone (a shell can be a subreaper). */
function onlyTheShellIsLeft(world: World, proc: Proc, parent: Proc): boolean {
  const { role, label } = world.part(proc);
  return world.part(parent).role === 'shell' && role !== 'notebook_kernel' && label !== 'raylet';
}

const jobIsGone = (world: World, proc: Proc): boolean => {
  const { role } = world.part(proc);
  const { slurm } = world.table.listings;
  return (
    proc.keeper.kind === 'slurm' &&
    slurm !== null &&
    !slurm.has(proc.keeper.job) &&
    role !== 'shell' &&
    role !== 'editor'
  );
};

/** Forked copies of one dead parent: same program, arguments and process group, each of them adopted. */
function forkFamilies(world: World): ReadonlySet<Proc> {
  const families = new Map<string, Proc[]>();
  for (const proc of world.table.all) {
    if (proc.kernel || proc.zombie || proc.argv.length < 2 || world.part(proc).role !== 'other') continue;
    if (!groupLeaderGone(world, proc) || !lostParent(world, proc)) continue;
    const key = `${proc.uid ?? -1} ${proc.pgrp ?? 0} ${proc.exe?.path ?? ''} ${proc.commandLine.slice(0, 4096)}`;
    const family = families.get(key);
    if (family === undefined) families.set(key, [proc]);
    else family.push(proc);
  }
  // One alone may be a daemon that detached in the classic way; several side by side lost the same parent.
  const copies = [...families.values()].filter((family) => family.length > 1);
  return new Set(copies.flat().filter((proc) => sessionLeaderGone(world, proc)));
}

function judge(world: World, root: Proc, claimed: ReadonlySet<Proc>, families: ReadonlySet<Proc>): WorkerTree {
  const members = [root, ...below(world, root)].filter((proc) => !claimed.has(proc) && !isProtected(world, proc));
  const orphan = new Map(orphanSigns(world, root));
  const parent = world.table.byPid.get(root.ppid);
  if (!orphan.has('parent') && parent !== undefined) {
    orphan.set('parent', `the server that started it is gone; only the shell (pid ${parent.pid}) is left above it`);
  }
  const { role, label } = world.part(root);
  if (role === 'notebook_kernel' && !hasNotebookServer(world, root))
    orphan.set('owner', 'no notebook server of its owner is running');
  const life = new Set(members.flatMap((proc) => lifeSigns(world, proc)));
  if (label === 'raylet') life.add('it may serve a Ray head on another machine');
  const owner = livingOwner(world, root);
  if (owner !== undefined) life.add(`pid ${owner.pid} of the same session or process group is alive`);
  // Orphans can burn CPU for days, so work alone is no proof of use against three signs; against two it is.
  const provable = (role === 'worker' || role === 'engine' || jobIsGone(world, root)) && orphan.size >= 3;
  if (members.some(isBusy) && !provable) life.add('it uses CPU');
  if (!world.table.twoLooks && (families.has(root) || role === 'notebook_kernel')) life.add('its CPU use is not known');
  if (!members.every((proc) => isOldEnough(world, proc))) life.add('it is younger than the policy asks for');
  return { root, members, orphan, life: [...life] };
}

function below(world: World, root: Proc): Proc[] {
  const found: Proc[] = [];
  const met = new Set([root.pid]);
  const queue = [root];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const child of world.table.children.get(at.pid) ?? []) {
      if (met.has(child.pid) || child.zombie || !goesWith(world, child)) continue;
      met.add(child.pid);
      found.push(child);
      queue.push(child);
    }
  }
  return found;
}

/** A healthy server may let its schedulers go to init; then it lives on in the same session or process group. */
function livingOwner(world: World, proc: Proc): Proc | undefined {
  const same = (a: number | null, b: number | null) => a !== null && a > 0 && a === b;
  return world.table.all.find(
    (at) =>
      at.pid !== proc.pid &&
      at.uid === proc.uid &&
      !at.zombie &&
      !at.kernel &&
      world.part(at).role === 'other' &&
      !lostParent(world, at) &&
      (same(at.pgrp, proc.pgrp) || same(at.session, proc.session)),
  );
}

function hasNotebookServer(world: World, kernel: Proc): boolean {
  const form = /jupyter|vscode-server|code-server|positron|pycharm|spyder|marimo|notebook/i;
  return world.table.all.some(
    (proc) =>
      proc.pid !== kernel.pid &&
      (proc.uid === kernel.uid || proc.uid === 0) &&
      world.part(proc).role !== 'notebook_kernel' &&
      (form.test(proc.comm) || proc.argv.slice(0, 6).some((arg) => form.test(arg.slice(0, 300)))),
  );
}

export function workerFindings(world: World, claimed: ReadonlySet<Proc>, telling: Telling): Told[] {
  if (!telling.sighted) return [];
  const groups = new Map<string, WorkerTree[]>();
  for (const tree of findOrphanedWorkers(world, claimed)) {
    const { root } = tree;
    const own = root.session === root.pid && root.pgrp === root.pid;
    const key = `${root.uid ?? -1} ${own ? world.part(root).label.replace(/[\d_]+/g, '') : (root.pgrp ?? root.session ?? 0)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [tree]);
    else group.push(tree);
  }
  return [...groups.values()].map((group) => orphanFinding(world, group, telling));
}

/** Whoever starts others again goes first; trackers go last, because they clean up shared memory after the rest. */
function killOrder(world: World, procs: readonly Proc[]): Proc[] {
  const rank = (proc: Proc): number => {
    const { label, role } = world.part(proc);
    if (label === 'raylet' || label === 'fork server' || role === 'driver') return 0;
    return /tracker/.test(label) ? 2 : 1;
  };
  return [...procs].sort((a, b) => rank(a) - rank(b) || b.privateKiB - a.privateKiB || a.pid - b.pid);
}

function orphanFinding(world: World, trees: readonly WorkerTree[], telling: Telling): Told {
  const procs = largestFirst([...new Set(trees.flatMap((tree) => tree.members))]);
  const kiB = privateSum(procs);
  const labels = [...new Set(procs.map((proc) => world.part(proc).label))];
  const shmKiB = telling.lastShm(procs);
  const given = killYield(procs, shmKiB);
  const evidence = [
    `${count(procs.length, 'process', 'processes')} left by a dead job (${shortList(labels, 3).join(', ')}), ` +
      `${startedWords(procs, telling.takenAtMs)}, ${ownerWords(procs)}`,
    ...shortList([...new Set(trees.flatMap((tree) => [...tree.orphan.values()]))]),
    procs.some(isBusy)
      ? 'some of them still use CPU, but nothing is left to take their work'
      : 'none of them used CPU during the look',
    ...gpuLine(world.gpu, procs),
    ...swapLine(procs),
    ...lastShmLine(shmKiB),
    ...sourceLine(procs),
    'a living server, terminal or job that claims these processes would change this',
  ];
  const onGpu = procs.some((proc) => world.gpu.byPid.has(proc.pid));
  const step = kiB < worthAStepKiB && !onGpu ? null : killStep(killOrder(world, procs), given);
  const finding: Finding = {
    class: 'orphaned_workers',
    kiB,
    reclaimableKiB: { low: Math.min(privateRange(procs).low, given.available.low), high: given.available.high },
    action: step === null ? 'none' : 'kill',
    evidence,
    processes: procs.map(refOf),
  };
  return { finding, step, procs };
}
