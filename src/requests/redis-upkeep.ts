/** What the Redis store does for those who run it: totals, presence of processes, removal of what is old, backups. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { backupInvalid, headAfter } from './backup.ts';
import { emptyChain } from './chain.ts';
import { p, type RedisLink } from './redis-link.ts';
import { hashOf } from './redis-rows.ts';
import { forgetEventsScript, forgetScript, restoreScript } from './redis-scripts.ts';
import type { BackupPart, TrimLimits, Upkeep } from './store.ts';
import type { Totals } from './totals.ts';
import { eventSchema, type ProcessInfo, processSchema } from './types.ts';

const strings = z.array(z.string());
const nullable = z.array(z.string().nullable());
const hash = z.record(z.string(), z.string());
const atOnce = 200;
const beatSchema = z.object({ until: z.number(), process: processSchema });

export class RedisUpkeep implements Upkeep {
  readonly #link: RedisLink;
  readonly #clock: Clock;

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  async totals(): Promise<Totals> {
    const found = await this.#link.ask(hash, (r) => r.hgetall(`${p}totals`));
    const counted = Object.entries(found).map(([name, count]) => [name, Number(count)] as const);
    return Object.fromEntries(counted.filter(([, count]) => count !== 0));
  }

  async deployment(): Promise<string> {
    await this.#link.ask(z.unknown(), (r) => r.setnx(`${p}deployment`, randomBytes(8).toString('hex')));
    return await this.#link.ask(z.string(), (r) => r.get(`${p}deployment`));
  }

  async beat(process: ProcessInfo, ttlMs: number): Promise<void> {
    const line = JSON.stringify({ until: this.#clock.now() + ttlMs, process });
    await this.#link.ask(z.unknown(), (r) => r.hset(`${p}processes`, process.instance, line));
  }

  async leave(instance: string): Promise<void> {
    await this.#link.ask(z.unknown(), (r) => r.hdel(`${p}processes`, instance));
  }

  async processes(): Promise<ProcessInfo[]> {
    const lines = await this.#link.ask(strings, (r) => r.hvals(`${p}processes`));
    const found = lines.map((line) => beatSchema.parse(JSON.parse(line)));
    const nowMs = this.#clock.now();
    const over = found.filter(({ until }) => until <= nowMs).map(({ process }) => process.instance);
    if (over.length > 0) await this.#link.ask(z.unknown(), (r) => r.hdel(`${p}processes`, ...over));
    return found
      .flatMap(({ until, process }) => (until > nowMs ? [process] : []))
      .sort((a, b) => (a.instance < b.instance ? -1 : 1));
  }

  async trim(limits: TrimLimits): Promise<{ requests: number; events: number }> {
    const key = `${p}requests`;
    const count = await this.#link.ask(z.number(), (r) => r.zcard(key));
    const tooMany = Math.min(atOnce, count - limits.requestsAtMost);
    const surplus = tooMany > 0 ? await this.#link.ask(strings, (r) => r.zrange(key, '0', String(tooMany - 1))) : [];
    const before = `(${Date.parse(limits.requestsBefore)}`;
    const old = await this.#link.ask(strings, (r) => r.zrangebyscore(key, '-inf', before, 'LIMIT', 0, atOnce));
    let requests = 0;
    for (const id of new Set([...surplus, ...old])) requests += await this.#link.run(z.number(), forgetScript, id);
    return { requests, events: await this.#trimEvents(limits.auditBefore) };
  }

  async #trimEvents(before: string): Promise<number> {
    const [head, first] = await this.#link.ask(nullable, (r) => r.hmget(`${p}chain`, 'seq', 'first'));
    const from = Number(first ?? 1);
    // The newest event stays, so that there is always one to show what the chain goes on from.
    const count = Math.min(atOnce, Number(head ?? 0) - from);
    if (count <= 0) return 0;
    const seqs = Array.from({ length: count }, (_, n) => String(from + n));
    const lines = await this.#link.ask(nullable, (r) => r.hmget(`${p}events`, ...seqs));
    const old: (string | number)[] = [];
    for (const line of lines) {
      if (line === null) continue;
      const event = eventSchema.parse(JSON.parse(line));
      if (event.at >= before) break;
      old.push(event.seq, event.request, event.host);
    }
    return old.length === 0 ? 0 : await this.#link.run(z.number(), forgetEventsScript, ...old);
  }

  async restore(part: BackupPart): Promise<void> {
    const { records = [], events = [], totals } = part;
    const [seq, last] = await this.#link.ask(nullable, (r) => r.hmget(`${p}chain`, 'seq', 'hash'));
    const head = seq == null || last == null ? emptyChain : { seq: Number(seq), hash: last };
    const { from, to } = headAfter(head, part);
    const said = await this.#link.run(
      z.number(),
      restoreScript,
      records.length,
      ...records.flatMap((r) => [r.id, r.version, r.state, r.host, JSON.stringify(r), Date.parse(r.createdAt)]),
      ...[from.seq, from.hash, to.seq, to.hash, events.length],
      ...events.flatMap((e) => [e.seq, e.request, e.host, JSON.stringify(e)]),
    );
    if (said === 0) throw backupInvalid('Somebody else writes to this store at the same time.');
    if (totals === undefined) return;
    const key = `${p}totals`;
    await this.#link.ask(z.unknown(), (r) => r.multi().del(key).hset(key, hashOf(totals)).exec());
  }
}
