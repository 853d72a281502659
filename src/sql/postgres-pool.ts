/** A pool on a Postgres server, shared by store and queue; `search_path` is BullMQ's schema, the store names its own. */
import { EventEmitter } from 'node:events';
import { PostgresConnection, type PgPool } from 'bullmq';

/** Room for one LISTEN connection per worker and for the store's, beside the short queries. */
const connections = 20;

export function openPostgresPool(url: string): { readonly pool: PgPool; readonly close: () => Promise<void> } {
  const connection = new PostgresConnection({
    connectionString: url,
    schema: 'bullmq',
    max: connections,
    keepAlive: true,
    connectionTimeoutMillis: 3_000,
    query_timeout: 10_000,
  });
  // Broken idle connections are replaced by the pool; each query says itself when it failed.
  connection.on('error', () => undefined);
  // Every queue and worker listens to it.
  if (connection.pool instanceof EventEmitter) connection.pool.setMaxListeners(0);
  return { pool: connection.pool, close: () => connection.close() };
}
