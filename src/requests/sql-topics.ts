/** Topics, rows of sweeps and readings on SQL. */
import type { PgQueryable } from 'bullmq';
import { z } from 'zod';
import { type Sample, sampleSchema, samplesKept, samplesKeptMs } from '../alerts/watch/sample.ts';
import {
  rootViewOf,
  type SweepRow,
  sweepRowSchema,
  type Topic,
  type TopicKind,
  topicSchema,
} from '../alerts/topics.ts';
import type { Sql } from './sql-base.ts';
import type { SqlDeliveries } from './sql-deliveries.ts';
import type { TopicChange, TopicResult, TopicStore } from './topic-store.ts';

const topicRow = z.object({ topic: z.string() }).transform((r): Topic => topicSchema.parse(JSON.parse(r.topic)));
const bodyRow = z.object({ body: z.string() }).transform((r) => sweepRowSchema.parse(JSON.parse(r.body)));
const sampleRow = z.object({ sample: z.string() }).transform((r) => sampleSchema.parse(JSON.parse(r.sample)));
const idRow = z.object({ id: z.string() });
const trimmedAtOnce = 500;

export class SqlTopics implements TopicStore {
  readonly #sql: Sql;
  readonly #deliveries: SqlDeliveries;

  constructor(sql: Sql, deliveries: SqlDeliveries) {
    this.#sql = sql;
    this.#deliveries = deliveries;
  }

  async #current(client: PgQueryable, where: string, value: string | null): Promise<Topic | null> {
    const sql = `SELECT topic FROM reclaim.topics WHERE ${where} = $1 FOR UPDATE`;
    return (await this.#sql.rows(topicRow, sql, [value], client))[0] ?? null;
  }

  async create({ topic, deliver = [] }: TopicChange): Promise<TopicResult> {
    const times = [Date.parse(topic.createdAt), Date.parse(topic.updatedAt)];
    const row = [topic.id, topic.kind, topic.version, topic.slot, ...times, JSON.stringify(topic)];
    return await this.#sql.transaction(async (client): Promise<TopicResult> => {
      const sql = 'INSERT INTO reclaim.topics VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING id';
      const made = await this.#sql.rows(idRow, sql, row, client);
      if (made.length === 0) {
        const same = await this.#current(client, 'id', topic.id);
        if (same !== null) return { ok: false, why: 'exists', current: same };
        return { ok: false, why: 'slot_taken', current: await this.#current(client, 'slot', topic.slot) };
      }
      await this.#deliveries.put(client, { record: topic, deliver });
      return { ok: true, topic };
    });
  }

  async update({ topic, deliver = [] }: TopicChange): Promise<TopicResult> {
    return await this.#sql.transaction(async (client): Promise<TopicResult> => {
      const current = await this.#current(client, 'id', topic.id);
      if (current?.version !== topic.version - 1) return { ok: false, why: 'changed', current };
      await client.query(
        'UPDATE reclaim.topics SET version = $2, slot = $3, updated_ms = $4, topic = $5 WHERE id = $1',
        [topic.id, topic.version, topic.slot, Date.parse(topic.updatedAt), JSON.stringify(topic)],
      );
      await this.#deliveries.put(client, { record: topic, deliver });
      return { ok: true, topic };
    });
  }

  async get(id: string): Promise<Topic | null> {
    return (await this.#sql.rows(topicRow, 'SELECT topic FROM reclaim.topics WHERE id = $1', [id]))[0] ?? null;
  }

  async inSlot(slot: string): Promise<Topic | null> {
    return (await this.#sql.rows(topicRow, 'SELECT topic FROM reclaim.topics WHERE slot = $1', [slot]))[0] ?? null;
  }

  async live(kind: TopicKind): Promise<Topic[]> {
    const sql = 'SELECT topic FROM reclaim.topics WHERE kind = $1 AND slot IS NOT NULL ORDER BY created_ms, id';
    return await this.#sql.rows(topicRow, sql, [kind]);
  }

  async putRow(sweep: { id: string; channel: string | null }, row: SweepRow): Promise<void> {
    await this.#sql.transaction(async (client) => {
      const sql = `INSERT INTO reclaim.rows VALUES ($1, $2, $3)
        ON CONFLICT (topic, host) DO UPDATE SET body = excluded.body`;
      await client.query(sql, [sweep.id, row.host, JSON.stringify(row)]);
      const root = rootViewOf('sweep');
      await this.#deliveries.put(client, { record: sweep, deliver: root === null ? [] : [root] });
    });
  }

  async rows(sweepId: string): Promise<SweepRow[]> {
    return await this.#sql.rows(bodyRow, 'SELECT body FROM reclaim.rows WHERE topic = $1 ORDER BY host', [sweepId]);
  }

  async addSample(host: string, sample: Sample): Promise<void> {
    await this.#sql.transaction(async (client) => {
      const row = [host, sample.at, JSON.stringify(sample)];
      await client.query('INSERT INTO reclaim.samples VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', row);
      const sql = `DELETE FROM reclaim.samples WHERE host = $1 AND (at_ms < $2 OR at_ms <= (
        SELECT at_ms FROM reclaim.samples WHERE host = $1 ORDER BY at_ms DESC OFFSET $3 LIMIT 1))`;
      await client.query(sql, [host, sample.at - samplesKeptMs, samplesKept]);
    });
  }

  async samples(host: string, sinceMs: number): Promise<Sample[]> {
    const sql = 'SELECT sample FROM reclaim.samples WHERE host = $1 AND at_ms >= $2 ORDER BY at_ms';
    return await this.#sql.rows(sampleRow, sql, [host, sinceMs]);
  }

  async trim(before: string): Promise<number> {
    const ms = Date.parse(before);
    return await this.#sql.transaction(async (client) => {
      const over = await this.#sql.rows(
        idRow,
        `SELECT id FROM reclaim.topics t WHERE slot IS NULL AND updated_ms < $1 AND NOT EXISTS (
           SELECT 1 FROM reclaim.deliveries d
           WHERE d.request_id = t.id AND d.revision > d.delivered_revision AND d.given_up IS NULL)
         ORDER BY updated_ms LIMIT $2`,
        [ms, trimmedAtOnce],
        client,
      );
      const ids = over.map((row) => row.id);
      await client.query('DELETE FROM reclaim.topics WHERE id = ANY($1)', [ids]);
      await client.query('DELETE FROM reclaim.rows WHERE topic = ANY($1)', [ids]);
      await client.query('DELETE FROM reclaim.deliveries WHERE request_id = ANY($1)', [ids]);
      await client.query('DELETE FROM reclaim.samples WHERE at_ms < $1', [ms]);
      return ids.length;
    });
  }
}
