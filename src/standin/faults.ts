/** Switches that make Slack misbehave the way it does on bad days. Each counts down by itself. */
export type CallFault = 'ratelimited' | 'server_error' | 'reset_after_commit' | 'slow' | 'internal_error';

export interface CallFaultPlan {
  readonly kind: CallFault;
  /** How many calls it hits. */
  readonly count: number;
  /** Only this method; left out: every Web API call. */
  readonly method?: string;
  /** Seconds told with `ratelimited`; default 1. */
  readonly retryAfterSeconds?: number;
  /** How long `slow` waits; default 4000. */
  readonly delayMs?: number;
}

export class Faults {
  #plans: { plan: CallFaultPlan; left: number }[] = [];
  /** Envelopes still to be sent twice. */
  duplicateNext = 0;

  add(plan: CallFaultPlan): void {
    this.#plans.push({ plan, left: plan.count });
  }

  clear(): void {
    this.#plans = [];
    this.duplicateNext = 0;
  }

  /** The fault this call meets, if any; counts it. */
  take(method: string): CallFaultPlan | undefined {
    const hit = this.#plans.find((p) => p.left > 0 && (p.plan.method === undefined || p.plan.method === method));
    if (hit === undefined) return undefined;
    hit.left -= 1;
    this.#plans = this.#plans.filter((p) => p.left > 0);
    return hit.plan;
  }

  takeDuplicate(): boolean {
    if (this.duplicateNext <= 0) return false;
    this.duplicateNext -= 1;
    return true;
  }

  list(): { kind: CallFault; left: number; method?: string }[] {
    return this.#plans.map(({ plan, left }) => ({
      kind: plan.kind,
      left,
      ...(plan.method === undefined ? {} : { method: plan.method }),
    }));
  }
}
