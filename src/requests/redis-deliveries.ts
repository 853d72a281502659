/** The outbox on Redis: what waits to be shown, who holds it for sending, and the wake-up across processes. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { p, type RedisLink } from './redis-link.ts';
import { deliveryHash } from './redis-rows.ts';
import { claimScript, settleScript } from './redis-scripts.ts';
import type { Store } from './store.ts';
import type { Delivery } from './types.ts';

const strings = z.array(z.string());

export class RedisDeliveries {
  readonly #link: RedisLink;
  readonly #clock: Clock;
  readonly #wakers = new Set<() => void>();
  #subscriber: Redis | null = null;

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  async claim(claimer: string, claimMs: number, limit: number): Promise<Delivery[]> {
    const nowMs = this.#clock.now();
    const keys = await this.#link.run(strings, claimScript, claimer, nowMs, nowMs + claimMs, limit);
    const found = await Promise.all(keys.map((key) => this.get(key)));
    return found.filter((delivery) => delivery !== null);
  }

  async settle(...[key, claimer, outcome]: Parameters<Store['settleDelivery']>): Promise<void> {
    const said =
      'delivered' in outcome
        ? ['delivered', outcome.delivered, outcome.messageTs ?? '']
        : 'retryAt' in outcome
          ? ['retry', Date.parse(outcome.retryAt), '']
          : ['given_up', outcome.givenUp, ''];
    await this.#link.run(z.unknown(), settleScript, key, claimer, ...said);
  }

  async get(key: string): Promise<Delivery | null> {
    const hash = await this.#link.ask(z.record(z.string(), z.string()), (redis) =>
      redis.hgetall(`${p}delivery:${key}`),
    );
    return hash['key'] === undefined ? null : deliveryHash.parse(hash);
  }

  async undelivered(): Promise<{ count: number; oldestAt: string | null }> {
    const count = await this.#link.ask(z.number(), (redis) => redis.zcard(`${p}due`));
    const [first] = await this.#link.ask(strings, (redis) => redis.zrange(`${p}due`, '0', '0'));
    if (first === undefined) return { count, oldestAt: null };
    const since = await this.#link.ask(z.string().nullable(), (redis) => redis.hget(`${p}delivery:${first}`, 'since'));
    return { count, oldestAt: since === null ? null : new Date(Number(since)).toISOString() };
  }

  onDelivery(wake: () => void): () => void {
    this.#wakers.add(wake);
    if (this.#subscriber === null) {
      const wakeAll = () => {
        for (const each of this.#wakers) each();
      };
      // Subscriptions come back by themselves after an outage; what was missed meanwhile is told by waking once.
      const subscriber = this.#link.redis.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null });
      subscriber.on('error', () => undefined);
      subscriber.on('message', wakeAll);
      subscriber.on('ready', wakeAll);
      subscriber.subscribe(`${p}wake`).catch(() => undefined);
      this.#subscriber = subscriber;
    }
    return () => this.#wakers.delete(wake);
  }

  close(): void {
    this.#wakers.clear();
    this.#subscriber?.disconnect();
  }
}
