/** The store on SQL: Postgres through node-postgres, or PGlite inside this process. One transaction per call. */
import type { PgPool, PgQueryable } from 'bullmq';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import { chainEvents } from './chain.ts';
import { migrate } from './sql-schema.ts';
import { Sql, sqlNumber } from './sql-base.ts';
import { SqlDeliveries } from './sql-deliveries.ts';
import { SqlTopics } from './sql-topics.ts';
import { SqlUpkeep } from './sql-upkeep.ts';
import { isOpen } from './state.ts';
import type { BackupPart, Change, Store, TrimLimits, WriteResult } from './store.ts';
import { totalsChange } from './totals.ts';
import {
  type AuditEvent,
  type Delivery,
  eventSchema,
  type NewAuditEvent,
  type RequestRecord,
  requestSchema,
} from './types.ts';

const recordRow = z.object({ record: z.string() }).transform((r) => requestSchema.parse(JSON.parse(r.record)));
const eventRow = z.object({ event: z.string() }).transform((r) => eventSchema.parse(JSON.parse(r.event)));
const headRow = z.object({ seq: sqlNumber, hash: z.string() });
export interface SqlStoreOptions {
  readonly pool: PgPool;
  readonly clock: Clock;
  /** Ends what the store stands on, after the store itself let go. */
  readonly closePool?: () => Promise<void>;
}

class SqlStore implements Store {
  readonly #sql: Sql;
  readonly #deliveries: SqlDeliveries;
  readonly #upkeep: SqlUpkeep;
  readonly #clock: Clock;
  readonly topics: SqlTopics;
  readonly #closePool: (() => Promise<void>) | undefined;

  constructor(sql: Sql, options: SqlStoreOptions) {
    this.#sql = sql;
    this.#deliveries = new SqlDeliveries(sql, options.clock);
    this.#upkeep = new SqlUpkeep(sql, options.clock);
    this.#clock = options.clock;
    this.topics = new SqlTopics(sql, this.#deliveries);
    this.#closePool = options.closePool;
  }

  async #append(client: PgQueryable, events: readonly NewAuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    const [head] = await this.#sql.rows(headRow, 'SELECT seq, hash FROM reclaim.chain FOR UPDATE', [], client);
    if (head === undefined)
      throw new ReclaimError('store_schema', 'The audit log has lost its head. Restore the store.');
    const chained = chainEvents(head, events);
    for (const event of chained) {
      const row = [event.seq, event.request, event.host, JSON.stringify(event)];
      await client.query('INSERT INTO reclaim.events VALUES ($1, $2, $3, $4)', row);
    }
    const last = chained.at(-1);
    await client.query('UPDATE reclaim.chain SET seq = $1, hash = $2', [last?.seq, last?.hash]);
  }

