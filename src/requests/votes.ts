/** From report to decision: what the look brings up, and what the clicks of people do to it. */
import type { Policy } from '../config/schema.ts';
import type { Diagnosis, Plan } from '../memory/contract.ts';
import { type Identity, targetKey } from '../memory/story.ts';
import { approvalDigest } from './digest.ts';
import { isUnixUserOf, peopleNeeded, personOfUnixUser, processesByKey } from './policy.ts';
import { approversOf, peopleCount, peopleInWords, whyClosed } from './sentences.ts';
import { type Act, isoTime, type Move, move, type Refused, stay } from './state.ts';
import type { RequestRecord, Vote } from './types.ts';

/** The policy as it is now, and the name of exactly this version of it. */
export interface PolicyNow {
  readonly policy: Policy;
  readonly policyVersion: string;
}

export interface Found {
  readonly diagnosis: Diagnosis;
  readonly identities: Readonly<Record<string, Identity>>;
  readonly hostKey: string;
  readonly bootId: string;
  /** The diagnosis' plan without what owners keep. */
  readonly plan: Plan | null;
  readonly kept: RequestRecord['kept'];
}

const nothingSentence = 'There is nothing to approve.';
const allKeptSentence = 'Everything that could be given back is kept by its owners, so there is nothing to approve.';

/** draft -> pending with the plan, or straight to its end when there is nothing to approve. */
export function looked(record: RequestRecord, found: Found, now: PolicyNow, act: Act): Move | Refused {
  if (record.state !== 'draft') return { ok: false, ...whyClosed(record) };
  const base = {
    diagnosis: found.diagnosis,
    identities: { ...found.identities },
    hostKey: found.hostKey,
    bootId: found.bootId,
    kept: found.kept,
    lookedAt: isoTime(act.nowMs),
    policyVersion: now.policyVersion,
  };
  if (found.plan === null) {
    const reason = found.diagnosis.plan === null ? nothingSentence : allKeptSentence;
    return move(record, 'succeeded', {
      act,
      what: 'looked',
      reason,
      patch: base,
      deliver: ['card', 'picture', 'details'],
    });
  }
  if (found.bootId === '') {
    const reason = `${record.host} did not tell its boot id, so nothing seen there can be pinned and nobody may approve the plan. Nothing was done.`;
    return move(record, 'blocked', {
      act,
      what: 'blocked',
      reason,
      patch: base,
      deliver: ['card', 'picture', 'details'],
    });
  }
  const needed = peopleNeeded(now.policy, {
    plan: found.plan,
    diagnosis: found.diagnosis,
    requester: record.requester.id,
  });
  const nobody = now.policy.approvers.length === 0;
  const owners = ownersOf(found.plan, found.diagnosis, now.policy);
  return move(record, 'pending', {
    act,
    what: 'looked',
    reason: nobody
      ? 'Nobody may approve this: no approver is configured (policy.approvers).'
      : `Waiting for approval by ${peopleCount(needed.people)}.`,
    patch: {
      ...base,
      plan: found.plan,
      digest: approvalDigest({ ...found, plan: found.plan }),
      required: needed.people,
      requiredWhy: needed.why,
      ...(owners.length === 0 ? {} : { owners }),
      pendingUntil: isoTime(act.nowMs + now.policy.pending_ttl),
    },
    deliver: ['plan_file', 'card', 'picture', 'details', ...(owners.length === 0 ? [] : (['owners'] as const))],
  });
}

export function lookFailed(record: RequestRecord, code: string, userText: string, act: Act): Move | Refused {
  if (record.state !== 'draft') return { ok: false, ...whyClosed(record) };
  return move(record, 'failed', { act, what: 'look_failed', reason: userText, patch: { errorCode: code } });
}

export interface Approve {
  readonly digest: string | undefined;
  /** The plan after what this person unticked, null when nothing would be left; the record's own plan when unchanged. */
  readonly plan: Plan | null;
  readonly unticked: readonly string[];
  readonly reason: string | undefined;
  readonly breakGlass: boolean;
  /** Earlier voters who may not approve any more, by the policy and directory of this moment. */
  readonly noLonger: readonly string[];
}

