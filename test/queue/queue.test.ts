import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { openBullQueue } from '../../src/queue/bull-queue.ts';
import { defineJob } from '../../src/queue/define-job.ts';
import type { Queue } from '../../src/queue/types.ts';
import { openPglitePool } from '../../src/sql/pglite-pool.ts';
import { openPostgresPool } from '../../src/sql/postgres-pool.ts';
import { freePort, has, postgresServer, type RedisServer, redisServer } from '../requests/servers.ts';
import { depsWith } from './deps.ts';

const log = pino({ level: 'silent' });
const deps = depsWith({});
let serial = 0;

/** A job of its own kind, that notes what it was given and waits at the gate. */
function countingJob(options: { mutating?: boolean; attempts?: number; gate?: Promise<void>; fail?: boolean } = {}) {
  const seen: number[] = [];
  const signals: AbortSignal[] = [];
  const job = defineJob({
    name: `test-${process.pid}-${(serial += 1)}`,
    payload: z.object({ n: z.number() }),
    options: {
      attempts: options.attempts ?? 1,
      mutating: options.mutating ?? false,
      concurrency: 4,
      timeoutMs: 60_000,
    },
    run: async ({ n }, _deps, signal) => {
      seen.push(n);
      signals.push(signal);
      await options.gate;
      if (options.fail === true) throw new Error('it fails');
    },
  });
  return { job, seen, signals };
}

const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 25_000, interval: 20 });

function describeQueue(name: string, start: () => Promise<{ open(): Promise<Queue>; close(): Promise<void> }>): void {
  describe(`the queue on ${name}`, () => {
    let backend: Awaited<ReturnType<typeof start>>;
    let queue: Queue;
    beforeAll(async () => {
      backend = await start();
      queue = await backend.open();
    });
    afterAll(async () => {
      await queue.close(5_000);
      await backend.close();
    });

    it('runs a job once however often its id is added, and again after it ended', async () => {
      let open = () => {};
      const gate = new Promise<void>((resolve) => (open = resolve));
      const { job, seen } = countingJob({ gate });
      await queue.work([job], deps);
      await Promise.all([1, 2, 3, 4].map((n) => queue.enqueue(job, { n }, { id: 'the-one' })));
      await until(() => {
        expect(seen).toHaveLength(1);
      });
      await queue.enqueue(job, { n: 5 }, { id: 'the-one' });
      const other = countingJob();
      await queue.work([other.job], deps);
      await queue.enqueue(other.job, { n: 9 }, { id: 'behind' });
      await until(() => {
        expect(other.seen).toEqual([9]);
      });
      expect(seen).toHaveLength(1);
      open();
      await until(async () => {
        await queue.enqueue(job, { n: 6 }, { id: 'the-one' });
        expect(seen.length).toBeGreaterThan(1);
      });
    });

    it('tries a job that changes boxes once, and a reading one again', async () => {
      const once = countingJob({ mutating: true, fail: true });
      const twice = countingJob({ attempts: 2, fail: true });
      await queue.work([once.job, twice.job], deps);
      await queue.enqueue(once.job, { n: 1 }, { id: 'a' });
      await queue.enqueue(twice.job, { n: 2 }, { id: 'b' });
      await until(() => {
        expect(twice.seen).toEqual([2, 2]);
      });
      expect(once.seen).toEqual([1]);
    });

    it('hands every job a signal, and keeps one schedule however often it is asked for', async () => {
      const { job, seen, signals } = countingJob();
      await queue.work([job], deps);
      for (let n = 0; n < 3; n += 1) await queue.schedule(job, { n: 7 }, { id: 'clock', everyMs: 400 });
      await until(() => {
        expect(seen.length).toBeGreaterThanOrEqual(3);
      });
      expect(signals[0]).toBeInstanceOf(AbortSignal);
    });

    it('refuses payloads and ids it cannot keep', async () => {
      const { job } = countingJob();
      await expect(queue.enqueue(job, { n: 'x' } as never, { id: 'a' })).rejects.toThrow();
      await expect(queue.enqueue(job, { n: 1 }, { id: 'a:b' })).rejects.toThrow('colons');
      await expect(queue.enqueue(job, { n: 1 }, { id: '12' })).rejects.toThrow('digits');
    });

    it('answers a ping', async () => {
      await queue.ping();
    });
  });
}

