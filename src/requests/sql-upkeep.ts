/** What the SQL store does for those who run it: totals, presence of processes, removal of what is old, backups. */
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { headAfter } from './backup.ts';
import { type Sql, sqlNumber } from './sql-base.ts';
import { openStates } from './state.ts';
import type { BackupPart, TrimLimits, Upkeep } from './store.ts';
import type { Totals } from './totals.ts';
import { eventSchema, type ProcessInfo, processSchema } from './types.ts';

const atOnce = 200;
const dayMs = 86_400_000;
const counted = z.object({ name: z.string(), count: sqlNumber });
const processRow = z.object({ process: z.string() }).transform((r) => processSchema.parse(JSON.parse(r.process)));
const eventRow = z.object({ event: z.string() }).transform((r) => eventSchema.parse(JSON.parse(r.event)));
const headRow = z.object({ seq: sqlNumber, hash: z.string() });

export class SqlUpkeep implements Upkeep {
  readonly #sql: Sql;
  readonly #clock: Clock;

  constructor(sql: Sql, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  async totals(): Promise<Totals> {
    const rows = await this.#sql.rows(counted, 'SELECT name, count FROM reclaim.totals WHERE count <> 0', []);
    return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
  }

  async deployment(): Promise<string> {
    const rows = await this.#sql.rows(z.object({ deployment: z.string() }), 'SELECT deployment FROM reclaim.meta', []);
    return rows[0]?.deployment ?? '';
  }

  async beat(process: ProcessInfo, ttlMs: number): Promise<void> {
    const sql = `INSERT INTO reclaim.processes VALUES ($1, $2, $3)
      ON CONFLICT (instance) DO UPDATE SET until_ms = excluded.until_ms, process = excluded.process`;
    const row = [process.instance, this.#clock.now() + ttlMs, JSON.stringify(process)];
    await this.#sql.rows(z.unknown(), sql, row);
  }

  async leave(instance: string): Promise<void> {
    await this.#sql.rows(z.unknown(), 'DELETE FROM reclaim.processes WHERE instance = $1', [instance]);
  }

  async processes(): Promise<ProcessInfo[]> {
    const nowMs = this.#clock.now();
    await this.#sql.rows(z.unknown(), 'DELETE FROM reclaim.processes WHERE until_ms <= $1', [nowMs]);
    return await this.#sql.rows(processRow, 'SELECT process FROM reclaim.processes ORDER BY instance', []);
  }

  async trim(limits: TrimLimits): Promise<{ requests: number; events: number }> {
    return await this.#sql.transaction(async (client) => {
      const gone = await this.#sql.rows(
        z.object({ id: z.string() }),
        `DELETE FROM reclaim.requests WHERE id IN (
           SELECT id FROM reclaim.requests r
           WHERE NOT state = ANY($1)
             AND (created_ms < $2 OR id IN (SELECT id FROM reclaim.requests ORDER BY created_ms DESC, id DESC OFFSET $3))
             AND NOT EXISTS (SELECT FROM reclaim.deliveries d
               WHERE d.request_id = r.id AND d.revision > d.delivered_revision AND d.given_up IS NULL)
           ORDER BY created_ms LIMIT ${atOnce}) RETURNING id`,
        [openStates, Date.parse(limits.requestsBefore), limits.requestsAtMost],
        client,
      );
      const ids = gone.map(({ id }) => id);
      await client.query('DELETE FROM reclaim.deliveries WHERE request_id = ANY($1)', [ids]);
      await client.query('DELETE FROM reclaim.wishes WHERE kept_at < $1', [limits.auditBefore]);
      await client.query('DELETE FROM reclaim.holds WHERE until_ms < $1', [this.#clock.now() - dayMs]);
      const oldest = await this.#sql.rows(
        eventRow,
        `SELECT event FROM reclaim.events WHERE seq < (SELECT seq FROM reclaim.chain) ORDER BY seq LIMIT ${atOnce}`,
        [],
        client,
      );
      const stays = oldest.findIndex((event) => event.at >= limits.auditBefore);
      const old = stays < 0 ? oldest : oldest.slice(0, stays);
      await client.query("SELECT set_config('reclaim.trimming', 'on', true)");
      await client.query('DELETE FROM reclaim.events WHERE seq <= $1', [old.at(-1)?.seq ?? 0]);
      return { requests: ids.length, events: old.length };
    });
  }

  async restore(part: BackupPart): Promise<void> {
    await this.#sql.transaction(async (client) => {
      const [head] = await this.#sql.rows(headRow, 'SELECT seq, hash FROM reclaim.chain FOR UPDATE', [], client);
      const { to } = headAfter(head ?? { seq: 0, hash: '' }, part);
      for (const record of part.records ?? []) {
        await client.query('INSERT INTO reclaim.requests VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING', [
          record.id,
          record.version,
          record.state,
          record.host,
          Date.parse(record.createdAt),
          JSON.stringify(record),
        ]);
      }
      for (const event of part.events ?? []) {
        const row = [event.seq, event.request, event.host, JSON.stringify(event)];
        await client.query('INSERT INTO reclaim.events VALUES ($1, $2, $3, $4)', row);
      }
      await client.query('UPDATE reclaim.chain SET seq = $1, hash = $2', [to.seq, to.hash]);
      if (part.totals === undefined) return;
      await client.query('DELETE FROM reclaim.totals');
      for (const [name, count] of Object.entries(part.totals)) {
        await client.query('INSERT INTO reclaim.totals VALUES ($1, $2)', [name, count]);
      }
    });
  }
}
