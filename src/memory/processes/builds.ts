/** Builds: trees of compilers and the programs that drive them, whole or torn. */
import { groupLeaderGone, isBusy, isOldEnough, isProtected, lifeSigns, lostParent, orphanSigns } from './signs.ts';
import { type OrphanKind, type World } from './signs.ts';
import type { Proc } from './table.ts';

/** A tree of build processes that belong together, and what speaks for and against its being wanted. */
export interface BuildTree {
  readonly root: Proc;
  readonly members: readonly Proc[];
  readonly orphan: ReadonlyMap<OrphanKind, string>;
  readonly life: readonly string[];
}

const isBuilder = (world: World, proc: Proc): boolean => {
  const { role } = world.part(proc);
  return (
    (role === 'compiler' || role === 'driver') && proc.seen && !proc.kernel && !proc.zombie && !isProtected(world, proc)
  );
};

/** `sh -c "nvcc …"` between two build processes: part of the tree, so that killing the tree leaves no stump that goes on. */
function isBuildShell(world: World, proc: Proc): boolean {
  if (world.part(proc).role !== 'shell' || proc.tty !== 0 || proc.argv[1] !== '-c' || isProtected(world, proc))
    return false;
  const parent = world.table.byPid.get(proc.ppid);
  const builtBelow = (world.table.children.get(proc.pid) ?? []).some((child) => isBuilder(world, child));
  return builtBelow && parent !== undefined && (isBuilder(world, parent) || lostParent(world, proc));
}

/** `make train` is a job, not a build: a runner whose tree holds no compiler but real programs builds nothing. */
function runsPrograms(world: World, root: Proc, members: readonly Proc[]): boolean {
  if (members.some((proc) => world.part(proc).role === 'compiler')) return false;
  const inside = new Set(members.map((proc) => proc.pid));
  const strangers = members
    .flatMap((proc) => world.table.children.get(proc.pid) ?? [])
    .filter((child) => !inside.has(child.pid) && !child.zombie && world.part(child).role !== 'shell');
  const biggest = Math.max(0, ...strangers.map((proc) => proc.privateKiB));
  return biggest > Math.max(64 * 1024, root.privateKiB);
}

/** `claimed`: processes another finding already speaks for. */
export function findBuilds(world: World, claimed: ReadonlySet<Proc>): BuildTree[] {
  const members = new Set(world.table.all.filter((proc) => !claimed.has(proc) && isBuilder(world, proc)));
  for (const proc of world.table.all) if (!claimed.has(proc) && isBuildShell(world, proc)) members.add(proc);
  const roots = new Map<number, Proc[]>();
  for (const proc of members) {
    const root = rootOf(world, members, proc);
    const tree = roots.get(root.pid);
    if (tree === undefined) roots.set(root.pid, [proc]);
    else tree.push(proc);
  }
  const trees: BuildTree[] = [];
  for (const [pid, tree] of roots) {
    const root = world.table.byPid.get(pid);
    if (root !== undefined && !runsPrograms(world, root, tree)) trees.push(judge(world, root, tree));
  }
  return trees;
}

function rootOf(world: World, members: ReadonlySet<Proc>, proc: Proc): Proc {
  let root = proc;
  for (const at of world.table.ancestorsOf(proc)) {
    if (!members.has(at)) break;
    root = at;
  }
  return root;
}

function judge(world: World, root: Proc, members: readonly Proc[]): BuildTree {
  const orphan = new Map(orphanSigns(world, root));
  const { role } = world.part(root);
  if (role === 'compiler' && orphan.has('parent')) {
    orphan.set('owner', 'compilers run only below a build, and there is none above it');
  }
  const gone = members.find((proc) => proc.cwd?.deleted === true);
  if (gone !== undefined) orphan.set('folder', 'its build folder was deleted');
  const life = new Set(members.flatMap((proc) => lifeSigns(world, proc)));
  if (!orphan.has('parent')) life.add(`its parent (pid ${root.ppid}) is alive`);
  // nohup and setsid make a build look left behind; one that leads its own group and gets on is somebody's.
  const detached = role === 'driver' && !groupLeaderGone(world, root) && !belongsToDeadBuild(root);
  if (detached && orphan.has('parent') && members.some(isBusy))
    life.add('it still makes progress, started to run unattended');
  if (!members.every((proc) => isOldEnough(world, proc))) life.add('it is younger than the policy asks for');
  return { root, members, orphan, life: [...life] };
}

