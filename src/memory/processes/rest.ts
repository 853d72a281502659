/** All other processes, grouped by who keeps them: jobs, containers, services, terminals, notebooks, lone programs. */
import type { Finding } from '../contract.ts';
import { isAdopter } from './roles.ts';
import { isBusy, lifeSigns, orphanSigns, type World } from './signs.ts';
import { shortList, swapLine, worthALineKiB, type Telling } from './steps.ts';
import type { Proc } from './table.ts';
import type { Told } from './told.ts';
import { ageWords, count, gpuLine, largestFirst, ownerWords, privateSum, refOf, startedWords } from './words.ts';
import { escapeText } from '../redact.ts';
import { sizeText } from '../sizes.ts';

type HomeKind = 'slurm' | 'container' | 'unit' | 'terminal' | 'notebook' | 'daemon' | 'build_server' | 'lone';
interface Home {
  readonly kind: HomeKind;
  readonly key: string;
  readonly name: string;
}

function homeOf(world: World, proc: Proc): Home {
  const { keeper } = proc;
  const { slurm, containers } = world.table.listings;
  const owner = escapeText(proc.user ?? `uid ${proc.uid ?? '?'}`, 40);
  if (keeper.kind === 'slurm') {
    const job = slurm?.get(keeper.job);
    const name = job === undefined ? '' : ` (${escapeText(job.name, 60)})`;
    return { kind: 'slurm', key: `slurm ${keeper.job}`, name: `Slurm job ${keeper.job}${name}` };
  }
  if (keeper.kind === 'container') {
    const known = containers.find((c) => keeper.id !== '' && c.id.startsWith(keeper.id.slice(0, 12)))?.name;
    const name = known ?? (keeper.id === '' ? 'of a pod' : keeper.id.slice(0, 12));
    return {
      kind: 'container',
      key: `container ${keeper.id}`,
      name: `${keeper.runtime} container ${escapeText(name, 80)}`,
    };
  }
  if (keeper.kind === 'unit') {
    return { kind: 'unit', key: `unit ${keeper.name} ${proc.uid ?? ''}`, name: escapeText(keeper.name, 80) };
  }
  const chain = [proc, ...world.table.ancestorsOf(proc)];
  const notebook = chain.find((at) => isNotebook(world, at));
  if (notebook !== undefined)
    return { kind: 'notebook', key: `notebook ${proc.uid ?? ''}`, name: `notebooks of ${owner}` };
  const multiplexer = chain.find((at) => world.part(at).role === 'multiplexer');
  if (multiplexer !== undefined) {
    return {
      kind: 'terminal',
      key: `mux ${multiplexer.pid}`,
      name: `${escapeText(multiplexer.comm.split(':')[0] ?? '')} session of ${owner}`,
    };
  }
  if (proc.tty !== 0) return { kind: 'terminal', key: `tty ${proc.session ?? proc.pid}`, name: `terminal of ${owner}` };
  // Up to, not into, whoever adopts or guards: sshd and init are nobody's job.
  const stop = chain.findIndex((at, n) => n > 0 && (isAdopter(at) || world.part(at).role === 'protected'));
  const ownTop = chain[(stop === -1 ? chain.length : stop) - 1] ?? proc;
  // What a server lets go to init still belongs to the session it leads.
  const leader = ownTop.session === null ? undefined : world.table.byPid.get(ownTop.session);
  const top = leader !== undefined && world.part(leader).role === 'other' && !isAdopter(leader) ? leader : ownTop;
  const { role, label } = world.part(top);
  const kind = role === 'protected' ? 'daemon' : role === 'build_server' ? role : 'lone';
  return {
    kind,
    key: `tree ${top.pid}`,
    name: escapeText(role === 'build_server' ? `${label}${idleLimit(top)}` : label, 80),
  };
}

/** The programs that hold the memory, where the one on top of the tree (a shell, a supervisor) holds little of it. */
function groupName(world: World, { kind, name }: Home, procs: readonly Proc[]): string {
  if (kind !== 'lone' && kind !== 'daemon') return name;
  const held = new Map<string, number>();
  for (const proc of procs) {
    const label = escapeText(world.part(proc).label, 40);
    held.set(label, (held.get(label) ?? 0) + proc.privateKiB);
  }
  const labels = [...held].sort((a, b) => b[1] - a[1]).map(([label]) => label);
  if (labels.length < 2 || labels[0] === name) return name;
  const others = labels.filter((label) => label !== name);
  const more = others.length > 2 ? ` and ${others.length - 2} more` : '';
  return `${others.slice(0, 2).join(', ')}${more} under ${name}`;
}

const isNotebook = (world: World, proc: Proc): boolean =>
  world.part(proc).role === 'notebook_kernel' ||
  (world.part(proc).role === 'other' &&
    /^jupyter(hub|-lab|-notebook|-server)?$|jupyterhub-singleuser/.test(world.part(proc).label));

function idleLimit(server: Proc): string {
  const seconds = server.argv
    .map((arg) => /^--max_idle_secs=(\d+)$/.exec(arg)?.[1])
    .find((limit) => limit !== undefined);
  return seconds === undefined ? '' : ` (idle shutdown after ${seconds} s)`;
}

