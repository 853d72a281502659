/**
 * The store on Redis: one hash per request, one script per atomic write. The audit chain is hashed here and appended by
 * compare-and-swap on its head, so that two writers can never fork it.
 */
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import { type ChainHead, chainEvents, emptyChain } from './chain.ts';
import { deliveryHash } from './redis-rows.ts';
import { claimScript, holdScript, releaseScript, settleScript, writeScript } from './redis-scripts.ts';
import { schemaSentence } from './sql-schema.ts';
import { isOpen } from './state.ts';
import type { Change, Store, WriteResult } from './store.ts';
import type { AuditEvent, Delivery, NewAuditEvent, RequestRecord } from './types.ts';
import { eventSchema, requestSchema } from './types.ts';

export const redisSchemaVersion = '1';
const p = '{reclaim}:';
const pageSize = 100;

const down = (cause: unknown) =>
  new ReclaimError('store_down', 'Redis does not answer, so nothing was recorded or changed. Try again in a minute.', {
    cause,
  });

const strings = z.array(z.string());
const nullable = z.array(z.string().nullable());
const answerSchema = z.tuple([z.string()]).rest(z.string());
const recordOf = (text: string | null | undefined): RequestRecord | null =>
  text === null || text === undefined || text === '' ? null : requestSchema.parse(JSON.parse(text));

const run = (redis: Redis, script: string, ...args: (string | number)[]) =>
  redis.eval(script, 1, p, ...args.map(String));

