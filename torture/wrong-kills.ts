/**
 * Wrong kills: processes that fork, exec, rename, change their user, exit and have their numbers given away, before the plan is
 * acted on and while it is. A signal to a process that is not on the approved plan is a breach, and so is a second TERM or a
 * result that is not true.
 */
import { readFileSync, realpathSync, rmSync } from 'node:fs';
import { act } from '../src/act.ts';
import type { KillOrder, ResultOf } from '../src/box.ts';
import { look } from '../src/look.ts';
import type { KillTarget } from '../src/memory/contract.ts';
import { planWithout } from '../src/memory/plan.ts';
import { targetKey } from '../src/memory/story.ts';
import { defaultThinkOptions } from '../src/memory/think.ts';
import { readHostProgram } from '../src/ssh/host-program.ts';
import { systemClock } from '../src/system-clock.ts';
import { buildPlans } from '../src/demo/leftovers.ts';
import { Arena, type Fighter, type Spec } from './arena.ts';
import { type Chance, type Part, rounds, Tally, type Told } from './part.ts';

const exe = realpathSync('/usr/bin/python3');
const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

const gap = '  $SIGNALLER "$sig"\n';
/** The program with room between its check and its signal, where everything may change. */
function slowProgram(): string {
  const text = readHostProgram();
  if (text.split(gap).length !== 2)
    throw new Error('The host program signals elsewhere now: this part must follow it.');
  return text.replace(gap, () => `  sleep 0.04\n${gap}`);
}

interface World {
  readonly arena: Arena;
  readonly chance: Chance;
  readonly tally: Tally;
  readonly breach: (what: string) => void;
}

/** What may have been signalled, by key; all else must not have been. */
function judge({ tally, breach }: World, all: readonly Fighter[], approved: ReadonlySet<string>): void {
  for (const fighter of all) {
    const { signals, id, pid } = fighter;
    tally.add('processes in the arena');
    tally.add('signals', signals.length);
    if (id === `after-${pid}`) tally.add('numbers that went to another process');
    if (approved.has(targetKey(fighter))) {
      if (signals.filter((s) => s === 15).length > 1)
        breach(`TERM reached ${id} (pid ${pid}) more than once: ${signals.join()}`);
      if (signals.some((s) => s !== 15 && s !== 9)) breach(`${id} (pid ${pid}) got other signals: ${signals.join()}`);
    } else if (signals.length > 0) {
      tally.add('signals to processes that were not approved');
      breach(`${id} (pid ${pid}) was not approved and got ${signals.join()}`);
    }
  }
}

/** A result is a claim about a process: it must be true of what the arena saw. */
function judgeResults(
  { breach, tally }: World,
  all: readonly Fighter[],
  results: readonly ResultOf<KillTarget>[],
): void {
  for (const result of results) {
    const fighter = all.find((f) => targetKey(f) === targetKey(result));
    if (fighter === undefined) continue;
    tally.add(`results: ${result.result}`);
    const gone = ['exited', 'killed', 'already_gone', 'respawned'].includes(result.result);
    if (gone && !fighter.ended) breach(`${fighter.id} was told to be ${result.result} and is alive`);
    if (result.result === 'already_gone' && fighter.signals.includes(9))
      breach(`${fighter.id} was killed and told to be gone`);
  }
}

const names = ['cicc', 'ptxas', 'cc1plus', 'ninja', 'nvcc', 'uv', 'python3', 'x) S 1 (y', 'a\nb 9 9'] as const;
const protectedNames = ['sshd', 'slurmd', 'dockerd', 'systemd-logind'] as const;

/** Orders straight to the host program: many processes, everything changes, before and meanwhile. */
async function direct(world: World, program: string | undefined): Promise<void> {
  const { arena, chance } = world;
  const specs: Spec[] = Array.from({ length: chance.between(5, 14) }, (_, n) => ({
    id: `p${n}`,
    name: chance.pick(names),
    stubborn: chance.yes(0.3),
    ...(chance.yes(0.4) ? { uid: chance.between(1_000, 1_003) } : {}),
  }));
  const fighters = await arena.start(specs);
  const named = (f: Fighter) => specs.find((s) => s.id === f.id)?.name ?? '';
  const planned = chance.some(fighters, 0.6);
  const targets = planned.map((f) => {
    const pinned = chance.yes(0.7);
    const uid = specs.find((s) => s.id === f.id)?.uid ?? 0;
    return { pid: f.pid, startTime: f.startTime, ...(pinned ? { uid, exe } : {}) };
  });
  const approved = new Set(targets.map(targetKey));
  arena.order({ reuse: Object.fromEntries(planned.map((f) => [f.pid, named(f)])) });

  // Between approval and act. Whoever is no longer what was approved must be left alone from here on.
  const before: [number, string][] = [];
  for (const [n, f] of planned.entries()) {
    const pinned = targets[n]?.exe !== undefined;
    const isRoot = targets[n]?.uid === 0;
    const what = chance.pick(['stay', 'stay', 'stay', 'exit', 'exit', 'exec', 'rename', 'setuid', 'fork'] as const);
    if (what === 'rename') before.push([f.pid, `rename ${chance.pick(protectedNames)}`]);
    else if (what === 'setuid' && isRoot) before.push([f.pid, 'setuid 12345']);
    else if (what !== 'stay' && what !== 'setuid') before.push([f.pid, what]);
    if (what === 'rename' || (pinned && (what === 'exec' || (what === 'setuid' && isRoot))))
      approved.delete(targetKey(f));
  }
  arena.order({ later: before.map(([pid, what]) => [0, pid, what]) });
  await arena.until(() =>
    before.every(([pid, what]) =>
      what === 'exit' ? planned.some((f) => f.pid === pid && f.ended) : arena.done.has(`${pid} ${what.split(' ')[0]}`),
    ),
  );

  // And while it is acted on.
  const meanwhile = chance.some(fighters, 0.5).map((f) => {
    // A protected name must not be taken off again: with another one it may be signalled.
    const keepsName = before.some(([pid, what]) => pid === f.pid && what.startsWith('rename'));
    const other = chance.pick([f, ...planned]).pid;
    const any = chance.pick(['exit', 'exit', 'exit', 'exec', 'fork', 'rename cicc', `nest ${other}`]);
    const what = keepsName ? 'exit' : any;
    return [chance.below(900), f.pid, what];
  });
  arena.order({ later: meanwhile });
  const order: KillOrder = { bootId, graceMs: chance.between(100, 500), protect: [], targets };
  const results = await arena.box('arena', program).kill(order);
  const all = await arena.clear();
  judge(world, all, approved);
  judgeResults(world, all, results);
}