export function restFindings(world: World, claimed: ReadonlySet<Proc>, telling: Telling): Told[] {
  const groups = new Map<string, { home: Home; procs: Proc[] }>();
  for (const proc of world.table.all) {
    if (claimed.has(proc) || proc.kernel || proc.zombie || proc.own) continue;
    const home = homeOf(world, proc);
    const group = groups.get(home.key);
    if (group === undefined) groups.set(home.key, { home, procs: [proc] });
    else group.procs.push(proc);
  }
  return [...groups.values()]
    .filter(({ procs }) => privateSum(procs) >= worthALineKiB)
    .map(({ home, procs }) => restFinding(world, home, largestFirst(procs), telling));
}

function restFinding(world: World, home: Home, procs: readonly Proc[], telling: Telling): Told {
  const busy = procs.filter(isBusy);
  // CPU use that nobody measured counts as use.
  const idle = procs.some((proc) => proc.cpuShare !== null) && busy.length === 0;
  const [kind, action] = classOf(home.kind, idle, procs);
  const big = procs[0];
  const signs = big === undefined ? [] : [...orphanSigns(world, big).values()];
  // The name says already what container or service it runs in.
  const life = (big === undefined ? [] : lifeSigns(world, big)).filter((sign) => !sign.endsWith(home.name));
  const evidence = [
    `${groupName(world, home, procs)}: ${count(procs.length, 'process', 'processes')}, ${startedWords(procs, telling.takenAtMs)}, ${ownerWords(procs)}`,
    busy.length > 0
      ? `${count(busy.length, 'process', 'processes')} of it used CPU during the look`
      : idleWords(world, procs),
    ...shortList(life, 2).map((sign) => `alive: ${sign}`),
    ...unlistedLine(world, big),
    ...(kind === 'idle_owned' ? signs.map((sign) => `but ${sign}`) : []),
    ...gpuLine(world.gpu, procs),
    ...lockedLine(procs),
    ...swapLine(procs),
    ...adviceOf(kind, home),
  ];
  const finding: Finding = {
    class: kind,
    kiB: privateSum(procs),
    reclaimableKiB: { low: 0, high: 0 },
    action,
    evidence,
    processes: procs.slice(0, 50).map(refOf),
  };
  return { finding, step: null, procs };
}

/** A second daemon or a rootless one may own it: no proof that it is left over, but worth a question. */
function unlistedLine(world: World, proc: Proc | undefined): string[] {
  const { containers, containersKnown } = world.table.listings;
  if (proc?.keeper.kind !== 'container' || proc.keeper.runtime !== 'docker' || !containersKnown) return [];
  const id = proc.keeper.id.slice(0, 12);
  return containers.some((c) => c.id.startsWith(id))
    ? []
    : ['but `docker ps` does not list this container: it was removed, or belongs to another daemon'];
}

type RestClass = 'live_job' | 'idle_daemon' | 'idle_owned';
function classOf(home: HomeKind, idle: boolean, procs: readonly Proc[]): [RestClass, Finding['action']] {
  if (home === 'slurm' || home === 'container' || home === 'terminal' || !idle) {
    return ['live_job', home === 'unit' || home === 'daemon' ? 'tell_admin' : 'ask_owner'];
  }
  if (home === 'unit' || home === 'daemon') return ['idle_daemon', 'tell_admin'];
  if (home === 'build_server') return ['idle_daemon', 'ask_owner'];
  // What runs for root or a system account without anybody's session is the machine's own.
  if (home === 'lone' && procs.every((proc) => proc.uid !== null && proc.uid < 1000 && proc.uid !== 0)) {
    return ['idle_daemon', 'tell_admin'];
  }
  return ['idle_owned', 'ask_owner'];
}

function idleWords(world: World, procs: readonly Proc[]): string {
  if (!world.table.twoLooks) return 'CPU use is not known from one look, so it counts as in use';
  if (procs.every((proc) => proc.cpuShare === null))
    return 'too small for a second look, so CPU use is not known and it counts as in use';
  const ages = procs.map((proc) => proc.ageSeconds ?? Infinity);
  const youngest = Math.min(...ages);
  const said = !Number.isFinite(youngest) || ageWords(youngest) === ageWords(Math.max(...ages));
  return `no CPU use during the look${said ? '' : `; its youngest process is ${ageWords(youngest)} old`}`;
}

function lockedLine(procs: readonly Proc[]): string[] {
  const locked = procs.filter((proc) => (proc.status?.lockedKiB ?? 0) > 1024 * 1024);
  return locked.map((proc) => `pid ${proc.pid} has locked ${sizeText(proc.status?.lockedKiB ?? 0)} in RAM`);
}

function adviceOf(kind: RestClass, home: Home): string[] {
  if (home.kind === 'unit')
    return [`a service starts again when it is killed: restart ${home.name} if its memory is wanted`];
  if (home.kind === 'container') return ['to stop it, stop its container: signals from outside are the wrong tool'];
  if (kind === 'idle_owned') return ['its owner may still want what it holds: ask before stopping it'];
  return kind === 'idle_daemon'
    ? ['an administrator can restart it']
    : ['only its owner can say whether it may be stopped'];
}