/** ninja in the temporary folder of a pip or uv build whose pip or uv is gone has no one to hand its result to. */
function belongsToDeadBuild(root: Proc): boolean {
  const where = `${root.cwd?.path ?? ''} ${root.argv.slice(1, 8).join(' ')}`;
  return /\/pip-(install|req-build|build-env|wheel)-|\/builds-v0\/|\/sdists-v\d+\/|\/build\/temp\.linux/.test(where);
}

export const isLeftover = (tree: BuildTree): boolean => tree.orphan.size >= 2 && tree.life.length === 0;

/**
 * Adds the drivers of torn builds. Alone, an idle pip or ninja below init may wait for a download. Beside the compilers of
 * the same owner that were torn from their build, started in the same folder or minutes, it is what they were torn from.
 */
export function findLeftovers(world: World, trees: readonly BuildTree[]): BuildTree[] {
  const leftovers = trees.filter(isLeftover);
  const torn = leftovers.filter((tree) => world.part(tree.root).role === 'compiler');
  const joined = trees
    .filter((tree) => tree.orphan.size === 1 && tree.orphan.has('parent') && tree.life.length === 0)
    .filter((tree) => world.table.twoLooks && !tree.members.some(isBusy))
    .filter((tree) => torn.some((other) => belongTogether(tree.root, other.root)))
    .map((tree) => ({
      ...tree,
      orphan: new Map(tree.orphan).set('owner', 'the compilers of the same build were torn from it'),
    }));
  return [...leftovers, ...joined];
}

const sameBuildSeconds = 900;
function belongTogether(a: Proc, b: Proc): boolean {
  if (a.uid !== b.uid) return false;
  if (a.cwd !== null && a.cwd.path !== '/' && a.cwd.path === b.cwd?.path) return true;
  return a.ageSeconds !== null && b.ageSeconds !== null && Math.abs(a.ageSeconds - b.ageSeconds) <= sameBuildSeconds;
}

/** Leftover trees of one build: same owner, and the same dead session, build folder or, with neither, package. */
export function groupLeftovers(
  trees: readonly BuildTree[],
  packageOf: (tree: BuildTree) => string | null,
): BuildTree[][] {
  const groups: { keys: Set<string>; trees: BuildTree[] }[] = [];
  for (const tree of trees) {
    const keys = groupKeys(tree, packageOf);
    // A tree may tie two groups together: one by its session, the other by its folder.
    const tied = groups.filter((group) => keys.some((key) => group.keys.has(key)));
    const [first, ...others] = tied;
    if (first === undefined) {
      groups.push({ keys: new Set(keys), trees: [tree] });
      continue;
    }
    for (const key of [...keys, ...others.flatMap((group) => [...group.keys])]) first.keys.add(key);
    first.trees.push(...others.flatMap((group) => group.trees), tree);
    for (const group of others) groups.splice(groups.indexOf(group), 1);
  }
  return groups.map((group) => group.trees);
}

/** The folder a package is built in, whatever is worked on inside it. */
const buildFolder = /^.*?\/(?:pip-(?:install|req-build|wheel)-[^/]+|builds-v0|sdists-v\d+)\/[^/]+/;

function groupKeys(tree: BuildTree, packageOf: (tree: BuildTree) => string | null): string[] {
  const { root } = tree;
  const owner = root.uid ?? -1;
  const path = root.cwd === null || root.cwd.path === '/' ? null : root.cwd.path;
  const inBuild = path === null ? undefined : buildFolder.exec(path)?.[0];
  // People start many things in one folder; only one build works in a folder made for it, or in one that is deleted.
  const folder = inBuild ?? (root.cwd?.deleted === true ? path : null);
  const sessionShared = root.session !== null && root.session > 0 && root.session !== root.pid;
  const session = sessionShared ? [`${owner} session ${root.session}`] : [];
  if (folder !== null) return [...session, `${owner} folder ${folder}`];
  return sessionShared ? session : [`${owner} ${path ?? packageOf(tree) ?? ''}`];
}