/** The facts of a record that has a plan to vote on, or why there is none. */
export function openPlan(record: RequestRecord): { plan: Plan; diagnosis: Diagnosis; digest: string } | Refused {
  const { plan, diagnosis, digest } = record;
  if (record.state !== 'pending' || plan === null || diagnosis === undefined || digest === undefined) {
    return { ok: false, ...whyClosed(record) };
  }
  return { plan, diagnosis, digest };
}

function withPlan(record: RequestRecord, plan: Plan, diagnosis: Diagnosis, now: PolicyNow): RequestRecord {
  const needed = peopleNeeded(now.policy, { plan, diagnosis, requester: record.requester.id });
  const { hostKey = '', bootId = '', identities } = record;
  return {
    ...record,
    plan,
    digest: approvalDigest({ plan, hostKey, bootId, identities }),
    required: needed.people,
    requiredWhy: needed.why,
    policyVersion: now.policyVersion,
  };
}

/** One approval. It counts for the digest it was given for; when the plan changes, earlier approvals fall. */
export function approve(record: RequestRecord, vote: Approve, now: PolicyNow, act: Act): Move | Refused {
  const open = openPlan(record);
  if ('ok' in open) return open;
  if (vote.digest !== undefined && vote.digest !== open.digest) {
    return {
      ok: false,
      code: 'request_changed',
      text: 'The plan changed since it was shown to you, so your approval was not counted. Look at it again and decide anew.',
    };
  }
  if (vote.plan === null) {
    return {
      ok: false,
      code: 'usage',
      text: 'With all that taken out nothing is left to do. Deny the request instead.',
    };
  }
  const next = withPlan(record, vote.plan, open.diagnosis, now);
  const changed = next.digest !== open.digest;
  if (!changed && approversOf(record).includes(act.who) && !vote.noLonger.includes(act.who)) {
    const missing = peopleCount(Math.max(1, next.required - approversOf(record).length));
    return { ok: false, code: 'request_closed', text: `You approved this already. It waits for ${missing} more.` };
  }
  const standing = changed ? [] : record.votes.filter((v) => !vote.noLonger.includes(v.person));
  const mine: Vote = {
    person: act.who,
    verdict: 'approve',
    at: isoTime(act.nowMs),
    steps: vote.plan.steps.map((s) => s.id),
    ...(next.digest === undefined ? {} : { digest: next.digest }),
    ...(vote.breakGlass ? { breakGlass: true as const } : {}),
    ...(vote.reason === undefined ? {} : { reason: vote.reason }),
  };
  const kept = vote.unticked.map((target) => ({ target, by: act.who, why: 'unticked' }));
  const voted = {
    ...next,
    votes: [...standing.filter((v) => v.person !== act.who), mine],
    kept: [...record.kept, ...(changed ? kept : [])],
  };
  return counted(voted, record, { changed, vote, now, act });
}

interface Counting {
  readonly changed: boolean;
  readonly vote: Approve;
  readonly now: PolicyNow;
  readonly act: Act;
}

function counted(voted: RequestRecord, before: RequestRecord, { changed, vote, now, act }: Counting): Move {
  const people = approversOf(voted);
  const fell = approversOf(before).filter((id) => !people.includes(id));
  const notes = fell.length === 0 ? '' : ` The approval of ${peopleInWords(fell)} fell, because ${fellWhy(changed)}.`;
  const why = vote.breakGlass ? `Break-glass: ${vote.reason ?? ''}` : undefined;
  if (vote.breakGlass || people.length >= voted.required) {
    const how = vote.breakGlass ? 'Break-glass: approved by' : 'Approved by';
    return move(voted, 'approved', {
      act,
      what: vote.breakGlass ? 'break_glass' : 'approved',
      reason: `${how} ${peopleInWords(people)}.${notes}`,
      ...(why === undefined ? {} : { why }),
      patch: { unusedUntil: isoTime(act.nowMs + now.policy.unused_ttl) },
      ...(vote.breakGlass ? { deliver: ['card', 'break_glass'] as const } : {}),
    });
  }
  return stay(voted, {
    act,
    what: changed ? 'approved_part' : 'vote',
    reason: `${people.length} of ${voted.required}: approved by ${peopleInWords(people)}.${notes}`,
    deliver: changed ? ['plan_file', 'card', 'details'] : ['card'],
  });
}