  async #current(client: PgQueryable, where: string, value: string): Promise<RequestRecord | null> {
    const rows = await this.#sql.rows(
      recordRow,
      `SELECT record FROM reclaim.requests WHERE ${where} FOR UPDATE`,
      [value],
      client,
    );
    return rows[0] ?? null;
  }

  async #count(client: PgQueryable, previous: RequestRecord | null, change: Partial<Change>): Promise<void> {
    const totals = totalsChange(previous, change.record ?? null, change.events ?? []);
    // Always in the same order, so that two writers never wait for each other.
    const names = Object.keys(totals).sort();
    if (names.length === 0) return;
    const sql = `INSERT INTO reclaim.totals AS t SELECT * FROM unnest($1::text[], $2::bigint[])
      ON CONFLICT (name) DO UPDATE SET count = t.count + excluded.count`;
    await client.query(sql, [names, names.map((name) => totals[name])]);
  }

  async create(change: Change): Promise<WriteResult> {
    const { record } = change;
    return await this.#sql.transaction(async (client) => {
      const row = [
        record.id,
        record.version,
        record.state,
        record.host,
        Date.parse(record.createdAt),
        JSON.stringify(record),
      ];
      const made = await this.#sql.rows(
        z.object({ id: z.string() }),
        'INSERT INTO reclaim.requests VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING id',
        row,
        client,
      );
      if (made.length === 0) {
        const same = await this.#current(client, 'id = $1', record.id);
        if (same !== null) return { ok: false, why: 'exists', current: same };
        const open = `host = $1 AND state IN ('draft', 'pending', 'approved', 'running')`;
        return { ok: false, why: 'host_busy', current: await this.#current(client, open, record.host) };
      }
      await this.#append(client, change.events ?? []);
      await this.#count(client, null, change);
      await this.#deliveries.put(client, change);
      return { ok: true, record };
    });
  }

  async update(change: Change): Promise<WriteResult> {
    const { record } = change;
    return await this.#sql.transaction(async (client) => {
      const current = await this.#current(client, 'id = $1', record.id);
      if (current?.version !== record.version - 1) return { ok: false, why: 'changed', current };
      await client.query('UPDATE reclaim.requests SET version = $2, state = $3, record = $4 WHERE id = $1', [
        record.id,
        record.version,
        record.state,
        JSON.stringify(record),
      ]);
      await this.#append(client, change.events ?? []);
      await this.#count(client, current, change);
      await this.#deliveries.put(client, change);
      return { ok: true, record };
    });
  }

  async get(id: string): Promise<RequestRecord | null> {
    return (await this.#sql.rows(recordRow, 'SELECT record FROM reclaim.requests WHERE id = $1', [id]))[0] ?? null;
  }

  async openFor(host: string): Promise<RequestRecord | null> {
    const rows = await this.#sql.rows(
      recordRow,
      'SELECT record FROM reclaim.requests WHERE host = $1 ORDER BY created_ms DESC',
      [host],
    );
    return rows.find((record) => isOpen(record.state)) ?? null;
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<RequestRecord[]> {
    return await this.#sql.rows(
      recordRow,
      `SELECT record FROM reclaim.requests
       WHERE ($1::text[] IS NULL OR state = ANY($1)) AND ($2::text IS NULL OR host = $2)
       ORDER BY created_ms DESC, id DESC LIMIT $3`,
      [filter.states ?? null, filter.host ?? null, filter.limit],
    );
  }

  async appendEvents(events: readonly NewAuditEvent[]): Promise<void> {
    await this.#sql.transaction(async (client) => {
      await this.#append(client, events);
      if (events.length > 0) await this.#count(client, null, { events });
    });
  }

  async events(filter: Parameters<Store['events']>[0]): Promise<AuditEvent[]> {
    return await this.#sql.rows(
      eventRow,
      `SELECT event FROM reclaim.events
       WHERE ($1::text IS NULL OR request = $1) AND ($2::text IS NULL OR host = $2) AND seq > $3 ORDER BY seq LIMIT $4`,
      [filter.request ?? null, filter.host ?? null, filter.afterSeq ?? 0, filter.limit],
    );
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
    const sql = 'INSERT INTO reclaim.wishes VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING';
    await this.#sql.rows(z.unknown(), sql, [wish.host, wish.bootId, wish.target, wish.by, wish.at]);
  }

  async kept(host: string, bootId: string): Promise<{ target: string; by: string }[]> {
    const sql = 'SELECT target, kept_by AS by FROM reclaim.wishes WHERE host = $1 AND boot_id = $2 ORDER BY target';
    return await this.#sql.rows(z.object({ target: z.string(), by: z.string() }), sql, [host, bootId]);
  }

  async hold(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const nowMs = this.#clock.now();
    const held = await this.#sql.rows(
      z.object({ holder: z.string() }),
      `INSERT INTO reclaim.holds AS h VALUES ($1, $2, $3)
       ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
       WHERE h.holder = excluded.holder OR h.until_ms <= $4 RETURNING holder`,
      [name, holder, nowMs + ttlMs, nowMs],
    );
    return held.length === 1;
  }

  async release(name: string, holder: string): Promise<void> {
    await this.#sql.rows(z.unknown(), 'DELETE FROM reclaim.holds WHERE name = $1 AND holder = $2', [name, holder]);
  }

  async ping(): Promise<void> {
    await this.#sql.rows(z.unknown(), 'SELECT 1 AS one', []);
  }

  async close(): Promise<void> {
    await this.#deliveries.close();
    await this.#closePool?.();
  }
}

/** Brings the tables up (refusing newer ones with `store_schema`) and hands out the store. */
export async function openSqlStore(options: SqlStoreOptions): Promise<Store> {
  const sql = new Sql(options.pool);
  await sql.transaction(migrate);
  return new SqlStore(sql, options);
}
