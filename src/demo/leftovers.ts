/**
 * A leftover build, made for real on this machine: orphaned processes that look like the compilers of a flash-attention
 * build and hold memory, some page cache, and two innocent neighbours whose command lines match the same words.
 *
 * Safe by construction: at most a tenth of the memory available, every process ends by itself when the demo is gone or
 * after half an hour, and clean-up names processes by pid and start time.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makePageCache } from './page-cache.ts';
import { isAlive, nameOf, type ProcessName } from './process-facts.ts';
import { launcherSource, specVariable, workerSource, type WorkerSpec } from './leftover-worker.ts';

export interface LeftoverOptions {
  /** Memory all leftover processes hold together; default 600, never more than a tenth of what is available. */
  readonly totalMiB?: number;
  /** Size of the file left in the page cache; default 256, same bound. 0 = none. */
  readonly cacheMiB?: number;
}

export interface Leftovers {
  readonly processes: readonly (ProcessName & {
    readonly comm: string;
    readonly argv: readonly string[];
    readonly anonKiB: number;
  })[];
  /** Innocent processes that match the same words; they must survive. */
  readonly lookalikes: readonly (ProcessName & { readonly comm: string; readonly argv: readonly string[] })[];
  /** KiB of clean page cache left behind; 0 where no folder on a disk was to be had. */
  readonly cacheKiB: number;
  /** Ends what is still there, by pid and start time, and removes the files. Safe to call twice. */
  dispose(): Promise<void>;
}

const lifeMs = 30 * 60_000;
/** Node itself holds about this much; a smaller share would be a lie. */
const leastKiB = 24 * 1024;

const cuda = '/usr/local/cuda';
const kernel = 'flash_bwd_hdim256_bf16_sm90';

/** Command lines of a real flash-attention build, and how the memory is shared among them. */
function buildProcesses(cpus: string): { comm: string; argv: string[]; share: number }[] {
  const cicc = (name: string) =>
    `${cuda}/bin/../nvvm/bin/cicc --c++17 --gnu_version=110400 --orig_src_file_name csrc/flash_attn/src/${name}.cu --allow_managed -arch compute_90 -m64 --no-version-ident -ftz=1 -fast-math --gen_module_id_file --module_id_file_name /tmp/tmpxft_00001a2b/${name}.module_id -o /tmp/tmpxft_00001a2b/${name}.ptx`;
  const ptxas = (name: string) =>
    `${cuda}/bin/ptxas --generate-line-info -v -m64 --gpu-name=sm_90 /tmp/tmpxft_00001a2b/${name}.ptx -o /tmp/tmpxft_00001a2b/${name}.sm_90.cubin`;
  return [
    { comm: 'uv', share: 4, argv: 'uv pip install flash-attn --no-build-isolation -v' },
    { comm: 'ninja', share: 3, argv: `ninja -v -j ${cpus}` },
    {
      comm: 'nvcc',
      share: 3,
      argv: `${cuda}/bin/nvcc --threads 4 -O3 -std=c++17 --expt-relaxed-constexpr --use_fast_math -gencode arch=compute_90,code=sm_90 -c csrc/flash_attn/src/${kernel}.cu -o build/${kernel}.o`,
    },
    { comm: 'cicc', share: 26, argv: cicc(kernel) },
    { comm: 'cicc', share: 20, argv: cicc('flash_bwd_hdim192_bf16_sm90') },
    { comm: 'cicc', share: 16, argv: cicc('flash_fwd_hdim256_fp16_sm90') },
    { comm: 'ptxas', share: 12, argv: ptxas('flash_fwd_hdim128_bf16_sm90') },
    { comm: 'ptxas', share: 8, argv: ptxas('flash_fwd_hdim64_bf16_sm90') },
    {
      comm: 'cc1plus',
      share: 8,
      argv: '/usr/lib/gcc/x86_64-linux-gnu/11/cc1plus -quiet -imultiarch x86_64-linux-gnu -D_GNU_SOURCE csrc/flash_attn/flash_api.cpp -O3 -std=gnu++17 -o /tmp/ccV1flash.s',
    },
  ].map((p) => ({ ...p, argv: p.argv.split(' ') }));
}

function availableKiB(): number {
  return Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0);
}

interface Launch {
  readonly file: string;
  readonly args: string[];
  readonly argv0: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
}

