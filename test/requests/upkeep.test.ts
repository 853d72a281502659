import type { PgPool, PgPoolClient } from 'bullmq';
import { Redis } from 'ioredis';
import { describe } from 'vitest';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import { openSqlStore } from '../../src/requests/store-sql.ts';
import { openPglitePool } from '../../src/sql/pglite-pool.ts';
import { openPostgresPool } from '../../src/sql/postgres-pool.ts';
import { has, postgresServer, redisServer } from './servers.ts';
import { describeUpkeep, type UpkeepBackend } from './upkeep.conformance.ts';

/** The same database with the store's schema under another name, so that one server holds many stores. */
function renamed(pool: PgPool, schema: string): PgPool {
  const say = (text: string) => text.replace(/\breclaim\b/g, schema);
  const over = <T extends Pick<PgPool, 'query'>>(to: T): T =>
    new Proxy(to, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (name === 'query') return (text: string, params?: readonly unknown[]) => target.query(say(text), params);
        if (name === 'connect') return async () => over<PgPoolClient>(await pool.connect());
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
      },
    });
  return over(pool);
}

/** What the second version brought, taken away again. */
const backToFirst = `
  DROP TABLE reclaim.totals, reclaim.processes;
  ALTER TABLE reclaim.meta DROP COLUMN deployment;
  UPDATE reclaim.meta SET version = 1;
  CREATE OR REPLACE FUNCTION reclaim.append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
`;

function sqlBackend(pool: PgPool, close: () => Promise<void>): UpkeepBackend {
  const named = (name: string) => renamed(pool, `reclaim_${name.replaceAll('-', '_')}`);
  return {
    open: (clock, name) => openSqlStore({ pool: named(name), clock }),
    setVersion: async (name, version) => {
      await named(name).query(version === 1 ? backToFirst : `UPDATE reclaim.meta SET version = ${version}`);
    },
    close,
  };
}

describeUpkeep('PGlite', async () => {
  const pool = await openPglitePool('memory://');
  return sqlBackend(pool, () => pool.close());
});

describe.skipIf(!has('redis-server'))('with redis-server', () => {
  describeUpkeep('Redis', async () => {
    const server = await redisServer();
    const numbers = new Map<string, number>();
    const urlOf = (name: string) => {
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      return `${server.url}/${numbers.get(name)!}`;
    };
    return {
      open: (clock, name) => openRedisStore({ url: urlOf(name), clock }),
      setVersion: async (name, version) => {
        const redis = new Redis(urlOf(name));
        if (version === 1) await redis.del('{reclaim}:totals');
        await redis.set('{reclaim}:schema', String(version));
        await redis.quit();
      },
      close: () => server.remove(),
    };
  });
});

describe.skipIf(!has('postgres'))('with postgres', () => {
  describeUpkeep('Postgres', async () => {
    const server = await postgresServer();
    const { pool, close } = openPostgresPool(server.url);
    return sqlBackend(pool, async () => {
      await close();
      await server.remove();
    });
  });
});
