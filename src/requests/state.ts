/**
 * The life of a request: one transition table, and the only function that moves a record along it. Every move carries its
 * reason, its audit event and the views that have to be shown again, so that card, log and audit cannot disagree.
 */
import type { ErrorCode } from '../errors.ts';
import type { NewAuditEvent, Person, RequestRecord, RequestState, Surface, View } from './types.ts';

/** state -> where it may go. A state that leads nowhere is final. */
export const transitions = {
  draft: ['pending', 'succeeded', 'failed', 'blocked', 'cancelled'],
  pending: ['approved', 'denied', 'expired', 'cancelled'],
  approved: ['running', 'expired', 'cancelled', 'superseded'],
  running: ['succeeded', 'failed', 'unknown', 'superseded'],
  succeeded: [],
  failed: [],
  unknown: [],
  denied: [],
  expired: [],
  cancelled: [],
  superseded: [],
  blocked: [],
} as const satisfies Record<RequestState, readonly RequestState[]>;

export const openStates = ['draft', 'pending', 'approved', 'running'] as const;
export const isOpen = (state: RequestState): boolean => openStates.some((open) => open === state);

/** A look nobody finished in this time is given up. */
export const draftTtlMs = 10 * 60_000;
/** A run whose worker said nothing for this long is lost. */
export const leaseMs = 15_000;
/** How often a working worker renews. */
export const leaseRenewMs = 5_000;

/** Who does something, from where, and when (milliseconds since the epoch). */
export interface Act {
  readonly who: string;
  readonly surface: Surface;
  readonly nowMs: number;
}
export const systemAct = (nowMs: number): Act => ({ who: 'system', surface: 'system', nowMs });

export interface Move {
  readonly ok: true;
  readonly record: RequestRecord;
  readonly events: readonly NewAuditEvent[];
  readonly deliver: readonly View[];
}

/** What was not done, and the sentence for whoever tried. `what` is its name in the audit log. */
export interface Refused {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly text: string;
}

export const isoTime = (ms: number): string => new Date(ms).toISOString();
export const passed = (time: string | undefined, nowMs: number): boolean =>
  time !== undefined && Date.parse(time) <= nowMs;

interface MoveFacts {
  readonly act: Act;
  /** Name of the audit event. */
  readonly what: string;
  readonly reason: string;
  /** Why, for the audit log, where that is more than the reason. */
  readonly why?: string;
  readonly patch?: Partial<RequestRecord>;
  readonly deliver?: readonly View[];
}

export function auditEvent(record: RequestRecord, act: Act, what: string, why: string): NewAuditEvent {
  return {
    at: isoTime(act.nowMs),
    request: record.id,
    host: record.host,
    who: act.who,
    surface: act.surface,
    what,
    why,
    ...(record.digest === undefined ? {} : { digest: record.digest }),
  };
}

/** Changes a record without leaving its state. */
export function stay(record: RequestRecord, facts: MoveFacts): Move {
  const next: RequestRecord = {
    ...record,
    ...facts.patch,
    state: record.state,
    reason: facts.reason,
    version: record.version + 1,
    updatedAt: isoTime(facts.act.nowMs),
  };
  return {
    ok: true,
    record: next,
    events: [auditEvent(next, facts.act, facts.what, facts.why ?? facts.reason)],
    deliver: facts.deliver ?? ['card'],
  };
}

/** Moves a record to another state; a move the table does not know is a bug and throws. */
export function move(record: RequestRecord, to: RequestState, facts: MoveFacts): Move {
  const allowed: readonly RequestState[] = transitions[record.state];
  if (!allowed.includes(to)) throw new Error(`request ${record.id}: no way from ${record.state} to ${to}`);
  const stayed = stay({ ...record, state: to }, facts);
  return stayed;
}

export interface DraftFacts {
  readonly id: string;
  readonly host: string;
  readonly requester: Person;
  readonly surface: Surface;
  readonly channel?: string;
  readonly threadTs?: string;
  readonly topic?: string;
  readonly policyVersion: string;
  readonly nowMs: number;
}

