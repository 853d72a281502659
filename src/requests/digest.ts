/**
 * What an approval is bound to: effects, not wording. The digest covers the host key the box proved, its boot id, and of
 * each step the action and every exact target; processes with uid and exe beside pid and start time. Predictions, names
 * and sentences may change without a new approval, a target may not.
 */
import type { Plan } from '../memory/contract.ts';
import { type Identity, targetKey } from '../memory/story.ts';
import { canonicalJson, sha256 } from './chain.ts';

export interface ApprovedEffects {
  readonly plan: Plan;
  readonly hostKey: string;
  readonly bootId: string;
  readonly identities: Readonly<Record<string, Identity>>;
}

/** `sha256` in lower-case hex over the effects in canonical JSON. */
export function approvalDigest({ plan, hostKey, bootId, identities }: ApprovedEffects): string {
  const steps = plan.steps.map((step) => {
    if (step.action !== 'kill') return { action: step.action, targets: step.targets };
    const targets = step.targets.map((target) => ({ ...target, ...(identities[targetKey(target)] ?? {}) }));
    return { action: step.action, targets };
  });
  return sha256(canonicalJson({ approval: 1, hostKey, bootId, plan: plan.digest, steps }));
}
