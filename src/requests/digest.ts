/**
 * What an approval is bound to: effects, not wording. The plan's own digest covers the boot and every exact target with
 * what pins it; here the host key the box proved comes on top. Predictions, names and sentences may change without a new
 * approval, a target may not.
 */
import type { Plan } from '../memory/contract.ts';
import { planDigest } from '../memory/plan.ts';
import type { Identity } from '../memory/story.ts';
import { canonicalJson, sha256 } from './chain.ts';

export interface ApprovedEffects {
  readonly plan: Plan;
  readonly hostKey: string;
  readonly bootId: string;
  readonly identities: Readonly<Record<string, Identity>>;
}

/** SHA-256 in lower-case hex. The plan's digest is computed anew, so that a record cannot claim one for other steps. */
export function approvalDigest({ plan, hostKey, bootId, identities }: ApprovedEffects): string {
  return sha256(canonicalJson({ approval: 1, hostKey, plan: planDigest(plan.steps, identities, bootId) }));
}
