/** From decision to outcome: the one claim, the lease, and how a run ends. */
import type { Outcome, RunReport } from '../memory/contract.ts';
import { approvalDigest } from './digest.ts';
import { approversOf, peopleInWords, whyClosed } from './sentences.ts';
import { type Act, isoTime, leaseMs, type Move, move, passed, type Refused, stay } from './state.ts';
import type { RequestRecord, RequestState, View } from './types.ts';
import type { PolicyNow } from './votes.ts';

const terminalViews: readonly View[] = ['card', 'outcome', 'picture', 'receipt_file'];

/**
 * approved -> running, once. Everything the approval rests on is checked again from the record itself; a policy that
 * changed since sends it back to a new look, and time that ran out ends it.
 */
export function claim(record: RequestRecord, runId: string, now: PolicyNow, act: Act): Move | Refused {
  if (record.state !== 'approved') return { ok: false, ...whyClosed(record) };
  const again = `Nothing was done. Ask again with /reclaim ${record.host}.`;
  if (now.policyVersion !== record.policyVersion) {
    const reason = `The policy changed after this was approved. ${again}`;
    return move(record, 'superseded', { act, what: 'superseded', reason, patch: { errorCode: 'request_changed' } });
  }
  if (!holdsTogether(record)) {
    const reason = `The approvals do not fit the plan they should stand for. ${again}`;
    return move(record, 'superseded', { act, what: 'superseded', reason, patch: { errorCode: 'request_changed' } });
  }
  const run = {
    id: runId,
    worker: act.who,
    startedAt: isoTime(act.nowMs),
    aliveUntil: isoTime(act.nowMs + leaseMs),
    dryRun: false,
    doing: 'Checking that the box is still as it was approved.',
  };
  const reason = `Running: approved by ${peopleInWords(approversOf(record))}.`;
  return move(record, 'running', { act, what: 'run_started', reason, patch: { run } });
}

function holdsTogether(record: RequestRecord): boolean {
  const { plan, hostKey, bootId, identities, digest } = record;
  if (plan === null || hostKey === undefined || bootId === undefined || bootId === '') return false;
  if (approvalDigest({ plan, hostKey, bootId, identities }) !== digest) return false;
  const people = approversOf(record);
  const glass = record.votes.some((v) => v.breakGlass === true && v.digest === digest);
  return people.length >= Math.max(1, glass ? 1 : record.required);
}

type Run = NonNullable<RequestRecord['run']>;

function idle(run: Run): Run {
  const copy = { ...run };
  delete copy.doing;
  return copy;
}

const lost: Refused = { ok: false, code: 'request_closed', text: 'This run does not hold the request any more.' };

/** Renews the lease, and shows what is new. Without news only the lease moves: no event, no new card. */
export function progress(
  record: RequestRecord,
  runId: string,
  news: { readonly doing: string | null; readonly report: RunReport | null },
  act: Act,
): Move | Refused {
  if (record.state !== 'running' || record.run?.id !== runId) return lost;
  if (passed(record.run.aliveUntil, act.nowMs)) return lost;
  const run = {
    ...idle(record.run),
    aliveUntil: isoTime(act.nowMs + leaseMs),
    ...(news.doing === null ? {} : { doing: news.doing }),
    ...(news.report === null ? {} : { report: news.report }),
  };
  const changed = news.report !== null || news.doing !== (record.run.doing ?? null);
  const moved = stay(record, { act, what: 'progress', reason: record.reason, patch: { run } });
  return { ...moved, events: [], deliver: changed ? ['card'] : [] };
}

const endStates: Record<Outcome, RequestState> = {
  succeeded: 'succeeded',
  partial: 'succeeded',
  nothing_to_do: 'succeeded',
  dry_run: 'succeeded',
  refused: 'superseded',
  failed: 'failed',
  unknown: 'unknown',
};

const endSentences: Record<Outcome, string> = {
  succeeded: 'Done, and measured.',
  partial: 'Done in part.',
  nothing_to_do: 'Nothing was left to do when it started.',
  dry_run: 'A dry run: nothing was changed.',
  refused: 'Refused at the moment of acting: the box or the policy changed. Nothing was done.',
  failed: 'It failed.',
  unknown: 'It is not known what was done.',
};

/** running -> its end, from the report. A report that comes after the run was given up is kept, the state is not changed. */
export function finish(record: RequestRecord, runId: string, report: RunReport, act: Act): Move | Refused {
  if (record.run?.id !== runId) return lost;
  const patch = { run: { ...idle(record.run), report } };
  const sentence = report.reason ?? endSentences[report.outcome];
  if (record.state === 'running') {
    const to = endStates[report.outcome];
    return move(record, to, { act, what: 'run_finished', reason: sentence, patch, deliver: terminalViews });
  }
  if (record.state === 'unknown' && record.run.report?.outcome !== report.outcome) {
    const reason = `The worker was given up, then reported late: ${sentence}`;
    return stay(record, { act, what: 'late_report', reason, patch, deliver: terminalViews });
  }
  return lost;
}

export function abandon(
  record: RequestRecord,
  runId: string,
  end: { readonly to: 'superseded' | 'failed' | 'unknown'; readonly code: string; readonly why: string },
  act: Act,
): Move | Refused {
  if (record.state !== 'running' || record.run?.id !== runId) return lost;
  const run = idle(record.run);
  return move(record, end.to, {
    act,
    what: `run_${end.to}`,
    reason: end.why,
    patch: { run, errorCode: end.code },
    deliver: ['card', 'outcome', 'receipt_file'],
  });
}
