/** The look into the queue: real BullMQ on a real Redis, asked over HTTP as a browser would. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openBullQueue } from '../../src/queue/bull-queue.ts';
import { defineJob } from '../../src/queue/define-job.ts';
import type { Queue } from '../../src/queue/types.ts';
import { startQueueView, type QueueView } from '../../src/queue/view.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';

const token = 'a-token-of-16-characters';
const options = { host: '127.0.0.1', port: 0, token, jobs: ['look'] };
const job = defineJob({
  name: 'look',
  payload: z.object({ id: z.string() }),
  options: { attempts: 1, mutating: false, concurrency: 1, timeoutMs: 1_000 },
  run: () => Promise.resolve(),
});

describe.skipIf(!has('redis-server'))('the view of the queue', () => {
  let redis: RedisServer, queue: Queue, view: QueueView;
  beforeAll(async () => {
    redis = await redisServer();
    queue = await openBullQueue({ kind: 'redis', url: redis.url }, pino({ level: 'silent' }));
    await queue.enqueue(job, { id: 'r1' }, { id: 'look-r1' });
    view = await startQueueView({ ...options, queueUrl: redis.url });
  });
  afterAll(async () => {
    await view.close();
    await queue.close(1_000);
    await redis.remove();
  });
  const ask = (path: string, authorization?: string, method = 'GET') =>
    fetch(`http://127.0.0.1:${view.port}${path}`, {
      method,
      headers: authorization === undefined ? {} : { authorization },
    });
  const basic = (password: string) => `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}`;

  it.each<[string, string | undefined]>([
    ['nothing', undefined],
    ['another password', basic('a-token-of-17-characters')],
    ['an empty one', basic('')],
    ['the token in another scheme', `Digest ${token}`],
    ['no base64', 'Basic ****'],
  ])('shows nothing to one who brings %s, whatever is asked for', async (_what, authorization) => {
    for (const path of ['/', '/api/queues', '/static/favicon.ico', '/nothing-here']) {
      const answer = await ask(path, authorization);
      expect(answer.status).toBe(401);
      expect(await answer.text()).toMatch(/QUEUE_VIEW_TOKEN/);
    }
  });

  it('shows the page and the jobs to one who has the token', async () => {
    const page = await ask('/', basic(token));
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<title>Reclaim</title>');
    const { queues } = (await (
      await ask('/api/queues?activeQueue=reclaim-look&status=waiting', `Bearer ${token}`)
    ).json()) as {
      queues: { name: string; readOnlyMode: boolean; jobs: { id: string; data: unknown }[] }[];
    };
    expect(queues).toMatchObject([
      { name: 'reclaim-look', readOnlyMode: true, jobs: [{ id: 'look-r1', data: { id: 'r1' } }] },
    ]);
  });

  it.each(['PUT', 'POST', 'PATCH', 'DELETE'])('changes nothing by %s', async (method) => {
    for (const path of [
      '/api/queues/reclaim-look/pause',
      '/api/queues/reclaim-look/empty',
      '/api/queues/reclaim-look/look-r1/clean',
    ]) {
      expect((await ask(path, basic(token), method)).status).toBe(405);
    }
    expect(await queue.depths()).toEqual([]);
    const { queues } = (await (await ask('/api/queues', basic(token))).json()) as {
      queues: { counts: object; isPaused: boolean }[];
    };
    expect(queues).toMatchObject([{ counts: { waiting: 1 }, isPaused: false }]);
  });
});

it.each([
  [
    'without a token',
    { token: undefined, queueUrl: 'redis://127.0.0.1:1' },
    /QUEUE_VIEW_TOKEN is not.*nothing was started/,
  ],
  ['without a Redis', { queueUrl: 'pglite:./store' }, /reads a Redis.*nothing was started/],
])('is not opened %s', async (_what, some, said) => {
  await expect(startQueueView({ ...options, ...some })).rejects.toThrow(said);
});
