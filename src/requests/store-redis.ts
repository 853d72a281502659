/**
 * The store on Redis: one hash per request, one script per atomic write. The audit chain is hashed here and appended by
 * compare-and-swap on its head, so that two writers can never fork it.
 */
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { type ChainHead, chainEvents, emptyChain } from './chain.ts';
import { RedisDeliveries } from './redis-deliveries.ts';
import { connectRedis, p, type RedisLink } from './redis-link.ts';
import { checkRedisSchema } from './redis-schema.ts';
import { holdScript, releaseScript, writeScript } from './redis-scripts.ts';
import { RedisTopics } from './redis-topics.ts';
import { RedisUpkeep } from './redis-upkeep.ts';
import { isOpen } from './state.ts';
import type { BackupPart, Change, Store, TrimLimits, WriteResult } from './store.ts';
import { totalsChange } from './totals.ts';
import type { AuditEvent, Delivery, NewAuditEvent, RequestRecord } from './types.ts';
import { eventSchema, requestSchema } from './types.ts';

const pageSize = 100;
/** Longer than any boot a wish could still matter for. */
const wishesKeptMs = 400 * 86_400_000;

const strings = z.array(z.string());
const nullable = z.array(z.string().nullable());
const answerSchema = z.tuple([z.string()]).rest(z.string());
const recordOf = (text: string | null | undefined): RequestRecord | null =>
  text === null || text === undefined || text === '' ? null : requestSchema.parse(JSON.parse(text));

