/**
 * A leftover build, made for real on this machine: orphaned processes that look like the compilers of a flash-attention
 * build and hold memory, some page cache, and two innocent neighbours whose command lines match the same words.
 *
 * Safe by construction: at most a tenth of the memory available, every process ends by itself when the demo is gone or
 * after half an hour, and clean-up names processes by pid and start time.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makePageCache } from './page-cache.ts';
import { startSweeper } from './sweeper.ts';
import { availableKiB, endWorkers, leastKiB, startTree, startOrphans } from './workers.ts';
import type { MadeProcess, WorkerPlan } from './workers.ts';

export interface LeftoverOptions {
  /** Memory all leftover processes hold together; default 600, never more than a tenth of what is available. */
  readonly totalMiB?: number;
  /** Size of the file left in the page cache; default 256, same bound. 0 = none. */
  readonly cacheMiB?: number;
}

export interface Leftovers {
  readonly processes: readonly MadeProcess[];
  /** Innocent processes that match the same words; they must survive. */
  readonly lookalikes: readonly MadeProcess[];
  /** KiB of clean page cache left behind; 0 where no folder on a disk was to be had. */
  readonly cacheKiB: number;
  /** Ends what is still there, by pid and start time, and removes the files. Safe to call twice. */
  readonly dispose: () => Promise<void>;
}

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

/** The processes of a build that hold `totalKiB` together. */
export function buildPlans(totalKiB: number): WorkerPlan[] {
  const processes = buildProcesses('64');
  const shares = processes.reduce((sum, p) => sum + p.share, 0);
  return processes.map(({ comm, argv, share }) => ({ comm, argv, anonKiB: Math.floor((totalKiB * share) / shares) }));
}

const lookalikePlans: readonly WorkerPlan[] = [
  ['vim', 'flash_attn.cu'],
  ['tail', '-f', 'flash_build.log'],
].map((argv) => ({ comm: argv[0] ?? '', argv, anonKiB: leastKiB }));

/** A folder as pip makes one for a build, already under way. */
export function makeBuildFolder(): { readonly building: string; readonly cwd: string } {
  const building = mkdtempSync(join(tmpdir(), 'pip-install-'));
  const cwd = join(building, `flash-attn_${randomBytes(16).toString('hex')}`);
  mkdirSync(cwd);
  return { building, cwd };
}

/** No more than this for all that one thing holds. */
export const boundKiB = (wantedMiB: number): number => Math.min(wantedMiB * 1024, Math.floor(availableKiB() / 10));

export async function makeLeftovers(options: LeftoverOptions = {}): Promise<Leftovers> {
  const root = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const { building, cwd } = makeBuildFolder();
  const sweeper = startSweeper([root, building]);
  const started: MadeProcess[] = [];
  const dispose = async (): Promise<void> => {
    await endWorkers(started);
    await sweeper.sweep();
  };
  try {
    const cacheLimitKiB = boundKiB(options.cacheMiB ?? 256);
    const plans = buildPlans(boundKiB(options.totalMiB ?? 600));
    const processes = await startOrphans(plans, { root, cwd }, 'own');
    started.push(...processes);
    rmSync(building, { recursive: true, force: true });
    const lookalikes = [];
    for (const plan of lookalikePlans) {
      const [made] = await startTree(plan, [], { root, cwd: root });
      lookalikes.push(made);
      started.push(made);
    }
    return { processes, lookalikes, cacheKiB: makePageCache(root, cacheLimitKiB), dispose };
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
}
