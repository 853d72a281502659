/** Asks the directory at the moment of the click, and turns a look-up that failed into a no. */
import type { Policy } from '../config/schema.ts';
import type { Plan } from '../memory/contract.ts';
import type { Directory } from './directory.ts';
import { type LookedUp, type PlanFacts, type Refusal, refuseAfterLookup, refuseBeforeLookup } from './policy.ts';
import type { Decision } from './service.ts';
import type { Person, RequestRecord } from './types.ts';

export interface LookUps {
  of(person: Person): Promise<LookedUp>;
  /** Those of `ids` who may not approve this (any more), or for whom that cannot be told. */
  noLongerApprovers(ids: readonly string[], facts: PlanFacts): Promise<string[]>;
}

async function orFailed<T>(asked: Promise<T>): Promise<T | 'lookup_failed'> {
  try {
    return await asked;
  } catch {
    return 'lookup_failed';
  }
}

/** Look-ups for one decision: each question is asked at most once, however often the write is tried. */
export function lookUp(policy: Policy, directory: Directory): LookUps {
  const known = new Map<string, Promise<LookedUp>>();
  const groups = new Map<string, Promise<readonly string[] | 'lookup_failed'>>();
  const members = (group: string) => {
    const asked = groups.get(group) ?? orFailed(directory.groupMembers(group));
    groups.set(group, asked);
    return asked;
  };
  const ask = async (person: Person): Promise<LookedUp> => {
    const facts = await orFailed(directory.person(person.id, person.team));
    const standing = facts === 'lookup_failed' ? facts : facts.standing;
    if (standing !== 'member' || policy.approvers.includes(person.id)) return { standing, groups: {} };
    const ids = policy.approvers.filter((id) => id.startsWith('S'));
    const lists = await Promise.all(ids.map(async (id) => [id, await members(id)] as const));
    return { standing, groups: Object.fromEntries(lists) };
  };
  const of = (person: Person): Promise<LookedUp> => {
    const asked = known.get(person.id) ?? ask(person);
    known.set(person.id, asked);
    return asked;
  };
  return {
    of,
    async noLongerApprovers(ids, facts) {
      const no = async (id: string) =>
        (refuseBeforeLookup(policy, { id }, facts, false) ?? refuseAfterLookup(policy, { id }, await of({ id }))) !==
        null;
      const checked = await Promise.all([...new Set(ids)].map(async (id) => ({ id, no: await no(id) })));
      return checked.filter((c) => c.no).map((c) => c.id);
    },
  };
}

export interface MayDecide {
  readonly record: RequestRecord;
  readonly decision: Decision;
  /** The plan that would stand after the decision. */
  readonly plan: Plan;
  readonly policy: Policy;
  readonly lookups: LookUps;
}

/** Null when this person may decide so, else why not. Approvers deny, also their own requests; self-approval is policy. */
export async function mayDecide({ record, decision, plan, policy, lookups }: MayDecide): Promise<Refusal | null> {
  const { diagnosis } = record;
  if (diagnosis === undefined) return null;
  const glass = decision.breakGlass === true;
  if (glass && !policy.break_glass) {
    return {
      ok: false,
      code: 'not_allowed',
      text: 'Break-glass is switched off here (policy.break_glass). Nothing was done.',
    };
  }
  if (glass && (decision.reason ?? '').trim() === '') {
    return { ok: false, code: 'usage', text: 'Break-glass needs a reason that others can read. Nothing was done.' };
  }
  const facts = { plan, diagnosis, requester: record.requester.id };
  const early = refuseBeforeLookup(policy, decision.person, facts, glass || decision.verdict === 'deny');
  return early ?? refuseAfterLookup(policy, decision.person, await lookups.of(decision.person));
}
