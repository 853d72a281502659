/** One request in every state it can be shown in: a 432 GiB box with a leftover flash-attention build. */
import type { Diagnosis, Memory, Plan, RunReport, StepReport } from '../../src/memory/contract.ts';
import type { CardContext } from '../../src/slack/blocks/card.ts';
import type { RequestRecord } from '../../src/requests/types.ts';

const GiB = 1024 * 1024;
const at = (minute: number): string => new Date(Date.UTC(2026, 10, 30, 20, minute)).toISOString();
const range = (low: number, high: number) => ({ low: low * GiB, high: high * GiB });

const before: Memory = {
  totalKiB: 432 * GiB,
  usedKiB: 369 * GiB,
  freeKiB: 12 * GiB,
  availableKiB: 58 * GiB,
  sharedKiB: 1 * GiB,
  buffCacheKiB: 51 * GiB,
  swapTotalKiB: 0,
  swapUsedKiB: 0,
};
const after: Memory = {
  ...before,
  usedKiB: 7 * GiB,
  freeKiB: 420 * GiB,
  availableKiB: 422 * GiB,
  buffCacheKiB: 5 * GiB,
};

export function processes(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    pid: 5000 + i,
    startTime: 90_000 + i,
    uid: 1001,
    user: i % 3 === 0 ? 'bob' : 'ann',
    comm: i % 2 === 0 ? 'cicc' : 'cc1plus',
    command: `/usr/local/cuda/nvvm/bin/cicc --arch=compute_90 flash_fwd_hdim${i}.cpp1.ii`,
    kiB: 6 * GiB - i * 1000,
  }));
}

export function planFor(count: number): Plan {
  return {
    digest: 'd'.repeat(64),
    steps: [
      {
        id: 's1',
        action: 'kill',
        targets: processes(count).map(({ pid, startTime }) => ({ pid, startTime })),
        expectedFreeKiB: range(355, 362),
        expectedAvailableKiB: range(355, 362),
      },
      {
        id: 's2',
        action: 'drop_caches',
        targets: [{ level: 1 }],
        expectedFreeKiB: range(40, 46),
        expectedAvailableKiB: range(0, 1),
      },
    ],
  };
}

function diagnosisFor(count: number): Diagnosis {
  return {
    host: 'gpu-box-3',
    takenAt: at(1),
    verdict: 'lingering',
    headline: `A leftover build holds 362 GiB: ${count} compilers whose parent is gone.`,
    confidence: 'high',
    partial: ['nvidia-smi did not answer, so GPU contexts are not listed.'],
    memory: before,
    accounting: [
      { class: 'anonymous', kiB: 365 * GiB },
      { class: 'page_cache', kiB: 49 * GiB },
      { class: 'free', kiB: 12 * GiB },
      { class: 'slab', kiB: 5 * GiB },
      { class: 'unaccounted', kiB: 1 * GiB },
    ],
    findings: [
      {
        class: 'leftover_build',
        kiB: 362 * GiB,
        reclaimableKiB: range(355, 362),
        action: 'kill',
        evidence: ['ninja (pid 4990) was ended by the kernel 3 h ago', 'their session leader is gone'],
        processes: processes(count),
      },
      {
        class: 'page_cache',
        kiB: 49 * GiB,
        reclaimableKiB: range(40, 46),
        action: 'drop_caches',
        evidence: ['clean file pages; the kernel gives them to whoever asks'],
      },
    ],
    plan: planFor(count),
  };
}

/** A pending request with `count` processes in its plan. */
export function pending(count = 6): RequestRecord {
  return {
    id: 'r0123456789ab',
    version: 3,
    state: 'pending',
    reason: 'Waiting for 2 people to agree.',
    host: 'gpu-box-3',
    surface: 'slack',
    requester: { id: 'U0ANN', team: 'T0' },
    channel: 'C0GPU',
    createdAt: at(0),
    updatedAt: at(1),
    lookedAt: at(1),
    pendingUntil: at(16),
    hostKey: 'SHA256:abc',
    bootId: 'boot-1',
    policyVersion: 'p1',
    diagnosis: diagnosisFor(count),
    identities: {},
    plan: planFor(count),
    digest: 'e'.repeat(64),
    required: 2,
    requiredWhy: '2 people must agree, because it ends processes that are not all the requester’s own.',
    votes: [],
    kept: [],
  };
}

const vote = { person: 'U0BO', verdict: 'approve' as const, at: at(3), steps: ['s1', 's2'], digest: 'e'.repeat(64) };

