/** Every few seconds: expires what is due, ends lost runs, and puts up again what got lost between store and queue. */
import { z } from 'zod';
import { defineJob } from '../src/queue/define-job.ts';

export const sweepEveryMs = 5_000;

export const sweepJob = defineJob({
  name: 'sweep',
  payload: z.object({}),
  options: { attempts: 1, mutating: false, concurrency: 1, timeoutMs: 60_000 },
  async run(_payload, deps) {
    await deps.requests.sweep();
  },
});