/** A new request: version 1, nothing known yet. */
export function draft(facts: DraftFacts): Move {
  const at = isoTime(facts.nowMs);
  const record: RequestRecord = {
    id: facts.id,
    version: 1,
    state: 'draft',
    reason: `The look at ${facts.host} is queued.`,
    host: facts.host,
    surface: facts.surface,
    requester: facts.requester,
    ...(facts.channel === undefined ? {} : { channel: facts.channel }),
    ...(facts.threadTs === undefined ? {} : { threadTs: facts.threadTs }),
    ...(facts.topic === undefined ? {} : { topic: facts.topic }),
    createdAt: at,
    updatedAt: at,
    policyVersion: facts.policyVersion,
    identities: {},
    plan: null,
    required: 0,
    requiredWhy: '',
    votes: [],
    kept: [],
  };
  const act: Act = { who: facts.requester.id, surface: facts.surface, nowMs: facts.nowMs };
  return { ok: true, record, events: [auditEvent(record, act, 'asked', record.reason)], deliver: ['card'] };
}

/**
 * The move a clock forces, or null. `pending` ends at pendingUntil (counted from the report), `approved` at unusedUntil
 * (counted from the decision), a draft nobody looked at after draftTtlMs, and a run when its lease is over: then what it
 * did is unknown.
 */
export function forcedByClock(record: RequestRecord, nowMs: number): Move | null {
  const act = systemAct(nowMs);
  const again = `Ask again with /reclaim ${record.host}.`;
  if (record.state === 'draft' && passed(isoTime(Date.parse(record.createdAt) + draftTtlMs), nowMs)) {
    const reason = `No worker looked at ${record.host} in time. Nothing was done. Is a worker running? ${again}`;
    return move(record, 'failed', { act, what: 'look_lost', reason, patch: { errorCode: 'queue_down' } });
  }
  if (record.state === 'pending' && passed(record.pendingUntil, nowMs)) {
    const reason = `Expired: not enough people agreed in time. Nothing was done. ${again}`;
    return move(record, 'expired', { act, what: 'expired', reason, patch: { errorCode: 'expired' } });
  }
  if (record.state === 'approved' && passed(record.unusedUntil, nowMs)) {
    const reason = `Expired: approved, but no worker started it in time. Nothing was done. ${again}`;
    return move(record, 'expired', { act, what: 'expired', reason, patch: { errorCode: 'expired' } });
  }
  if (record.state === 'running' && record.run !== undefined && passed(record.run.aliveUntil, nowMs)) {
    const reason = `The worker that ran this is gone, so it is not known what was done on ${record.host}. It is not run again; the box is looked at anew.`;
    return move(record, 'unknown', {
      act,
      what: 'run_lost',
      reason,
      patch: { errorCode: 'outcome_unknown' },
      deliver: ['card', 'outcome', 'receipt_file'],
    });
  }
  return null;
}

/** True when the terminal it was asked in does the work itself; without a card there is nothing for a worker to do. */
export const worksItself = (record: RequestRecord): boolean => record.surface === 'cli' && record.channel === undefined;

/** A request asked in a terminal that needs more people gets a card in a channel, and a worker of its own. */
export function handOver(record: RequestRecord, channel: string, act: Act): Move | Refused {
  if (record.requester.id !== act.who || !worksItself(record) || record.state !== 'pending') {
    return {
      ok: false,
      code: 'request_changed',
      text: 'This request cannot be handed over to a channel any more. Nothing was done.',
    };
  }
  return stay(record, {
    act,
    what: 'handed_over',
    reason: record.reason,
    why: `Put up in ${channel} for the others to decide.`,
    patch: { channel },
    deliver: ['plan_file', 'card', 'details', 'owners'],
  });
}

/** The requester takes it back. */
export function cancel(record: RequestRecord, act: Act): Move | Refused {
  if (record.requester.id !== act.who) {
    return {
      ok: false,
      code: 'not_allowed',
      text: 'Only the person who asked can cancel this. Nothing was changed. An approver can deny it.',
    };
  }
  if (record.state === 'running') {
    return { ok: false, code: 'request_closed', text: 'It is running already and cannot be cancelled any more.' };
  }
  if (!isOpen(record.state)) {
    return { ok: false, code: 'request_closed', text: `There is nothing left to cancel: it is ${record.state}.` };
  }
  return move(record, 'cancelled', {
    act,
    what: 'cancelled',
    reason: `Cancelled by @${act.who}. Nothing was done.`,
  });
}