function reportOf(outcome: RunReport['outcome'], killState: StepReport['state']): RunReport {
  const [kill, drop] = planFor(6).steps;
  if (kill?.action !== 'kill' || drop?.action !== 'drop_caches') throw new Error('the plan changed');
  const ran = killState === 'done';
  return {
    run: 'run1',
    request: 'r0123456789ab',
    host: 'gpu-box-3',
    outcome,
    diagnosis: diagnosisFor(6),
    before,
    after: ran ? after : before,
    steps: [
      {
        ...kill,
        state: killState,
        ...(ran ? {} : { reason: 'the box did not answer' }),
        targets: kill.targets.map((t, i) => ({ ...t, result: i === 0 ? 'already_gone' : 'exited' })),
        ...(ran
          ? {
              measured: {
                freeKiB: 360 * GiB,
                availableKiB: 360 * GiB,
                byClass: { anonymous: 359 * GiB, page_tables: GiB },
              },
            }
          : {}),
        tookMs: 8000,
      },
      {
        ...drop,
        state: ran ? 'done' : 'not_run',
        targets: drop.targets,
        ...(ran ? { measured: { freeKiB: 45 * GiB, availableKiB: GiB, byClass: { page_cache: 45 * GiB } } } : {}),
        tookMs: 900,
      },
    ],
    other: { freeKiB: 3 * GiB, availableKiB: 3 * GiB },
    advice: ['Build with MAX_JOBS=48 on this box: one cicc peaked at 6 GiB.'],
  };
}

function ran(state: RequestRecord['state'], report: RunReport | undefined, doing?: string): RequestRecord {
  return {
    ...pending(),
    state,
    reason: state === 'running' ? 'Running as approved by @U0BO.' : `It ended as ${state}.`,
    votes: [vote, { ...vote, person: 'U0CHEN', at: at(4) }],
    run: {
      id: 'run1',
      worker: 'worker-1',
      startedAt: at(4),
      aliveUntil: at(5),
      dryRun: false,
      ...(doing === undefined ? {} : { doing }),
      ...(report === undefined ? {} : { report }),
    },
  };
}

/** Before the look, or when it failed: nothing is known of the box. */
function bare(state: RequestRecord['state'], reason: string): RequestRecord {
  const { id, version, host, surface, requester, channel, createdAt, updatedAt, policyVersion } = pending();
  const known = { id, version, host, surface, requester, createdAt, updatedAt, policyVersion };
  const nothing = { identities: {}, plan: null, required: 0, requiredWhy: '', votes: [], kept: [] };
  return { ...known, ...nothing, state, reason, ...(channel === undefined ? {} : { channel }) };
}

const halfWay: RunReport = { ...reportOf('unknown', 'done'), steps: reportOf('unknown', 'done').steps.slice(0, 1) };

/** Name -> record: every card there is. */
export const everyCard: Readonly<Record<string, RequestRecord>> = {
  looking: bare('draft', 'Asked for by @U0ANN; the look is queued.'),
  pending: pending(),
  'pending, one of two': { ...pending(), votes: [vote] },
  'pending, a plan too long for the card': pending(120),
  approved: { ...pending(), state: 'approved', reason: 'Approved by @U0BO and @U0CHEN.', unusedUntil: at(6) },
  'running, waiting': ran('running', undefined, 'waiting for 3 of 6 processes to end'),
  'running, half way': ran('running', halfWay, 'dropping caches'),
  succeeded: ran('succeeded', reportOf('succeeded', 'done')),
  partial: ran('succeeded', reportOf('partial', 'done')),
  failed: ran('failed', reportOf('failed', 'failed')),
  'unknown with a report': ran('unknown', reportOf('unknown', 'unknown')),
  'unknown without a report': ran('unknown', undefined),
  'dry run': ran('succeeded', reportOf('dry_run', 'done')),
  'look failed': bare('failed', 'gpu-box-3 did not answer within 20 s. Nothing was done. Check that it is up.'),
  denied: {
    ...pending(),
    state: 'denied',
    reason: 'Denied by @U0BO. Nothing was done.',
    votes: [{ person: 'U0BO', verdict: 'deny', at: at(3), steps: [], reason: 'my <!channel> run @U0CHEN is *alive*' }],
  },
  expired: { ...pending(), state: 'expired', reason: 'Nobody decided in time. Nothing was done.' },
  cancelled: { ...pending(), state: 'cancelled', reason: 'Cancelled by @U0ANN. Nothing was done.' },
  superseded: { ...pending(), state: 'superseded', reason: 'The box was restarted meanwhile. Nothing was done.' },
  blocked: { ...pending(), state: 'blocked', reason: 'gpu-box-3 did not tell its boot id. Nothing was done.' },
  'nothing to do': {
    ...pending(),
    state: 'succeeded',
    reason: 'Nothing needs approval. Nothing was done.',
    plan: null,
    diagnosis: {
      ...diagnosisFor(0),
      verdict: 'nothing_to_reclaim',
      headline: 'Do nothing: it is only cache.',
      plan: null,
    },
  },
};

export const cardContext: CardContext = {
  now: Date.parse(at(5)),
  approvers: ['U0BO', 'U0CHEN', 'S0OPS'],
  breakGlass: false,
  planFilePosted: false,
};