/** How to start one worker so that its argv has exactly the room the wanted command line needs. */
function launchOf(spec: WorkerSpec, programs: string, cwd: string): Launch {
  const file = join(programs, spec.comm);
  const wanted = Buffer.byteLength(spec.argv.join('\0')) + 1;
  // argv0, the script "h" in the working folder, and padding; each with its closing NUL.
  const padding = wanted - 'n\0h\0\0'.length;
  const args = padding < 0 ? ['h'] : ['h', 'x'.repeat(padding)];
  const env = { PATH: process.env['PATH'] ?? '', [specVariable]: JSON.stringify(spec) };
  return { file, args, argv0: 'n', cwd, env };
}

function preparePrograms(comms: readonly string[], root: string): string {
  const programs = join(root, 'bin');
  mkdirSync(programs);
  for (const comm of new Set(comms)) symlinkSync(process.execPath, join(programs, comm));
  return programs;
}

/** Starts them from a process that then ends: nobody is left to wait for them, as after a broken ssh session. */
async function startOrphans(launches: readonly Launch[]): Promise<number[]> {
  const launcher = spawn(process.execPath, ['-e', launcherSource], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  launcher.stdin.end(JSON.stringify(launches));
  const [out, err] = await Promise.all([text(launcher.stdout), text(launcher.stderr), once(launcher, 'close')]);
  if (launcher.exitCode !== 0) throw new Error(`The leftover build could not be started: ${err}`);
  return JSON.parse(out) as number[];
}

/** Starts one as our own child: an innocent neighbour has a living parent. */
async function startChild({ file, args, argv0, cwd, env }: Launch): Promise<ChildProcess> {
  const child = spawn(file, args, { argv0, cwd, env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const ready = child.stdio[3];
  if (ready === null || ready === undefined || !('read' in ready)) throw new Error('no pipe');
  await Promise.race([text(ready), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
  child.unref();
  return child;
}

async function end(names: readonly ProcessName[], withinMs = 5_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (const name of names) if (isAlive(name)) process.kill(name.pid, 'SIGKILL');
  while (names.some(isAlive) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
}

export async function makeLeftovers(options: LeftoverOptions = {}): Promise<Leftovers> {
  const boundKiB = Math.floor(availableKiB() / 10);
  const totalKiB = Math.min((options.totalMiB ?? 600) * 1024, boundKiB);
  const keeper = nameOf(process.pid);
  const root = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const building = mkdtempSync(join(tmpdir(), 'pip-install-'));
  const cwd = join(building, `flash-attn_${randomBytes(16).toString('hex')}`);
  const plan = buildProcesses('64');
  const shares = plan.reduce((sum, p) => sum + p.share, 0);
  const started: ProcessName[] = [];
  const dispose = async (): Promise<void> => {
    await end(started);
    for (const folder of [root, building]) rmSync(folder, { recursive: true, force: true });
  };
  try {
    mkdirSync(cwd);
    for (const folder of [cwd, root]) writeFileSync(join(folder, 'h'), workerSource);
    const programs = preparePrograms([...plan.map((p) => p.comm), 'vim', 'tail'], root);
    const specs = plan.map((p) => ({
      argv: p.argv,
      comm: p.comm,
      anonKiB: Math.max(leastKiB, Math.floor((totalKiB * p.share) / shares)),
      keeper,
      lifeMs,
    }));
    const pids = await startOrphans(specs.map((spec) => launchOf(spec, programs, cwd)));
    const processes = specs.map((s, i) => ({
      ...nameOf(pids[i] ?? 0),
      comm: s.comm,
      argv: s.argv,
      anonKiB: s.anonKiB,
    }));
    started.push(...processes);
    rmSync(building, { recursive: true, force: true });
    const lookalikes = [];
    for (const argv of [
      ['vim', 'flash_attn.cu'],
      ['tail', '-f', 'flash_build.log'],
    ]) {
      const comm = argv[0] ?? '';
      const spec: WorkerSpec = { argv, comm, anonKiB: leastKiB, keeper, lifeMs, sweep: root };
      const child = await startChild(launchOf(spec, programs, root));
      const name = { ...nameOf(child.pid ?? 0), comm, argv };
      lookalikes.push(name);
      started.push(name);
    }
    const cacheKiB = makePageCache(root, Math.min((options.cacheMiB ?? 256) * 1024, boundKiB));
    return { processes, lookalikes, cacheKiB, dispose };
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
}