describeQueue('PGlite', async () => {
  const pool = await openPglitePool('memory://');
  return { open: () => openBullQueue({ kind: 'sql', pool }, log), close: () => pool.close() };
});

describe.skipIf(!has('postgres'))('with postgres', () => {
  describeQueue('Postgres', async () => {
    const server = await postgresServer();
    const postgres = openPostgresPool(server.url);
    return {
      open: () => openBullQueue({ kind: 'sql', pool: postgres.pool }, log),
      close: async () => {
        await postgres.close();
        await server.remove();
      },
    };
  });
});

it('refuses a job that changes boxes and may be tried twice', () => {
  expect(() => countingJob({ mutating: true, attempts: 2 })).toThrow('once');
});

describe.skipIf(!has('redis-server'))('with redis-server', () => {
  describeQueue('Redis', async () => {
    const server = await redisServer();
    return { open: () => openBullQueue({ kind: 'redis', url: server.url }, log), close: () => server.remove() };
  });

  describe('when Redis goes away', () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await redisServer();
    });
    afterAll(() => server.remove());

    it('says queue_down within 2 s, also when it was never there', async () => {
      const nowhere = await openBullQueue({ kind: 'redis', url: `redis://127.0.0.1:${await freePort()}` }, log);
      const { job } = countingJob();
      const before = performance.now();
      await expect(nowhere.enqueue(job, { n: 1 }, { id: 'a' })).rejects.toMatchObject({ code: 'queue_down' });
      await expect(nowhere.ping()).rejects.toMatchObject({ code: 'queue_down' });
      expect(performance.now() - before).toBeLessThan(20_000);
      await nowhere.close(500);
    });

    it('runs what was added during the outage exactly once when Redis is back', async () => {
      const queue = await openBullQueue({ kind: 'redis', url: server.url }, log);
      const { job, seen } = countingJob();
      await queue.work([job], deps);
      await server.stop();
      await expect(queue.enqueue(job, { n: 1 }, { id: 'outage' })).rejects.toMatchObject({ code: 'queue_down' });
      await server.start();
      await until(async () => {
        await queue.enqueue(job, { n: 1 }, { id: 'outage' });
        expect(seen.length).toBeGreaterThan(0);
      });
      expect(seen).toEqual([1]);
      await queue.close(2_000);
    });

    it('lets go in time when Redis is gone at shutdown', async () => {
      const queue = await openBullQueue({ kind: 'redis', url: server.url }, log);
      const { job } = countingJob();
      await queue.work([job], deps);
      await server.stop();
      const before = performance.now();
      await queue.close(500);
      expect(performance.now() - before).toBeLessThan(20_000);
      await server.start();
    });
  });

  it.concurrent.each([
    ['never runs a job that changes boxes again', true, []],
    ['runs a reading job again', false, [1]],
  ])(
    'after kill -9 of its worker it %s',
    async (_title, mutating, expected) => {
      const server = await redisServer();
      const { job, seen } = countingJob({ mutating });
      const program = join(import.meta.dirname, 'worker-process.ts');
      const child = spawn(process.execPath, ['--import', 'tsx', program, server.url, job.name, String(mutating)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const queue = await openBullQueue({ kind: 'redis', url: server.url }, log);
      try {
        let said = '';
        child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
        await until(() => {
          expect(said).toContain('ready');
        });
        await queue.enqueue(job, { n: 1 }, { id: 'lost' });
        await until(() => {
          expect(said).toContain('started');
        });
        child.kill('SIGKILL');
        await once(child, 'exit');
        await queue.work([job], deps);
        // The id is free again only when the stalled job has been dealt with.
        await vi.waitFor(
          async () => {
            await queue.enqueue(job, { n: 2 }, { id: 'lost' });
            expect(seen).toContain(2);
          },
          { timeout: 40_000, interval: 200 },
        );
        expect(seen.filter((n) => n === 1)).toEqual(expected);
      } finally {
        child.kill('SIGKILL');
        await queue.close(2_000);
        await server.remove();
      }
    },
    60_000,
  );
});
