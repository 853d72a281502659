/** The plan: steps on exact targets, under a digest of their effects that an approval is bound to. */
import { createHash } from 'node:crypto';
import type { Finding, KillTarget, Plan, RangeKiB, Step } from './contract.ts';
import { targetKey, type DraftStep, type Identity } from './story.ts';

type Identities = Readonly<Record<string, Identity>>;

const idPrefix = { kill: 'kill', remove_files: 'remove', ipcrm: 'ipcrm', drop_caches: 'drop' } as const;

/** Gives the drafts their ids (`kill-1`, `remove-1`, `ipcrm-1`, `drop-1`, …) and the digest. Null without steps. */
export function makePlan(drafts: readonly DraftStep[], identities: Identities, bootId: string): Plan | null {
  const seen = new Map<string, number>();
  const steps = drafts
    .filter((draft) => draft.targets.length > 0)
    .map((draft): Step => {
      const number = (seen.get(draft.action) ?? 0) + 1;
      seen.set(draft.action, number);
      return { ...draft, id: `${idPrefix[draft.action]}-${number}` };
    });
  return steps.length === 0 ? null : { digest: planDigest(steps, identities, bootId), steps };
}

/**
 * SHA-256 over the boot and every single effect, sorted: the same effects give the same digest whatever the wording,
 * grouping or order; any other process, owner, program, file, segment or level gives another.
 */
export function planDigest(steps: readonly Step[], identities: Identities, bootId: string): string {
  const effects = steps.flatMap((step) => effectsOf(step, identities)).sort();
  return createHash('sha256')
    .update(JSON.stringify(['plan', 1, bootId, effects]))
    .digest('hex');
}

function effectsOf(step: Step, identities: Identities): string[] {
  switch (step.action) {
    case 'kill':
      return step.targets.map((target) => {
        const identity = identityOf(identities, target);
        return JSON.stringify(['kill', target.pid, target.startTime, identity.uid, identity.exe]);
      });
    case 'remove_files':
      return step.targets.map(({ path, dev, ino }) => JSON.stringify(['remove_files', dev, ino, path]));
    case 'ipcrm':
      return step.targets.map(({ shmid }) => JSON.stringify(['ipcrm', shmid]));
    case 'drop_caches':
      return step.targets.map(({ level }) => JSON.stringify(['drop_caches', level]));
  }
}

export function identityOf(identities: Identities, target: KillTarget): Identity {
  const key = targetKey(target);
  return (Object.hasOwn(identities, key) ? identities[key] : undefined) ?? { uid: null, exe: null };
}

/**
 * The plan without what people took out: `pid:startTime` for a process, `step:ID` for a whole step. Step ids stay. Null
 * when nothing is left. `findings` (of the same diagnosis) tell what each process holds; without them, what is left of a
 * step may give anything from nothing to what the whole would have.
 */
export function planWithout(
  plan: Plan,
  removed: readonly string[],
  identities: Identities,
  bootId: string,
  findings: readonly Finding[] = [],
): Plan | null {
  const out = new Set(removed);
  const held = heldByTarget(findings);
  const steps = plan.steps
    .filter((step) => !out.has(`step:${step.id}`))
    .map((step) => (step.action === 'kill' ? keepTargets(step, (t) => !out.has(targetKey(t)), held) : step))
    .filter((step) => step.targets.length > 0);
  return steps.length === 0 ? null : { digest: planDigest(steps, identities, bootId), steps };
}

export function heldByTarget(findings: readonly Finding[]): ReadonlyMap<string, number> {
  return new Map(findings.flatMap((f) => f.processes ?? []).map((process) => [targetKey(process), process.kiB]));
}

interface KillStep {
  readonly targets: KillTarget[];
  readonly expectedFreeKiB: RangeKiB;
  readonly expectedAvailableKiB: RangeKiB;
}

/** A kill step with some targets only, its prediction scaled to what they hold. */
export function keepTargets<S extends KillStep>(
  step: S,
  keep: (target: KillTarget) => boolean,
  held: ReadonlyMap<string, number>,
): S {
  const targets = step.targets.filter(keep);
  if (targets.length === step.targets.length) return step;
  const share = shareOf(targets, step.targets, held);
  return {
    ...step,
    targets,
    expectedFreeKiB: scaled(step.expectedFreeKiB, share),
    expectedAvailableKiB: scaled(step.expectedAvailableKiB, share),
  };
}

/** Part of the step's memory its remaining targets hold; null when that is not known for each. */
function shareOf(
  kept: readonly KillTarget[],
  all: readonly KillTarget[],
  held: ReadonlyMap<string, number>,
): number | null {
  if (all.some((target) => !held.has(targetKey(target)))) return null;
  const sum = (targets: readonly KillTarget[]): number =>
    targets.reduce((kiB, target) => kiB + Math.max(0, held.get(targetKey(target)) ?? 0), 0);
  const whole = sum(all);
  return whole === 0 ? null : sum(kept) / whole;
}

/** Pages shared by copy-on-write inside the step come back only with their last holder, so the low end drops further. */
const sharedWithUntickedShare = 0.9;

function scaled(range: RangeKiB, share: number | null): RangeKiB {
  if (share === null) return { low: Math.min(0, range.low), high: Math.max(0, range.high) };
  return {
    low: Math.floor(range.low * share * (range.low > 0 ? sharedWithUntickedShare : 1)),
    high: Math.ceil(range.high * share),
  };
}
