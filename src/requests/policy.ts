/**
 * Who may decide, and how many must agree. Everything here is decided from facts handed in; nothing that could not be
 * found out counts as a yes. Self-approval is settled first, so that it costs no look-up and tells nobody's membership.
 */
import type { Policy } from '../config/schema.ts';
import type { ErrorCode } from '../errors.ts';
import type { Diagnosis, Plan, ProcessRef } from '../memory/contract.ts';
import { targetKey } from '../memory/story.ts';
import type { PersonFacts } from './directory.ts';
import { peopleCount } from './sentences.ts';
import type { Person } from './types.ts';

export interface Refusal {
  readonly ok: false;
  readonly code: ErrorCode;
  /** The whole sentence for the person who tried. */
  readonly text: string;
}

const refuse = (code: ErrorCode, text: string): Refusal => ({ ok: false, code, text });

/** True when `user` on the box is this person: by policy.people, or as the Unix user they are known by. */
export function isUnixUserOf(policy: Policy, person: string, user: string | null): boolean {
  if (user === null) return false;
  if (person === `unix:${user}`) return true;
  return Object.hasOwn(policy.people, user) && policy.people[user] === person;
}

/** The person of a Unix user: its Slack id by policy.people, else `unix:NAME`. */
export function personOfUnixUser(policy: Policy, user: string): string {
  return (Object.hasOwn(policy.people, user) ? policy.people[user] : undefined) ?? `unix:${user}`;
}

/** The processes a diagnosis names, by `pid:startTime`. */
export function processesByKey(diagnosis: Diagnosis): Map<string, ProcessRef> {
  return new Map(diagnosis.findings.flatMap((f) => f.processes ?? []).map((p) => [targetKey(p), p]));
}

export interface PlanFacts {
  readonly plan: Plan;
  readonly diagnosis: Diagnosis;
  readonly requester: string;
}

/** How many processes the plan would end that are not (known to be) the requester's own. */
export function foreignProcesses(policy: Policy, { plan, diagnosis, requester }: PlanFacts): number {
  const known = processesByKey(diagnosis);
  const targets = plan.steps.flatMap((step) => (step.action === 'kill' ? step.targets : []));
  return targets.filter((t) => !isUnixUserOf(policy, requester, known.get(targetKey(t))?.user ?? null)).length;
}

/** How many distinct people must agree: the strictest of the plan's steps, with the sentence that says why. */
export function peopleNeeded(policy: Policy, facts: PlanFacts): { people: number; why: string } {
  const foreign = foreignProcesses(policy, facts);
  const needs = facts.plan.steps.map((step): { people: number; because: string } => {
    switch (step.action) {
      case 'kill':
        return foreign > 0
          ? { people: policy.required.kill_others, because: 'it ends processes that are not all the requester’s own' }
          : { people: policy.required.kill, because: 'it ends processes of the requester' };
      case 'remove_files':
      case 'ipcrm':
        return { people: policy.required.remove_files, because: 'it removes shared memory' };
      case 'drop_caches':
        return { people: policy.required.drop_caches, because: 'it drops caches' };
    }
  });
  const most = needs.reduce((a, b) => (b.people > a.people ? b : a));
  const why = `${peopleCount(most.people)} must agree, because ${most.because}.`;
  return { people: most.people, why: `${why}${deadEnd(policy, facts, most.people)}` };
}

/** Said when the request is made: with the people configured it can never be approved. A user group may hold anybody. */
function deadEnd(policy: Policy, facts: PlanFacts, needed: number): string {
  const { approvers } = policy;
  if (approvers.length === 0 || approvers.some((id) => id.startsWith('S'))) return '';
  const able = approvers.filter((id) => refuseBeforeLookup(policy, { id }, facts, false) === null).length;
  if (able >= needed) return '';
  const who = able === 0 ? 'no configured approver' : `only ${able} of the configured approvers`;
  return ` But ${who} may approve this, so it cannot be approved as it is. Name more in policy.approvers, or see policy.self_approval.`;
}

/** What can be refused without asking anybody: no approvers at all, a Unix user nobody mapped, the requester's own vote. */
export function refuseBeforeLookup(
  policy: Policy,
  person: Person,
  facts: PlanFacts,
  breakGlass: boolean,
): Refusal | null {
  if (policy.approvers.length === 0) {
    return refuse(
      'no_approvers',
      'Nobody may approve here: policy.approvers is empty. Nothing was done. Name at least one approver in reclaim.yaml.',
    );
  }
  if (!/^[UW][A-Z0-9]{2,}$/.test(person.id)) {
    return refuse(
      'not_allowed',
      `policy.people maps no Slack person to ${person.id.replace(/^unix:/, 'the Unix user ')}, so it may not approve. Nothing was done. An approver can decide in Slack.`,
    );
  }
  if (person.id !== facts.requester || policy.self_approval === 'always' || breakGlass) return null;
  if (policy.self_approval === 'never') {
    return refuse('not_allowed', 'You asked for this yourself, so another approver has to agree. Nothing was done.');
  }
  const onlyKills = facts.plan.steps.every((step) => step.action === 'kill');
  if (onlyKills && foreignProcesses(policy, facts) === 0) return null;
  return refuse(
    'not_allowed',
    'You may approve your own request only for your own processes, and this plan does more. Another approver has to agree, or take the rest out of the plan first.',
  );
}

/** What the directory said about one person at the moment of the click. */
export interface LookedUp {
  readonly standing: PersonFacts['standing'] | 'lookup_failed';
  /** Membership of each user group among the approvers. */
  readonly groups: Readonly<Record<string, readonly string[] | 'lookup_failed'>>;
}

const standingWords = {
  guest: 'Guests may not decide here.',
  stranger: 'People of other workspaces may not decide here.',
  deactivated: 'Deactivated accounts may not decide here.',
  bot: 'Bots may not decide here.',
} as const;

const couldNotCheck = refuse(
  'lookup_failed',
  'Slack did not say who may approve, so the answer is no for now. Nothing was done. Try again in a minute.',
);

/** Only a full member who is an approver, by id or by a user group that could be read, gets a yes (null). */
export function refuseAfterLookup(policy: Policy, person: Person, looked: LookedUp): Refusal | null {
  if (looked.standing === 'lookup_failed') return couldNotCheck;
  if (looked.standing !== 'member') return refuse('not_allowed', `${standingWords[looked.standing]} Nothing was done.`);
  if (policy.approvers.includes(person.id)) return null;
  const groups = policy.approvers.filter((id) => id.startsWith('S')).map((id) => looked.groups[id] ?? 'lookup_failed');
  if (groups.some((members) => members !== 'lookup_failed' && members.includes(person.id))) return null;
  if (groups.includes('lookup_failed')) return couldNotCheck;
  return refuse(
    'not_allowed',
    'You are not an approver of this bot, so this is not yours to decide. Nothing was done.',
  );
}
