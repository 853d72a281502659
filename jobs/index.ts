/** The jobs a worker runs, and the ids that make each of them single. */
import type { Queue } from '../src/queue/types.ts';
import type { RequestServiceOptions } from '../src/requests/service-impl.ts';
import { lookJob } from './look.ts';
import { runJob } from './run.ts';
import { sweepEveryMs, sweepJob } from './sweep.ts';
import { trimEveryMs, trimJob } from './trim.ts';

export const jobs = [lookJob, runJob, sweepJob, trimJob] as const;

/** How the request service puts its jobs up: the id is the request's, so a job is there once however often it is put up. */
export function requestJobs(queue: Queue): RequestServiceOptions['enqueue'] {
  return {
    look: (requestId) => queue.enqueue(lookJob, { requestId }, { id: `look-${requestId}` }),
    run: (requestId) => queue.enqueue(runJob, { requestId }, { id: `run-${requestId}` }),
  };
}

/** The standing schedules; every worker asks for them at start, and there is one of each. */
export async function scheduleJobs(queue: Queue): Promise<void> {
  await queue.schedule(sweepJob, {}, { id: 'sweep', everyMs: sweepEveryMs });
  await queue.schedule(trimJob, {}, { id: 'trim', everyMs: trimEveryMs });
}