class RedisStore implements Store {
  readonly #link: RedisLink;
  readonly #clock: Clock;
  readonly #deliveries: RedisDeliveries;
  readonly #upkeep: RedisUpkeep;
  readonly topics: RedisTopics;
  #head: ChainHead = emptyChain;
  /** Writers of one process line up, so that they do not move the chain's head from under each other. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
    this.#deliveries = new RedisDeliveries(link, clock);
    this.#upkeep = new RedisUpkeep(link, clock);
    this.topics = new RedisTopics(link, clock);
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
    // Only the writer of the next version gets through, so what stands now is what this record follows.
    const previous = mode === 'update' && record !== undefined ? await this.get(record.id) : null;
    const totals = Object.entries(totalsChange(previous, record ?? null, events)).flat();
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
        totals.length / 2,
        ...totals,
        ...show,
      ];
      const [said, ...rest] = await this.#link.run(answerSchema, writeScript, ...args);
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
    return recordOf(await this.#link.ask(z.string().nullable(), (redis) => redis.hget(`${p}request:${id}`, 'record')));
  }

  async openFor(host: string): Promise<RequestRecord | null> {
    const id = await this.#link.ask(z.string().nullable(), (redis) => redis.hget(`${p}open`, host));
    return id === null ? null : await this.get(id);
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<RequestRecord[]> {
    const { states, host, limit } = filter;
    const wanted = (record: RequestRecord | null): record is RequestRecord =>
      record !== null &&
      (states === undefined || states.includes(record.state)) &&
      (host === undefined || record.host === host);
    if (states?.every(isOpen) === true) {
      const ids = await this.#link.ask(strings, (redis) => redis.hvals(`${p}open`));
      const records = await Promise.all(ids.map((id) => this.get(id)));
      return records
        .filter(wanted)
        .sort((a, b) => b.createdAt.localeCompare(a.createdAt))
        .slice(0, limit);
    }
    const key = host === undefined ? `${p}requests` : `${p}requests:${host}`;
    const found: RequestRecord[] = [];
    for (let from = 0; found.length < limit; from += pageSize) {
      const ids = await this.#link.ask(strings, (redis) => redis.zrevrange(key, from, from + pageSize - 1));
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
      const lines = await this.#link.ask(nullable, (redis) => redis.hmget(`${p}events`, ...page));
      const events = lines.flatMap((line) => (line === null ? [] : [eventSchema.parse(JSON.parse(line))]));
      found.push(...events.filter((e) => filter.host === undefined || e.host === filter.host));
    }
    return found.slice(0, filter.limit);
  }

  async #seqs(filter: Parameters<Store['events']>[0], after: number): Promise<string[]> {
    const { request, host, limit } = filter;
    if (request !== undefined)
      return await this.#link.ask(strings, (r) => r.lrange(`${p}events:request:${request}`, 0, -1));
    if (host !== undefined) return await this.#link.ask(strings, (r) => r.lrange(`${p}events:host:${host}`, 0, -1));
    const [head, first] = await this.#link.ask(nullable, (r) => r.hmget(`${p}chain`, 'seq', 'first'));
    const from = Math.max(after + 1, Number(first ?? 1));
    const count = Math.max(0, Math.min(limit, Number(head ?? 0) - from + 1));
    return Array.from({ length: count }, (_, n) => String(from + n));
  }

  claimDeliveries(claimer: string, claimMs: number, limit: number): Promise<Delivery[]> {
    return this.#deliveries.claim(claimer, claimMs, limit);
  }

  settleDelivery(...settled: Parameters<Store['settleDelivery']>): Promise<void> {
    return this.#deliveries.settle(...settled);
  }

  delivery(key: string): Promise<Delivery | null> {
    return this.#deliveries.get(key);
  }

  undelivered(): Promise<{ count: number; oldestAt: string | null }> {
    return this.#deliveries.undelivered();
  }

  onDelivery(wake: () => void): () => void {
    return this.#deliveries.onDelivery(wake);
  }

  totals = () => this.#upkeep.totals();
  deployment = () => this.#upkeep.deployment();
  beat = (...args: Parameters<Store['beat']>) => this.#upkeep.beat(...args);
  leave = (instance: string) => this.#upkeep.leave(instance);
  processes = () => this.#upkeep.processes();
  trim = (limits: TrimLimits) => this.#upkeep.trim(limits);
  restore = (part: BackupPart) => this.#upkeep.restore(part);

  async keep(wish: Parameters<Store['keep']>[0]): Promise<void> {
    const key = `${p}kept:${wish.host}:${wish.bootId}`;
    const said = JSON.stringify({ by: wish.by, at: wish.at });
    await this.#link.ask(z.unknown(), (r) =>
      r.multi().hsetnx(key, wish.target, said).pexpire(key, wishesKeptMs).exec(),
    );
  }

  async kept(host: string, bootId: string): Promise<{ target: string; by: string }[]> {
    const hash = await this.#link.ask(z.record(z.string(), z.string()), (redis) =>
      redis.hgetall(`${p}kept:${host}:${bootId}`),
    );
    return Object.entries(hash)
      .map(([target, text]) => ({ target, by: z.object({ by: z.string() }).parse(JSON.parse(text)).by }))
      .sort((a, b) => (a.target < b.target ? -1 : 1));
  }

  async hold(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const nowMs = this.#clock.now();
    return (await this.#link.run(z.number(), holdScript, name, holder, nowMs, nowMs + ttlMs)) === 1;
  }

  async release(name: string, holder: string): Promise<void> {
    await this.#link.run(z.unknown(), releaseScript, name, holder);
  }

  async ping(): Promise<void> {
    await this.#link.ask(z.unknown(), (redis) => redis.ping());
  }

  close(): Promise<void> {
    this.#deliveries.close();
    this.#link.redis.disconnect();
    return Promise.resolve();
  }
}

/** Connects within 5 s or rejects with `store_down`; refuses data of a newer release with `store_schema`. */
export async function openRedisStore(options: { readonly url: string; readonly clock: Clock }): Promise<Store> {
  const link = await connectRedis(options.url);
  try {
    await checkRedisSchema(link, options.clock);
  } catch (error) {
    link.redis.disconnect();
    throw error;
  }
  return new RedisStore(link, options.clock);
}
