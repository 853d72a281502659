/** Looks at one host of a sweep. `timeoutMs` is the deadline of a host; bounded workers look side by side, so nobody waits for a dead one. */
import { z } from 'zod';
import { sweepHost } from '../src/alerts/sweeps.ts';
import { defineJob } from '../src/queue/define-job.ts';

export const fleetJob = defineJob({
  name: 'fleet',
  payload: z.object({ sweep: z.string(), host: z.string() }),
  options: { attempts: 3, mutating: false, concurrency: 64, timeoutMs: 60_000 },
  run: ({ sweep, host }, deps, signal) => sweepHost(deps, sweep, host, signal),
});
