/** Every hour: lets go of what is older than the configuration keeps. */
import { z } from 'zod';
import { defineJob } from '../src/queue/define-job.ts';

export const trimEveryMs = 3_600_000;
/** A store that was never trimmed is brought down over several hours rather than in one go. */
const roundsAtMost = 50;

export const trimJob = defineJob({
  name: 'trim',
  payload: z.object({}),
  options: { attempts: 1, mutating: false, concurrency: 1, timeoutMs: 120_000 },
  async run(_payload, { store, clock, config, log }, signal) {
    const { requests, requests_at_most: requestsAtMost, audit } = config.retention;
    const ago = (ms: number) => new Date(clock.now() - ms).toISOString();
    const limits = { requestsBefore: ago(requests), requestsAtMost, auditBefore: ago(audit) };
    const sum = { requests: 0, events: 0 };
    for (let round = 0; round < roundsAtMost && !signal.aborted; round += 1) {
      const gone = await store.trim(limits);
      if (gone.requests === 0 && gone.events === 0) break;
      sum.requests += gone.requests;
      sum.events += gone.events;
    }
    await store.topics.trim(ago(requests));
    if (sum.requests + sum.events > 0) log.info(sum, 'let go of old requests and audit events');
  },
});