const fellWhy = (changed: boolean) => (changed ? 'the plan is a different one now' : 'they may not approve any more');

/** One denial by an approver ends it. The reason stays in the vote, as the text a person typed. */
export function deny(record: RequestRecord, reason: string | undefined, act: Act): Move | Refused {
  const open = openPlan(record);
  if ('ok' in open) return open;
  const vote: Vote = {
    person: act.who,
    verdict: 'deny',
    at: isoTime(act.nowMs),
    steps: [],
    digest: open.digest,
    ...(reason === undefined || reason === '' ? {} : { reason }),
  };
  const text = `Denied by @${act.who}. Nothing was done.`;
  return move(record, 'denied', {
    act,
    what: 'denied',
    reason: text,
    why: vote.reason === undefined ? text : `${text} ${vote.reason}`,
    patch: { votes: [...record.votes.filter((v) => v.person !== act.who), vote] },
  });
}

/** Those of `targets` that are processes of this person in the report; the others are not theirs to keep. */
export function ownTargets(
  record: RequestRecord,
  policy: Policy,
  person: string,
  targets: readonly string[],
): string[] {
  if (record.diagnosis === undefined) return [];
  const known = processesByKey(record.diagnosis);
  return targets.filter((key) => isUnixUserOf(policy, person, known.get(key)?.user ?? null));
}

/** An owner takes processes out of the plan. Earlier approvals fall with the plan they were given for. */
export function keep(
  record: RequestRecord,
  taken: { readonly targets: readonly string[]; readonly plan: Plan | null },
  now: PolicyNow,
  act: Act,
): Move | Refused {
  const open = openPlan(record);
  if ('ok' in open) return open;
  const kept = [...record.kept, ...taken.targets.map((target) => ({ target, by: act.who, why: 'mine, keep it' }))];
  if (taken.plan === null) {
    const reason = `@${act.who} keeps everything that was in the plan. Nothing was done.`;
    return move(record, 'cancelled', { act, what: 'kept', reason, patch: { kept } });
  }
  const next = { ...withPlan(record, taken.plan, open.diagnosis, now), kept };
  const fell = approversOf(record);
  const count = taken.targets.length === 1 ? '1 process' : `${taken.targets.length} processes`;
  const again =
    fell.length === 0 ? '' : ` The approval of ${peopleInWords(fell)} fell, because the plan is a different one now.`;
  return stay(
    { ...next, votes: [] },
    {
      act,
      what: 'kept',
      reason: `@${act.who} keeps ${count} out of the plan.${again}`,
      deliver: ['plan_file', 'card', 'details'],
    },
  );
}

/** The Slack people whose processes a plan would end, with their `pid:startTime` keys: those to tell before a kill. */
function ownersOf(plan: Plan, diagnosis: Diagnosis, policy: Policy): NonNullable<RequestRecord['owners']> {
  const known = processesByKey(diagnosis);
  const owners = new Map<string, string[]>();
  for (const key of plan.steps.flatMap((step) => (step.action === 'kill' ? step.targets.map(targetKey) : []))) {
    const user = known.get(key)?.user;
    if (user === undefined || user === null) continue;
    const person = personOfUnixUser(policy, user);
    if (!person.startsWith('unix:')) owners.set(person, [...(owners.get(person) ?? []), key]);
  }
  return [...owners].map(([person, targets]) => ({ person, targets }));
}
