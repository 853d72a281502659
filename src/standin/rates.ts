/** Slack's rate tiers as token buckets: a burst is let through, a steady excess gets 429 with `Retry-After`. */
import type { Method } from './methods/types.ts';

/** Slack lets short bursts to one channel pass; how long is not documented. */
const channelBurst = 10;

export class Rates {
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  /** Seconds to wait, or 0 when the call may pass. */
  take(name: string, method: Method, channel: string): number {
    const perMethod = this.#spend(name, method.perMinute, method.perMinute / 60);
    if (perMethod > 0) return perMethod;
    const perSecond = method.perChannelPerSecond;
    return perSecond === undefined ? 0 : this.#spend(`${name} ${channel}`, channelBurst, perSecond);
  }

  #spend(key: string, capacity: number, perSecond: number): number {
    const now = Date.now();
    const bucket = this.#buckets.get(key) ?? { tokens: capacity, atMs: now };
    bucket.tokens = Math.min(capacity, bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = now;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / perSecond);
    bucket.tokens -= 1;
    return 0;
  }
}
