/** What is said when Redis does not do what it was asked: only what is known. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ReclaimError } from '../../src/errors.ts';
import type { Store } from '../../src/requests/store.ts';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import { systemClock as clock } from '../../src/system-clock.ts';
import { draftOf } from './fixtures.ts';
import { has, redisServer, type RedisServer } from './servers.ts';

describe.skipIf(!has('redis-server'))('a Redis that', () => {
  let server: RedisServer, store: Store, admin: Redis;
  beforeAll(async () => {
    server = await redisServer();
    store = await openRedisStore({ url: server.url, clock });
    admin = new Redis(server.url);
    admin.on('error', () => undefined);
  }, 30_000);
  afterAll(async () => {
    admin.disconnect();
    await store.close();
    await server.remove();
  });

  const record = (id: string) => ({ ...draftOf({}).record, id, host: `box-${id}` });
  const said = (id: string) =>
    store.create({ record: record(id), deliver: ['card'] }).then(
      () => 'written',
      (error: unknown) => (error instanceof ReclaimError ? error.userText : String(error)),
    );

  it('is full is said to be full, and nothing was written', async () => {
    await admin.config('SET', 'maxmemory', '1000');
    expect(await said('full')).toMatch(/^Redis is full .* nothing was recorded/);
    await admin.config('SET', 'maxmemory', '0');
    expect(await store.get('full')).toBeNull();
  });

  it('answers too late may have written it, and nobody is told that it did not', async () => {
    await admin.call('CLIENT', 'PAUSE', '3500', 'ALL');
    expect(await said('late')).toMatch(/not certain whether this was recorded/);
    await expect.poll(() => store.get('late'), { timeout: 10_000 }).toMatchObject({ id: 'late' });
  });

  it('is gone was not asked at all', async () => {
    await server.stop();
    await expect.poll(() => said('gone'), { timeout: 10_000 }).toMatch(/does not answer, so nothing was recorded/);
  });
});
