/** The words people read for states, classes, actions and results. Meaning is always in words, never in colour alone. */
import type {
  Finding,
  FindingClass,
  Plan,
  StepAction,
  StepReport,
  TargetResult,
  Verdict,
} from '../../memory/contract.ts';
import type { RequestRecord } from '../../requests/types.ts';

export const verdictWords: Record<Verdict, string> = {
  lingering: 'something is lingering',
  real_usage: 'real usage',
  mixed: 'real usage and leftovers',
  not_a_process: 'not held by a process',
  nothing_to_reclaim: 'nothing to reclaim',
  unknown: 'not enough was visible',
};

export const classWords: Record<FindingClass, string> = {
  leftover_build: 'leftover build',
  orphaned_workers: 'orphaned workers',
  stale_shm: 'stale shared memory files',
  stale_sysv_shm: 'stale System V shared memory',
  tmpfs_files: 'files in tmpfs',
  pinned_shm: 'shared memory in use',
  live_job: 'live job',
  idle_daemon: 'idle daemon',
  idle_owned: 'idle, but somebody’s',
  unkillable: 'cannot be ended',
  zombie: 'zombies',
  page_cache: 'page cache',
  reclaimable_slab: 'reclaimable kernel cache',
  unreclaimable_slab: 'kernel memory',
  percpu: 'per-CPU kernel memory',
  page_tables: 'page tables',
  hugepages: 'huge pages',
  zfs_arc: 'ZFS cache (ARC)',
  balloon: 'balloon of the hypervisor',
  gpu_driver: 'GPU driver',
  mlocked: 'locked memory',
  swap: 'swap',
  unaccounted: 'unaccounted',
};

const namesOfMemory: Readonly<Record<string, string>> = {
  anonymous: 'process memory',
  shared: 'shared memory, tmpfs',
  page_cache: 'page cache',
  reclaimable_slab: 'kernel cache (slab)',
  unreclaimable_slab: 'kernel memory (slab)',
  percpu: 'per-CPU kernel memory',
  hugepages: 'huge page pools',
  zfs_arc: 'ZFS cache (ARC)',
  unaccounted: 'unaccounted (drivers)',
};

/** A class of the accounting as people read it. */
export const memoryWords = (name: string): string =>
  Object.hasOwn(namesOfMemory, name) ? (namesOfMemory[name] ?? name) : name.replaceAll('_', ' ');

export const adviceWords: Record<Finding['action'], string> = {
  kill: 'can be ended',
  remove_files: 'can be removed',
  ipcrm: 'can be removed',
  drop_caches: 'can be dropped',
  ask_owner: 'ask its owner',
  tell_admin: 'tell an admin',
  none: 'leave it alone',
};

/** What approving each kind of step risks, in a sentence. */
export const riskWords: Record<StepAction, string> = {
  kill: 'Unsaved work in these processes is lost. They get TERM first, KILL only if they stay.',
  remove_files: 'The files are gone for good. Each is checked again to be unused right before.',
  ipcrm: 'The segments are gone for good. Each is checked again to be unattached right before.',
  drop_caches: 'Moves cache to free; available hardly changes. Data loaders start cold and read from disk again.',
};

export const resultWords: Record<TargetResult, string> = {
  exited: 'ended after TERM',
  killed: 'ended by KILL',
  already_gone: 'already gone',
  not_same_process: 'another process now, left alone',
  refused: 'refused, left alone',
  still_there: 'still there',
  respawned: 'came back',
  removed: 'removed',
  in_use: 'in use, left alone',
  dropped: 'dropped',
};

export const stepStateWords: Record<StepReport['state'], string> = {
  done: 'done',
  skipped: 'skipped',
  failed: 'failed',
  unknown: 'outcome unknown',
  not_run: 'not run',
};

/** Marks beside the words, never instead of them. */
export const stepMarks: Record<StepReport['state'], string> = {
  done: '✓',
  skipped: '–',
  failed: '✗',
  unknown: '?',
  not_run: '·',
};

/** Cache alone is given up by itself: a plan that only drops it is there for whoever wants it, and asks for nothing. */
export const onlyOnRequest = (plan: Plan | null | undefined): boolean =>
  plan?.steps.every((step) => step.action === 'drop_caches') === true;

/** Where a request stands, in a few words for the headline. */
export function stateWords(record: RequestRecord): string {
  switch (record.state) {
    case 'draft':
      return 'looking';
    case 'pending':
      return onlyOnRequest(record.plan) ? 'nothing needs doing' : 'waiting for approval';
    case 'approved':
      return 'approved, about to start';
    case 'running':
      return record.run?.dryRun === true ? 'dry run' : 'running';
    case 'succeeded':
      return succeededWords(record);
    case 'failed':
      return record.run === undefined ? 'could not be looked at' : 'failed';
    case 'unknown':
      return 'outcome unknown';
    case 'denied':
      return 'denied, nothing was done';
    case 'expired':
      return 'expired, nothing was done';
    case 'cancelled':
      return 'cancelled, nothing was done';
    case 'superseded':
      return 'out of date, a new look is needed';
    case 'blocked':
      return 'nobody may approve this';
  }
}

function succeededWords(record: RequestRecord): string {
  if (record.run === undefined) return 'nothing to do';
  switch (record.run.report?.outcome) {
    case 'partial':
      return 'partly done';
    case 'nothing_to_do':
      return 'nothing was left to do';
    case 'dry_run':
      return 'dry run, nothing was changed';
    case 'refused':
      return 'refused, nothing was done';
    case 'failed':
      return 'failed';
    case 'unknown':
      return 'outcome unknown';
    case 'succeeded':
    case undefined:
      return 'done';
  }
}

/** Once ended, a card keeps no button. */
export function isFinal(record: RequestRecord): boolean {
  return !['draft', 'pending', 'approved', 'running'].includes(record.state);
}
