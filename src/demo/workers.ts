/** Starts the demo's processes, orphaned or with a living parent, and ends them by pid and start time. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isAlive, nameOf, type ProcessName } from './process-facts.ts';
import { launcherSource, specVariable, workerSource, type WorkerSpec } from './worker-program.ts';

/** One process to make. `anonKiB` below what Node itself holds is raised to that. */
export interface WorkerPlan {
  readonly comm: string;
  readonly argv: readonly string[];
  readonly anonKiB: number;
  /** Keeps a CPU busy for short moments, as work does. */
  readonly busy?: boolean;
}

export type MadeProcess = ProcessName & WorkerPlan;

/** Where processes are started: `root` holds their programs, `cwd` is their working folder. Both exist. */
export interface Workshop {
  readonly root: string;
  readonly cwd: string;
}

const lifeMs = 30 * 60_000;
/** Node itself holds about this much; a smaller share would be a lie. */
export const leastKiB = 24 * 1024;

export function availableKiB(): number {
  return Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0);
}

interface Launch {
  readonly file: string;
  readonly args: string[];
  readonly argv0: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** A session of its own, as under `nohup setsid`; else that of its dead parent. */
  readonly detached: boolean;
}

/** How to start one worker so that its argv has exactly the room the wanted command line needs. */
function launchOf(spec: WorkerSpec, { root, cwd }: Workshop, detached: boolean): Launch {
  const programs = join(root, 'bin');
  mkdirSync(programs, { recursive: true });
  const file = join(programs, spec.comm.replaceAll('/', '_'));
  try {
    symlinkSync(process.execPath, file);
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause;
  }
  writeFileSync(join(cwd, 'h'), workerSource);
  const wanted = Buffer.byteLength(spec.argv.join('\0')) + 1;
  // argv0, the script "h" in the working folder, and padding; each with its closing NUL.
  const padding = wanted - 'n\0h\0\0'.length;
  const args = padding < 0 ? ['h'] : ['h', 'x'.repeat(padding)];
  const env = { PATH: process.env['PATH'] ?? '', [specVariable]: JSON.stringify(spec) };
  return { file, args, argv0: 'n', cwd, env, detached };
}

function specOf(plan: WorkerPlan, children: readonly Launch[] = []): WorkerSpec {
  const { comm, argv, busy = false } = plan;
  const anonKiB = Math.max(leastKiB, plan.anonKiB);
  const keeper = nameOf(process.pid);
  return { comm, argv, anonKiB, busy, keeper, lifeMs, children };
}

/**
 * Starts them from a process that then ends: nobody is left to wait for them, as after a broken ssh session.
 * `session`: each leads one of its own, or all stay in that of their dead parent.
 */
export async function startOrphans(
  plans: readonly WorkerPlan[],
  shop: Workshop,
  session: 'own' | 'shared',
): Promise<MadeProcess[]> {
  const specs = plans.map((plan) => specOf(plan));
  const launches = specs.map((spec) => launchOf(spec, shop, session === 'own'));
  const launcher = spawn(process.execPath, ['-e', launcherSource], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  launcher.stdin.end(JSON.stringify(launches));
  const [out, err] = await Promise.all([text(launcher.stdout), text(launcher.stderr), once(launcher, 'close')]);
  if (launcher.exitCode !== 0) throw new Error(`A process of the demo could not be started: ${err}`);
  const pids = JSON.parse(out) as number[];
  return specs.map((spec, i) => made(spec, pids[i]));
}

/** Starts one as our own child, and `below` it its children: all with a living parent. The parent comes first. */
export async function startTree(
  plan: WorkerPlan,
  below: readonly WorkerPlan[],
  shop: Workshop,
): Promise<readonly [MadeProcess, ...MadeProcess[]]> {
  const specs = below.map((one) => specOf(one));
  const spec = specOf(
    plan,
    specs.map((one) => launchOf(one, shop, false)),
  );
  const { file, args, argv0, cwd, env } = launchOf(spec, shop, false);
  const child: ChildProcess = spawn(file, args, { argv0, cwd, env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const ready = child.stdio[3];
  if (ready === null || ready === undefined || !('read' in ready)) throw new Error('no pipe');
  const said = await Promise.race([
    text(ready),
    once(child, 'error').then(([error]) => Promise.reject(error as Error)),
  ]);
  if (said === '') throw new Error(`${plan.comm} could not be started.`);
  child.unref();
  const pids = JSON.parse(said) as number[];
  return [made(spec, child.pid), ...specs.map((one, i) => made(one, pids[i]))];
}

const made = ({ comm, argv, anonKiB }: WorkerSpec, pid = 0): MadeProcess => ({ ...nameOf(pid), comm, argv, anonKiB });

/** SIGKILL to each that is still the same process, and waits until they are gone. */
export async function endWorkers(names: readonly ProcessName[], withinMs = 5_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (const name of names) if (isAlive(name)) process.kill(name.pid, 'SIGKILL');
  while (names.some(isAlive) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
}
