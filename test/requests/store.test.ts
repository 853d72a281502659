import { describe } from 'vitest';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import { openSqlStore } from '../../src/requests/store-sql.ts';
import { openPglitePool } from '../../src/sql/pglite-pool.ts';
import { openPostgresPool } from '../../src/sql/postgres-pool.ts';
import { has, postgresServer, redisServer } from './servers.ts';
import { type Backend, describeStore } from './store.conformance.ts';
import { describeTopics } from './topics.conformance.ts';

function describeAll(name: string, start: () => Promise<Backend>): void {
  describeStore(name, start);
  describeTopics(name, start);
}

describeAll('PGlite', async () => {
  const pool = await openPglitePool('memory://');
  return { open: (clock) => openSqlStore({ pool, clock }), close: () => pool.close() };
});

describe.skipIf(!has('redis-server'))('with redis-server', () => {
  describeAll('Redis', async () => {
    const server = await redisServer();
    return { open: (clock) => openRedisStore({ url: server.url, clock }), close: () => server.remove() };
  });
});

describe.skipIf(!has('postgres'))('with postgres', () => {
  describeAll('Postgres', async () => {
    const server = await postgresServer();
    const { pool, close } = openPostgresPool(server.url);
    return {
      open: (clock) => openSqlStore({ pool, clock }),
      close: async () => {
        await close();
        await server.remove();
      },
    };
  });
});