class RedisStore implements Store {
  readonly #redis: Redis;
  readonly #clock: Clock;
  readonly #wakers = new Set<() => void>();
  #subscriber: Redis | null = null;
  #head: ChainHead = emptyChain;
  /** Writers of one process line up, so that they do not move the chain's head from under each other. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(redis: Redis, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  async ask<T>(schema: z.ZodType<T>, question: (redis: Redis) => Promise<unknown>): Promise<T> {
    let answer: unknown;
    try {
      answer = await question(this.#redis);
    } catch (error) {
      throw down(error);
    }
    return schema.parse(answer);
  }

  async #write(mode: 'create' | 'update' | 'events', change: Partial<Change>): Promise<WriteResult | null> {
    const turn = this.#line.then(() => this.#writeNow(mode, change));
    this.#line = turn.catch(() => undefined);
    return await turn;
  }

  async #writeNow(mode: 'create' | 'update' | 'events', change: Partial<Change>): Promise<WriteResult | null> {
    const { record, events = [], deliver = [] } = change;
    const about =
      record === undefined
        ? ['', '0', '', '', '', '0', '0']
        : [
            record.id,
            record.version - 1,
            record.state,
            record.host,
            JSON.stringify(record),
            Date.parse(record.createdAt),
            isOpen(record.state) ? 1 : 0,
          ];
    const show = record?.channel === undefined ? [''] : [record.channel, ...new Set(deliver)];
    for (;;) {
      const { seq, hash } = this.#head;
      const chained = chainEvents(this.#head, events);
      const lines = chained.flatMap((e) => [e.request, e.host, JSON.stringify(e)]);
      const last = chained.at(-1);
      const args = [
        mode,
        this.#clock.now(),
        ...about,
        seq,
        hash,
        last?.hash ?? hash,
        chained.length,
        ...lines,
        ...show,
      ];
      const [said, ...rest] = await this.ask(answerSchema, (redis) => run(redis, writeScript, ...args));
      if (said === 'head') {
        this.#head = { seq: Number(rest[0]), hash: rest[1] ?? '' };
        continue;
      }
      if (said === 'ok') {
        if (last !== undefined) this.#head = { seq: last.seq, hash: last.hash };
        return record === undefined ? null : { ok: true, record };
      }
      const why = z.enum(['exists', 'host_busy', 'changed']).parse(said);
      return { ok: false, why, current: recordOf(rest[0]) };
    }
  }

  async create(change: Change): Promise<WriteResult> {
    return (await this.#write('create', change)) ?? { ok: false, why: 'changed', current: null };
  }

  async update(change: Change): Promise<WriteResult> {
    return (await this.#write('update', change)) ?? { ok: false, why: 'changed', current: null };
  }

  async appendEvents(events: readonly NewAuditEvent[]): Promise<void> {
    if (events.length > 0) await this.#write('events', { events });
  }

  async get(id: string): Promise<RequestRecord | null> {
    return recordOf(await this.ask(z.string().nullable(), (redis) => redis.hget(`${p}request:${id}`, 'record')));
  }

  async openFor(host: string): Promise<RequestRecord | null> {
    const id = await this.ask(z.string().nullable(), (redis) => redis.hget(`${p}open`, host));
    return id === null ? null : await this.get(id);
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<RequestRecord[]> {
    const { states, host, limit } = filter;
    const wanted = (record: RequestRecord | null): record is RequestRecord =>
      record !== null &&
      (states === undefined || states.includes(record.state)) &&
      (host === undefined || record.host === host);
    if (states?.every(isOpen) === true) {
      const ids = await this.ask(strings, (redis) => redis.hvals(`${p}open`));
      const records = await Promise.all(ids.map((id) => this.get(id)));
      return records
        .filter(wanted)
        .sort((a, b) => b.createdAt.localeCompare(a.createdAt))
        .slice(0, limit);
    }
    const key = host === undefined ? `${p}requests` : `${p}requests:${host}`;
    const found: RequestRecord[] = [];
    for (let from = 0; found.length < limit; from += pageSize) {
      const ids = await this.ask(strings, (redis) => redis.zrevrange(key, from, from + pageSize - 1));
      const records = await Promise.all(ids.map((id) => this.get(id)));
      found.push(...records.filter(wanted));
      if (ids.length < pageSize) break;
    }
    return found.slice(0, limit);
  }

  async events(filter: Parameters<Store['events']>[0]): Promise<AuditEvent[]> {
    const after = filter.afterSeq ?? 0;
    const seqs = await this.#seqs(filter, after);
    const wanted = seqs.filter((seq) => Number(seq) > after);
    const found: AuditEvent[] = [];
    for (let from = 0; from < wanted.length && found.length < filter.limit; from += pageSize) {
      const page = wanted.slice(from, from + pageSize);
      const lines = await this.ask(nullable, (redis) => redis.hmget(`${p}events`, ...page));
      const events = lines.flatMap((line) => (line === null ? [] : [eventSchema.parse(JSON.parse(line))]));
      found.push(...events.filter((e) => filter.host === undefined || e.host === filter.host));
    }
    return found.slice(0, filter.limit);
  }

  async #seqs(filter: Parameters<Store['events']>[0], after: number): Promise<string[]> {
    const { request, host, limit } = filter;
    if (request !== undefined) return await this.ask(strings, (r) => r.lrange(`${p}events:request:${request}`, 0, -1));
    if (host !== undefined) return await this.ask(strings, (r) => r.lrange(`${p}events:host:${host}`, 0, -1));
    const head = await this.ask(z.string().nullable(), (r) => r.hget(`${p}chain`, 'seq'));
    const count = Math.max(0, Math.min(limit, Number(head ?? 0) - after));
    return Array.from({ length: count }, (_, n) => String(after + n + 1));
  }

  async claimDeliveries(claimer: string, claimMs: number, limit: number): Promise<Delivery[]> {
    const nowMs = this.#clock.now();
    const keys = await this.ask(strings, (r) => run(r, claimScript, claimer, nowMs, nowMs + claimMs, limit));
    const found = await Promise.all(keys.map((key) => this.delivery(key)));
    return found.filter((delivery) => delivery !== null);
  }

  async settleDelivery(...[key, claimer, outcome]: Parameters<Store['settleDelivery']>): Promise<void> {
    const said =
      'delivered' in outcome
        ? ['delivered', outcome.delivered, outcome.messageTs ?? '']
        : 'retryAt' in outcome
          ? ['retry', Date.parse(outcome.retryAt), '']
          : ['given_up', outcome.givenUp, ''];
    await this.ask(z.unknown(), (redis) => run(redis, settleScript, key, claimer, ...said));
  }

  async delivery(key: string): Promise<Delivery | null> {
    const hash = await this.ask(z.record(z.string(), z.string()), (redis) => redis.hgetall(`${p}delivery:${key}`));
    return hash['key'] === undefined ? null : deliveryHash.parse(hash);
  }

  async undelivered(): Promise<{ count: number; oldestAt: string | null }> {
    const count = await this.ask(z.number(), (redis) => redis.zcard(`${p}due`));
    const [first] = await this.ask(strings, (redis) => redis.zrange(`${p}due`, '0', '0'));
    if (first === undefined) return { count, oldestAt: null };
    const since = await this.ask(z.string().nullable(), (redis) => redis.hget(`${p}delivery:${first}`, 'since'));
    return { count, oldestAt: since === null ? null : new Date(Number(since)).toISOString() };
  }

  onDelivery(wake: () => void): () => void {
    this.#wakers.add(wake);
    if (this.#subscriber === null) {
      const wakeAll = () => {
        for (const each of this.#wakers) each();
      };
      // Subscriptions come back by themselves after an outage; what was missed meanwhile is told by waking once.
      const subscriber = this.#redis.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null });
      subscriber.on('error', () => undefined);
      subscriber.on('message', wakeAll);
      subscriber.on('ready', wakeAll);
      subscriber.subscribe(`${p}wake`).catch(() => undefined);
      this.#subscriber = subscriber;
    }
    return () => this.#wakers.delete(wake);
  }

  async keep(wish: Parameters<Store['keep']>[0]): Promise<void> {
    const key = `${p}kept:${wish.host}:${wish.bootId}`;
    await this.ask(z.unknown(), (redis) =>
      redis.hsetnx(key, wish.target, JSON.stringify({ by: wish.by, at: wish.at })),
    );
  }

  async kept(host: string, bootId: string): Promise<{ target: string; by: string }[]> {
    const hash = await this.ask(z.record(z.string(), z.string()), (redis) =>
      redis.hgetall(`${p}kept:${host}:${bootId}`),
    );
    return Object.entries(hash)
      .map(([target, text]) => ({ target, by: z.object({ by: z.string() }).parse(JSON.parse(text)).by }))
      .sort((a, b) => (a.target < b.target ? -1 : 1));
  }

  async hold(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const nowMs = this.#clock.now();
    return (await this.ask(z.number(), (r) => run(r, holdScript, name, holder, nowMs, nowMs + ttlMs))) === 1;
  }

  async release(name: string, holder: string): Promise<void> {
    await this.ask(z.unknown(), (redis) => run(redis, releaseScript, name, holder));
  }

  async ping(): Promise<void> {
    await this.ask(z.unknown(), (redis) => redis.ping());
  }

  close(): Promise<void> {
    this.#wakers.clear();
    this.#subscriber?.disconnect();
    this.#redis.disconnect();
    return Promise.resolve();
  }
}

/** Connects within 5 s or rejects with `store_down`; refuses data of another schema with `store_schema`. */
export async function openRedisStore(options: { readonly url: string; readonly clock: Clock }): Promise<Store> {
  const redis = new Redis(options.url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    commandTimeout: 3_000,
    retryStrategy: (times) => Math.min(times * 100, 2_000),
  });
  // Every failed command says so itself; without a listener the event would end the process.
  redis.on('error', () => undefined);
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    throw down(error);
  }
  const store = new RedisStore(redis, options.clock);
  await store.ask(z.unknown(), (r) => r.setnx(`${p}schema`, redisSchemaVersion));
  const found = await store.ask(z.string(), (r) => r.get(`${p}schema`));
  if (found !== redisSchemaVersion) {
    await store.close();
    throw new ReclaimError('store_schema', schemaSentence(found, redisSchemaVersion));
  }
  return store;
}
