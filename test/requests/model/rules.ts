/** The rules of approval once more, written from the specification and not from the product: what the model checks by. */
import type { Policy } from '../../../src/config/schema.ts';
import type { RequestRecord } from '../../../src/requests/types.ts';
import type { TestDirectory } from '../fixtures.ts';

/** `kill 7001:123 7002:124 | drop_caches`: two plans are the same when this is. */
export function effectsOf(plan: RequestRecord['plan'], without: readonly string[] = []): string {
  const steps = plan?.steps.flatMap((step) => {
    if (step.action !== 'kill') return without.includes(`step:${step.id}`) ? [] : [step.action];
    const left = step.targets.map((t) => `${t.pid}:${t.startTime}`).filter((key) => !without.includes(key));
    return left.length === 0 ? [] : [`kill ${left.sort().join(' ')}`];
  });
  return (steps ?? []).join(' | ');
}

const pidsOf = (effects: string): string[] => effects.match(/\d+:\d+/g) ?? [];

/** The Slack person who owns a process, by what the look said and the policy's map. */
function ownerOf(record: RequestRecord, policy: Policy, key: string): string | undefined {
  const processes = record.diagnosis?.findings.flatMap((f) => f.processes ?? []) ?? [];
  const user = processes.find((p) => `${p.pid}:${p.startTime}` === key)?.user;
  return user === null || user === undefined ? undefined : policy.people[user];
}

export function neededFor(record: RequestRecord, policy: Policy, effects: string): number {
  const foreign = pidsOf(effects).some((key) => ownerOf(record, policy, key) !== record.requester.id);
  const { required } = policy;
  return Math.max(
    1,
    ...effects.split(' | ').map((step) => {
      if (step.startsWith('kill')) return foreign ? required.kill_others : required.kill;
      return step === 'drop_caches' ? required.drop_caches : required.remove_files;
    }),
  );
}

export function mayApprove(
  person: string,
  {
    record,
    policy,
    effects,
    directory,
  }: { record: RequestRecord; policy: Policy; effects: string; directory: TestDirectory },
  breakGlass = false,
): boolean {
  if (policy.approvers.length === 0 || directory.down) return false;
  if ((directory.standings.get(person) ?? 'member') !== 'member') return false;
  const groups = policy.approvers.map((id) => directory.groups.get(id) ?? []);
  if (!policy.approvers.includes(person) && !groups.some((members) => members.includes(person))) return false;
  if (person !== record.requester.id || breakGlass || policy.self_approval === 'always') return true;
  const onlyOwn =
    effects.split(' | ').every((step) => step.startsWith('kill')) &&
    pidsOf(effects).every((key) => ownerOf(record, policy, key) === person);
  return policy.self_approval === 'own_processes' && onlyOwn;
}
