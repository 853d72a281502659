/** What can be wrong with a box, or only look wrong: each made for real on this machine, small, and cleaned up after. */
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundKiB, buildPlans, makeBuildFolder, makeLeftovers } from './leftovers.ts';
import { makePageCache } from './page-cache.ts';
import { startSweeper } from './sweeper.ts';
import { endWorkers, startTree, startOrphans, type MadeProcess, type WorkerPlan } from './workers.ts';

export interface Situation {
  /** What the plan should name and an approved run must end. */
  readonly lingering: readonly MadeProcess[];
  /** What no plan may name and every run must leave alive. */
  readonly innocent: readonly MadeProcess[];
  /** Files nobody uses; an approved run removes them. */
  readonly staleFiles: readonly string[];
  /** Ends and removes what is still there. Safe to call twice. */
  readonly dispose: () => Promise<void>;
}

export interface Recipe {
  /** One line for whoever chooses. */
  readonly summary: string;
  /** Whether there is something to approve, or the honest answer is to do nothing. */
  readonly expects: 'plan' | 'nothing_to_approve';
  readonly make: () => Promise<Situation>;
}

const nothing = { lingering: [], innocent: [], staleFiles: [] } as const;

async function leftoverBuild(): Promise<Situation> {
  const { processes, lookalikes, dispose } = await makeLeftovers();
  return { lingering: processes, innocent: lookalikes, staleFiles: [], dispose };
}

/** Data loaders of a training run that was killed: same arguments, one dead session, adopted by init. */
async function orphanedWorkers(): Promise<Situation> {
  const root = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const sweeper = startSweeper([root]);
  const argv = ['python3', 'train.py', '--config', 'llama_8b_lora.yaml', '--num-workers', '6'];
  const anonKiB = Math.floor(boundKiB(600) / 6);
  const plans: WorkerPlan[] = Array.from({ length: 6 }, () => ({ comm: 'pt_data_worker', argv, anonKiB }));
  const lingering = await startOrphans(plans, { root, cwd: root }, 'shared');
  return {
    ...nothing,
    lingering,
    dispose: async () => {
      await endWorkers(lingering);
      await sweeper.sweep();
    },
  };
}

/** Bounded by what the memory file system has left: containers often give it 64 MiB. */
const shmBoundKiB = (wantedMiB: number): number => {
  const { bavail, bsize } = statfsSync('/dev/shm');
  return Math.min(boundKiB(wantedMiB), Math.floor((bavail * bsize * 0.8) / 1024));
};

/** What a server leaves that was killed before it could clean up. */
function staleShm(): Promise<Situation> {
  const path = `/dev/shm/psm_${randomBytes(4).toString('hex')}`;
  const sweeper = startSweeper([path]);
  const file = openSync(path, 'wx', 0o600);
  const block = Buffer.alloc(1 << 20, 'kv');
  for (let left = shmBoundKiB(400); left >= 1024; left -= 1024) writeSync(file, block);
  closeSync(file);
  return Promise.resolve({ ...nothing, staleFiles: [path], dispose: () => sweeper.sweep() });
}

function onlyCache(): Promise<Situation> {
  const root = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const sweeper = startSweeper([root]);
  makePageCache(root, boundKiB(1024));
  return Promise.resolve({ ...nothing, dispose: () => sweeper.sweep() });
}

/** The same programs with a living parent, and at work: big is not the same as left over. */
async function liveBuild(): Promise<Situation> {
  const root = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const { building, cwd } = makeBuildFolder();
  const sweeper = startSweeper([root, building]);
  const innocent: MadeProcess[] = [];
  const dispose = async (): Promise<void> => {
    await endWorkers(innocent);
    await sweeper.sweep();
  };
  try {
    const [driver, ...compilers] = buildPlans(boundKiB(600)).map((p) => ({ ...p, busy: p.comm === 'cicc' }));
    if (driver !== undefined) innocent.push(...(await startTree(driver, compilers, { root, cwd })));
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
  return { ...nothing, innocent, dispose };
}

async function mixedBox(): Promise<Situation> {
  const made: Situation[] = [];
  const dispose = async (): Promise<void> => {
    for (const one of made) await one.dispose();
  };
  try {
    for (const make of [leftoverBuild, staleShm, liveBuild]) made.push(await make());
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
  return {
    lingering: made.flatMap((one) => one.lingering),
    innocent: made.flatMap((one) => one.innocent),
    staleFiles: made.flatMap((one) => one.staleFiles),
    dispose,
  };
}

export const situations = {
  'leftover-build': {
    summary: 'a flash-attention build whose terminal is gone, still holding its memory',
    expects: 'plan',
    make: leftoverBuild,
  },
  'orphaned-workers': {
    summary: 'data loaders of a training run that was killed',
    expects: 'plan',
    make: orphanedWorkers,
  },
  'stale-shm': { summary: 'a file in /dev/shm that nobody has open', expects: 'plan', make: staleShm },
  'only-cache': {
    summary: 'a gigabyte of page cache: nothing to do',
    expects: 'nothing_to_approve',
    make: onlyCache,
  },
  'live-build': {
    summary: 'a build at work: big, and nobody else’s business',
    expects: 'nothing_to_approve',
    make: liveBuild,
  },
  mixed: { summary: 'a leftover build beside a live one, and a stale file', expects: 'plan', make: mixedBox },
} as const satisfies Record<string, Recipe>;

export type SituationName = keyof typeof situations;
export const situationNames = Object.keys(situations) as SituationName[];
