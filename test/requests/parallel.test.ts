/** Many people, several processes' worth of services, one request: one run. */
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type RequestService } from '../../src/requests/service.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import type { Store } from '../../src/requests/store.ts';
import { openRedisStore } from '../../src/requests/store-redis.ts';
import { openSqlStore } from '../../src/requests/store-sql.ts';
import { openPglitePool } from '../../src/sql/pglite-pool.ts';
import { policyOf, TestClock, TestDirectory, thoughtOf } from './fixtures.ts';
import { has, redisServer } from './servers.ts';

const clock = new TestClock();
const people = ['UAAA', 'UBBB', 'UCCC', 'UDDD', 'UEEE'];

async function fiftyClicks(stores: readonly Store[]): Promise<void> {
  const services: RequestService[] = stores.map((store) =>
    requestService({
      store,
      clock,
      log: pino({ level: 'silent' }),
      policy: { policy: policyOf({ approvers: people }), policyVersion: 'p1' },
      enqueue: { look: () => Promise.resolve(), run: () => Promise.resolve() },
    }),
  );
  const on = (n: number) => services[n % services.length]!;
  const asked = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      on(n).ask({ host: 'box', requester: { id: 'UANN' }, surface: 'slack', channel: 'C1' }),
    ),
  );
  const ids = new Set(asked.map((a) => a.record.id));
  expect(ids.size).toBe(1);
  expect(asked.filter((a) => !a.existing)).toHaveLength(1);
  const id = [...ids][0]!;
  const foreign = thoughtOf([{ pid: 5, user: 'bob' }]);
  await on(0).looked(id, { thought: foreign, hostKey: 'k' });

  const runs: string[] = [];
  const clicks = Array.from({ length: 50 }, async (_, n) => {
    const decision = {
      id,
      person: { id: people[n % people.length]! },
      surface: 'slack' as const,
      verdict: 'approve' as const,
    };
    const error: unknown = await on(n)
      .decide(decision, new TestDirectory())
      .then(
        () => null,
        (thrown: unknown) => thrown,
      );
    const claimed = await on(n + 1).claim(id, `worker ${n}`);
    if (claimed !== null) runs.push(claimed.run!.id);
    return error;
  });
  const errors = (await Promise.all(clicks)).filter((error) => error !== null);
  expect(runs).toHaveLength(1);
  expect(errors).toHaveLength(48);
  for (const error of errors) {
    expect(error).toMatchObject({ code: 'request_closed', userText: expect.stringMatching(/pproved/) as string });
  }
  const record = await stores[0]!.get(id);
  expect(record).toMatchObject({ state: 'running', run: { id: runs[0] } });
  expect(new Set(record!.votes.map((v) => v.person)).size).toBe(2);
  const what = (await stores[0]!.events({ request: id, limit: 200 })).map((e) => e.what);
  const count = (name: string) => what.filter((w) => w === name).length;
  expect([count('vote'), count('approved'), count('run_started')]).toEqual([1, 1, 1]);
  expect(count('refused') + count('race_lost')).toBe(48);
}

describe('fifty clicks of five people on two gateways', { timeout: 120_000 }, () => {
  it('give one run on PGlite', async () => {
    const pool = await openPglitePool('memory://');
    const stores = [await openSqlStore({ pool, clock }), await openSqlStore({ pool, clock })];
    await fiftyClicks(stores);
    await pool.close();
  });

  it.skipIf(!has('redis-server'))('give one run on Redis', async () => {
    const server = await redisServer();
    const stores = [await openRedisStore({ url: server.url, clock }), await openRedisStore({ url: server.url, clock })];
    try {
      await fiftyClicks(stores);
    } finally {
      for (const store of stores) await store.close();
      await server.remove();
    }
  });
});
