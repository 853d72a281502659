/** The outbox on SQL: what waits to be shown, who holds it for sending, and the wake-up across processes. */
import type { PgPoolClient, PgQueryable } from 'bullmq';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { type Sql, sqlNumber } from './sql-base.ts';
import type { Store } from './store.ts';
import { type Delivery, deliveryKey, deliverySchema } from './types.ts';

const channelName = 'reclaim_deliveries';
const isoOf = (ms: number | null) => (ms === null ? undefined : new Date(ms).toISOString());
const time = sqlNumber.nullable();
const text = z.string().nullable();
const deliveryRow = z
  .object({
    key: z.string(),
    ord: sqlNumber,
    channel: z.string(),
    request_id: z.string(),
    view: z.string(),
    revision: sqlNumber,
    delivered_revision: sqlNumber,
    message_ts: text,
    attempts: sqlNumber,
    not_before_ms: time,
    claimed_by: text,
    claimed_until_ms: time,
    given_up: text,
    since_ms: sqlNumber,
  })
  .transform((r) => ({
    ord: r.ord,
    sinceMs: r.since_ms,
    delivery: deliverySchema.parse({
      key: r.key,
      channel: r.channel,
      requestId: r.request_id,
      view: r.view,
      revision: r.revision,
      deliveredRevision: r.delivered_revision,
      messageTs: r.message_ts ?? undefined,
      attempts: r.attempts,
      notBefore: isoOf(r.not_before_ms),
      claimedBy: r.claimed_by ?? undefined,
      claimedUntil: isoOf(r.claimed_until_ms),
      givenUp: r.given_up ?? undefined,
    }),
  }));

/** A change of a request or of a topic, as far as people see it. */
interface Shown {
  readonly record: { readonly id: string; readonly channel?: string | null | undefined };
  readonly deliver?: readonly Delivery['view'][];
}

export class SqlDeliveries {
  readonly #sql: Sql;
  readonly #clock: Clock;
  readonly #wakers = new Set<() => void>();
  #listener: Promise<PgPoolClient> | null = null;

  constructor(sql: Sql, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  /** Inside the transaction of the change that causes it. */
  async put(client: PgQueryable, { record, deliver = [] }: Shown): Promise<void> {
    if (record.channel == null || deliver.length === 0) return;
    for (const view of new Set(deliver)) {
      await client.query(
        `INSERT INTO reclaim.deliveries AS d
           (key, channel, request_id, view, revision, delivered_revision, attempts, since_ms)
         VALUES ($1, $2, $3, $4, 1, 0, 0, $5)
         ON CONFLICT (key) DO UPDATE SET revision = d.revision + 1, given_up = NULL,
           since_ms = CASE WHEN d.revision > d.delivered_revision THEN d.since_ms ELSE excluded.since_ms END`,
        [deliveryKey(record.id, view), record.channel, record.id, view, this.#clock.now()],
      );
    }
    await client.query('SELECT pg_notify($1, $2)', [channelName, '']);
  }

  async claim(claimer: string, claimMs: number, limit: number): Promise<Delivery[]> {
    const nowMs = this.#clock.now();
    const rows = await this.#sql.rows(
      deliveryRow,
      `UPDATE reclaim.deliveries SET claimed_by = $1, claimed_until_ms = $2, attempts = attempts + 1
       WHERE key IN (
         SELECT key FROM reclaim.deliveries
         WHERE revision > delivered_revision AND given_up IS NULL
           AND coalesce(not_before_ms, 0) <= $3 AND coalesce(claimed_until_ms, 0) <= $3
         ORDER BY since_ms, ord LIMIT $4 FOR UPDATE SKIP LOCKED)
       RETURNING *`,
      [claimer, nowMs + claimMs, nowMs, limit],
    );
    return rows.sort((a, b) => a.sinceMs - b.sinceMs || a.ord - b.ord).map((row) => row.delivery);
  }

  async settle(...[key, claimer, outcome]: Parameters<Store['settleDelivery']>): Promise<void> {
    const free = `claimed_by = CASE WHEN claimed_by = $2 THEN NULL ELSE claimed_by END,
      claimed_until_ms = CASE WHEN claimed_by = $2 THEN NULL ELSE claimed_until_ms END`;
    // What was delivered is a fact even when the claim ran out meanwhile; the other outcomes are the claimer's alone.
    if ('delivered' in outcome) {
      const sql = `UPDATE reclaim.deliveries SET ${free}, delivered_revision = greatest(delivered_revision, $3),
        message_ts = coalesce($4, message_ts), attempts = 0, not_before_ms = NULL WHERE key = $1`;
      await this.#sql.rows(z.unknown(), sql, [key, claimer, outcome.delivered, outcome.messageTs ?? null]);
    } else if ('retryAt' in outcome) {
      const sql = `UPDATE reclaim.deliveries SET ${free}, not_before_ms = $3 WHERE key = $1 AND claimed_by = $2`;
      await this.#sql.rows(z.unknown(), sql, [key, claimer, Date.parse(outcome.retryAt)]);
    } else {
      const sql = `UPDATE reclaim.deliveries SET ${free}, given_up = $3 WHERE key = $1 AND claimed_by = $2`;
      await this.#sql.rows(z.unknown(), sql, [key, claimer, outcome.givenUp]);
    }
  }

  async get(key: string): Promise<Delivery | null> {
    const rows = await this.#sql.rows(deliveryRow, 'SELECT * FROM reclaim.deliveries WHERE key = $1', [key]);
    return rows[0]?.delivery ?? null;
  }

  async undelivered(): Promise<{ count: number; oldestAt: string | null }> {
    const [row] = await this.#sql.rows(
      z.object({ count: sqlNumber, oldest: time }),
      `SELECT count(*) AS count, min(since_ms) AS oldest FROM reclaim.deliveries
       WHERE revision > delivered_revision AND given_up IS NULL`,
      [],
    );
    return { count: row?.count ?? 0, oldestAt: isoOf(row?.oldest ?? null) ?? null };
  }

  onDelivery(wake: () => void): () => void {
    this.#wakers.add(wake);
    this.#listen();
    return () => this.#wakers.delete(wake);
  }

  /** LISTEN lives on one connection; when that breaks, the next one is opened and everybody is woken once. */
  #listen(): void {
    if (this.#listener !== null) return;
    const wakeAll = () => {
      for (const wake of this.#wakers) wake();
    };
    this.#listener = (async () => {
      const client = await this.#sql.pool.connect();
      client.on('error', () => {
        this.#listener = null;
        client.release(true);
        if (this.#wakers.size > 0) this.#listen();
      });
      client.on('notification', (message) => {
        if (message.channel === channelName) wakeAll();
      });
      await client.query(`LISTEN ${channelName}`);
      wakeAll();
      return client;
    })();
    this.#listener.catch(() => {
      this.#listener = null;
    });
  }

  async close(): Promise<void> {
    this.#wakers.clear();
    const listener = await this.#listener?.catch(() => null);
    this.#listener = null;
    listener?.release(true);
  }
}
