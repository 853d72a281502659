/** From trees of builds to findings: leftovers with the step that ends them, and builds at work with their owners. */
import type { Finding } from '../contract.ts';
import { findBuilds, findLeftovers, groupLeftovers, type BuildTree } from './builds.ts';
import { lastShmLine } from './last-shm.ts';
import { killYield } from './predict.ts';
import { isBusy, isProtected, type World } from './signs.ts';
import { killStep, shortList, sourceLine, swapLine, worthALineKiB, worthAStepKiB, type Telling } from './steps.ts';
import type { Proc } from './table.ts';
import type { Told } from './told.ts';
import { count, gpuLine, largestFirst, ownerWords, packageName, privateSum, refOf, startedWords } from './words.ts';

export function buildFindings(world: World, claimed: ReadonlySet<Proc>, telling: Telling): Told[] {
  const trees = findBuilds(world, claimed);
  const leftovers = telling.sighted ? findLeftovers(world, trees) : [];
  const roots = new Set(leftovers.map((tree) => tree.root));
  const live = trees.filter((tree) => !roots.has(tree.root));
  const packageOf = (tree: BuildTree) => packageName(tree.members);
  const told = groupLeftovers(leftovers, packageOf).map((group) => leftoverFinding(world, group, telling));
  for (const tree of live) {
    if (privateSum(tree.members) >= worthALineKiB) told.push(liveFinding(world, tree, telling));
  }
  return told;
}

function nameOf(world: World, procs: readonly Proc[], trees: readonly BuildTree[]): string {
  const compilers = procs.filter((proc) => world.part(proc).role === 'compiler').length;
  const what =
    compilers > 0
      ? count(compilers, 'compiler process', 'compiler processes')
      : count(procs.length, 'process', 'processes');
  const name = packageName([...trees.map((tree) => tree.root), ...procs]);
  return `${what} of one build${name === null ? '' : ` of ${name}`}`;
}

/** Drivers first and from the top down, or they start the next compiler; then the largest compilers. */
function killOrder(world: World, procs: readonly Proc[]): Proc[] {
  const depth = new Map(procs.map((proc) => [proc.pid, world.table.ancestorsOf(proc).length]));
  const isDriver = (proc: Proc) => (world.part(proc).role === 'compiler' ? 1 : 0);
  return [...procs].sort(
    (a, b) =>
      isDriver(a) - isDriver(b) ||
      (isDriver(a) === 0 ? (depth.get(a.pid) ?? 0) - (depth.get(b.pid) ?? 0) : b.privateKiB - a.privateKiB) ||
      a.pid - b.pid,
  );
}

function leftoverFinding(world: World, trees: readonly BuildTree[], telling: Telling): Told {
  const procs = largestFirst(trees.flatMap((tree) => tree.members).filter((proc) => !isProtected(world, proc)));
  const shmKiB = telling.lastShm(procs);
  const given = killYield(procs, shmKiB);
  const kiB = privateSum(procs);
  const signs = [...new Set(trees.flatMap((tree) => [...tree.orphan.values()]))];
  const busy = procs.filter(isBusy).length;
  const evidence = [
    `${nameOf(world, procs, trees)}, ${startedWords(procs, telling.takenAtMs)}, ${ownerWords(procs)}, parent gone`,
    ...shortList(signs),
    'no terminal, login session, container, service or batch job holds on to it',
    busy > 0
      ? `${count(busy, 'process', 'processes')} of it still used CPU during the look, but nothing is left to take the result`
      : world.table.twoLooks
        ? 'none of it used CPU during the look'
        : 'CPU use is not known from one look',
    ...gpuLine(world.gpu, procs),
    ...swapLine(procs),
    ...lastShmLine(shmKiB),
    ...sourceLine(procs),
    'a living parent, a terminal or a Slurm job that claims these processes would change this',
  ];
  const step = kiB < worthAStepKiB ? null : killStep(killOrder(world, procs), given);
  const finding: Finding = {
    class: 'leftover_build',
    kiB,
    reclaimableKiB: given.available,
    action: step === null ? 'none' : 'kill',
    evidence,
    processes: procs.map(refOf),
  };
  return { finding, step, procs };
}

function liveFinding(world: World, tree: BuildTree, telling: Telling): Told {
  const procs = largestFirst(tree.members);
  const why = [...tree.life, ...(tree.life.length === 0 ? ['only one sign that it was left behind'] : [])];
  const evidence = [
    `${nameOf(world, procs, [tree])}, ${startedWords(procs, telling.takenAtMs)}, ${ownerWords(procs)}`,
    ...shortList(why.map((sign) => `alive: ${sign}`)),
    ...[...tree.orphan.values()].map((sign) => `speaks against it: ${sign}`),
    'only its owner can say whether it may be stopped',
  ];
  const finding: Finding = {
    class: 'live_job',
    kiB: privateSum(procs),
    reclaimableKiB: { low: 0, high: 0 },
    action: 'ask_owner',
    evidence,
    processes: procs.map(refOf),
  };
  return { finding, step: null, procs };
}
