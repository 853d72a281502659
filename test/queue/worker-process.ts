/** A worker process for the queue tests: takes a mutating job, says so, and never ends it. */
import { pino } from 'pino';
import { z } from 'zod';
import { openBullQueue } from '../../src/queue/bull-queue.ts';
import { defineJob } from '../../src/queue/define-job.ts';
import { depsWith } from './deps.ts';

const [url = '', name = '', mutating = ''] = process.argv.slice(2);
const queue = await openBullQueue({ kind: 'redis', url }, pino({ level: 'silent' }));
const job = defineJob({
  name,
  payload: z.object({ n: z.number() }),
  options: { attempts: 1, mutating: mutating === 'true', concurrency: 1, timeoutMs: 60_000 },
  run: async () => {
    process.stdout.write('started\n');
    await new Promise(() => undefined);
  },
});
await queue.work([job], depsWith({}));
process.stdout.write('ready\n');
