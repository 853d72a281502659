/** Reads the memory of one host on its interval. Changes nothing on the box; a reading that fails is followed by the next. */
import { z } from 'zod';
import { watchHost } from '../src/alerts/watcher.ts';
import { defineJob } from '../src/queue/define-job.ts';

export const watchJob = defineJob({
  name: 'watch',
  payload: z.object({ host: z.string() }),
  options: { attempts: 1, mutating: false, concurrency: 16, timeoutMs: 45_000 },
  run: ({ host }, deps, signal) => watchHost(deps, host, signal),
});
