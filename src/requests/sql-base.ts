/** How the SQL store talks to its pool: rows checked on the way in, failures said as `store_down`, transactions closed. */
import type { PgPool, PgPoolClient, PgQueryable } from 'bullmq';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';

/** Eight-byte integers come as text. */
export const sqlNumber = z.coerce.number();

const down = (cause: unknown) =>
  new ReclaimError(
    'store_down',
    'The store does not answer, so nothing was recorded or changed. Try again in a minute.',
    {
      cause,
    },
  );

export class Sql {
  readonly pool: PgPool;

  constructor(pool: PgPool) {
    this.pool = pool;
  }

  async rows<T>(
    schema: z.ZodType<T>,
    sql: string,
    params: readonly unknown[],
    on: PgQueryable = this.pool,
  ): Promise<T[]> {
    try {
      const { rows } = await on.query<unknown>(sql, params);
      return rows.map((row) => schema.parse(row));
    } catch (error) {
      throw error instanceof ReclaimError || error instanceof z.ZodError ? error : down(error);
    }
  }

  /** Runs `work` in one transaction; an answer marked `rollback` leaves nothing behind. */
  async transaction<T>(work: (client: PgQueryable) => Promise<T>): Promise<T> {
    let client: PgPoolClient;
    try {
      client = await this.pool.connect();
    } catch (error) {
      throw down(error);
    }
    let broken = false;
    try {
      await client.query('BEGIN');
      const answer = await work(client);
      await client.query('COMMIT');
      return answer;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {
        broken = true;
      });
      throw error instanceof ReclaimError || error instanceof z.ZodError ? error : down(error);
    } finally {
      client.release(broken);
    }
  }
}