/** The whole way: a real look, the plan that comes of it, some of it approved, a changed box, and the run. */
async function wholeWay(world: World, program: string | undefined): Promise<void> {
  const { arena, chance, tally } = world;
  const cwd = arena.workFolder('pip-install-x1');
  const alive = arena.workFolder('home');
  const build = buildPlans(400 * 1024).map((plan, n): Spec => {
    const { comm, argv, anonKiB } = plan;
    return { id: `build${n}`, name: comm, argv, mib: Math.ceil(anonKiB / 1024), cwd, stubborn: chance.yes(0.3) };
  });
  const innocents: Spec[] = [
    { id: 'vim', name: 'vim', argv: ['vim', 'flash_attn.cu'], cwd: alive },
    { id: 'tail', name: 'tail', argv: ['tail', '-f', 'flash_build.log'], cwd: alive, mib: 8 },
  ];
  const fighters = await arena.start([...build, ...innocents]);
  rmSync(cwd, { recursive: true });
  const box = arena.box('arena', program);
  const { thought } = await look(box, defaultThinkOptions);
  const whole = thought.diagnosis.plan;
  const kill = whole?.steps.find((step) => step.action === 'kill');
  if (whole === null || kill === undefined) throw new Error('a dead build was not found');
  for (const target of kill.targets) {
    const who = fighters.find((f) => targetKey(f) === targetKey(target));
    if (who === undefined || !who.id.startsWith('build')) world.breach(`the plan names ${who?.id ?? target.pid}`);
  }
  // Only the processes: files and cache belong to the whole machine.
  const unticked = new Set(chance.some(kill.targets, 0.3).map(targetKey));
  if (unticked.size === kill.targets.length) unticked.clear();
  const others = whole.steps.filter((step) => step !== kill).map((step) => `step:${step.id}`);
  const plan = planWithout(whole, [...unticked, ...others], thought.identities, thought.bootId);
  if (plan === null) throw new Error('nothing is left of the plan');
  const { steps } = plan;
  const approved = new Set(steps.flatMap((step) => (step.action === 'kill' ? step.targets.map(targetKey) : [])));

  const planned = fighters.filter((f) => approved.has(targetKey(f)));
  arena.order({ reuse: Object.fromEntries(planned.map((f) => [f.pid, 'cicc'])) });
  const gone = chance.some(planned, 0.3);
  arena.order({ later: gone.map((f) => [0, f.pid, 'exit']) });
  await arena.until(() => gone.every((f) => f.ended));
  arena.order({
    later: chance.some(fighters, 0.4).map((f) => [chance.below(4_000), f.pid, chance.pick(['exit', 'fork'])]),
  });
  const report = await act(
    box,
    {
      ...{
        run: `r${chance.below(2 ** 31)}`,
        request: 'q',
        plan: { digest: 'd', steps },
        identities: thought.identities,
      },
      ...{ bootId: thought.bootId, hostKey: 'local', options: defaultThinkOptions, graceMs: 400, dryRun: false },
    },
    { clock: systemClock, reopen: () => Promise.resolve(box), progress: () => Promise.resolve(true) },
  );
  tally.add(`runs from look to report: ${report.outcome}`);
  judge(world, await arena.clear(), approved);
}

export const wrongKills: Part = {
  name: 'wrong-kills',
  about: 'signals to a process that was not approved',
  short: { seconds: 20, inputs: 0 },
  long: { seconds: 900, inputs: 0 },
  async run(seed, { seconds }, told: Told) {
    const tally = new Tally();
    // So that none is a count too.
    tally.add('signals to processes that were not approved', 0);
    const slow = slowProgram();
    // Arenas side by side, for a run spends most of its time waiting. Each begins with a seed of its own, the first with this.
    const lanes = [...Array(4).keys()].map(async (lane) => {
      const arena = await Arena.open();
      const played = await rounds((seed + lane * 7_919) >>> 0, seconds, async (at, chance) => {
        const world = {
          arena,
          chance,
          tally,
          breach: (what: string) => {
            told.breach(at, what);
          },
        };
        const program = chance.yes(0.5) ? slow : undefined;
        const whole = chance.yes(0.1);
        told.at(at, whole ? 'a whole run' : 'an order');
        await (whole ? wholeWay : direct)(world, program);
      });
      arena.close();
      tally.add('rounds', played);
    });
    await Promise.all(lanes);
    return tally.counts();
  },
};
