/**
 * Store and queue, picked together by QUEUE_URL: Redis for production, Postgres, or the embedded database in the data
 * folder. The embedded one has a single owner; other commands reach its store through the owner's socket.
 */
import type { Telemetry } from 'bullmq';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import { ReclaimError } from './errors.ts';
import { openBullQueue } from './queue/bull-queue.ts';
import type { Queue } from './queue/types.ts';
import { takeLock } from './requests/lock.ts';
import { openRedisStore } from './requests/store-redis.ts';
import { connectStore, serveStore, storeSocketPath } from './requests/store-socket.ts';
import { openSqlStore } from './requests/store-sql.ts';
import type { Store } from './requests/store.ts';
import { openPglitePool, type PglitePool } from './sql/pglite-pool.ts';
import { openPostgresPool } from './sql/postgres-pool.ts';

export interface BackendOptions {
  readonly queueUrl: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names of the jobs there are, for what is told of the queue. */
  readonly jobs?: readonly string[];
  readonly telemetry?: Telemetry | undefined;
}

export interface Backend {
  readonly store: Store;
  readonly queue: Queue;
  /** Stops intake, waits for running jobs up to the deadline, then closes everything. */
  close(deadlineMs: number): Promise<void>;
}

type Place =
  | { readonly kind: 'redis'; readonly url: string }
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'pglite'; readonly dir: string };

/** `pglite:DIR` is a folder, `pglite:memory://` a database that ends with the process. */
export function placeOf(queueUrl: string): Place {
  if (/^rediss?:/.test(queueUrl)) return { kind: 'redis', url: queueUrl };
  if (/^postgres(ql)?:/.test(queueUrl)) return { kind: 'postgres', url: queueUrl };
  if (queueUrl.startsWith('pglite:')) return { kind: 'pglite', dir: queueUrl.slice('pglite:'.length) };
  throw new ReclaimError('config_invalid', 'QUEUE_URL begins with redis://, rediss://, postgres:// or pglite:.');
}

/** What serve and demo run on. Rejects with `store_down`, `store_busy`, `store_schema` or `queue_down`. */
export async function openBackend(options: BackendOptions): Promise<Backend> {
  const place = placeOf(options.queueUrl);
  const { clock, log, jobs, telemetry } = options;
  if (place.kind === 'pglite') {
    const { pool, store } = await own(place.dir, clock);
    return backend(store, await openBullQueue({ kind: 'sql', pool }, log, jobs, telemetry));
  }
  if (place.kind === 'redis') {
    const store = await openRedisStore({ url: place.url, clock });
    return backend(store, await openBullQueue(place, log, jobs, telemetry));
  }
  const postgres = openPostgresPool(place.url);
  const store = await openSqlStore({ pool: postgres.pool, clock, closePool: () => postgres.close() });
  return backend(store, await openBullQueue({ kind: 'sql', pool: postgres.pool }, log, jobs, telemetry));
}

function backend(store: Store, queue: Queue): Backend {
  return {
    store,
    queue,
    async close(deadlineMs) {
      await queue.close(deadlineMs);
      await store.close();
    },
  };
}

/** Takes the folder's lock, opens the database and serves its store to other commands; closing the store undoes all that. */
async function own(dir: string, clock: Clock): Promise<{ pool: PglitePool; store: Store }> {
  const inMemory = dir.startsWith('memory:');
  const letGo = inMemory ? () => undefined : takeLock(`${dir}.lock`);
  try {
    const pool = await openPglitePool(dir);
    let server: { close(): Promise<void> } | null = null;
    const closePool = async () => {
      await server?.close();
      await pool.close();
      letGo();
    };
    const store = await openSqlStore({ pool, clock, closePool });
    if (!inMemory) server = await serveStore(store, storeSocketPath(dir));
    return { pool, store };
  } catch (error) {
    letGo();
    throw error;
  }
}

/**
 * The store alone, for commands in a terminal. With the embedded database that is a running serve's, reached through its
 * socket, or the database itself when nothing runs.
 */
export async function openStore({ queueUrl, clock }: Pick<BackendOptions, 'queueUrl' | 'clock'>): Promise<Store> {
  const place = placeOf(queueUrl);
  if (place.kind === 'redis') return await openRedisStore({ url: place.url, clock });
  if (place.kind === 'postgres') {
    const postgres = openPostgresPool(place.url);
    return await openSqlStore({ pool: postgres.pool, clock, closePool: () => postgres.close() });
  }
  const served = place.dir.startsWith('memory:') ? null : await connectStore(storeSocketPath(place.dir));
  return served ?? (await own(place.dir, clock)).store;
}
