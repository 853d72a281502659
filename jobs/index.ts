/** The jobs a worker runs, and the ids that make each of them single. */
import type { AlertJobs } from '../src/alerts/jobs.ts';
import type { Config } from '../src/config/schema.ts';
import type { Queue } from '../src/queue/types.ts';
import type { RequestServiceOptions } from '../src/requests/service-impl.ts';
import { alertJob } from './alert.ts';
import { fleetJob } from './fleet.ts';
import { incidentsEveryMs, incidentsJob } from './incidents.ts';
import { lookJob } from './look.ts';
import { recheckJob } from './recheck.ts';
import { runJob } from './run.ts';
import { sweepEveryMs, sweepJob } from './sweep.ts';
import { trimEveryMs, trimJob } from './trim.ts';
import { watchJob } from './watch.ts';

export const jobs = [
  lookJob,
  runJob,
  sweepJob,
  trimJob,
  alertJob,
  incidentsJob,
  recheckJob,
  watchJob,
  fleetJob,
] as const;

/** How the request service puts its jobs up: the id is the request's, so a job is there once however often it is put up. */
export function requestJobs(queue: Queue): RequestServiceOptions['enqueue'] {
  return {
    look: (requestId) => queue.enqueue(lookJob, { requestId }, { id: `look-${requestId}` }),
    run: (requestId) => queue.enqueue(runJob, { requestId }, { id: `run-${requestId}` }),
  };
}

/** How the alert side puts its jobs up. */
export function alertJobs(queue: Queue): AlertJobs {
  return {
    received: (received, id) => queue.enqueue(alertJob, received, { id }),
    recheck: (check, delayMs) =>
      queue.enqueue(recheckJob, check, {
        id: `recheck-${check.id}-${check.request}-${Math.round(check.minutes * 60)}s`,
        delayMs,
      }),
    sweepHost: (sweep, host) => queue.enqueue(fleetJob, { sweep, host }, { id: `fleet-${sweep}-${host}` }),
  };
}

/** The standing schedules; every worker asks for them at start and after a reload, and there is one of each. */
export async function scheduleJobs(queue: Queue, { alerts, hosts }: Pick<Config, 'alerts' | 'hosts'>): Promise<void> {
  await queue.schedule(sweepJob, {}, { id: 'sweep', everyMs: sweepEveryMs });
  await queue.schedule(trimJob, {}, { id: 'trim', everyMs: trimEveryMs });
  await queue.schedule(incidentsJob, {}, { id: 'incidents', everyMs: incidentsEveryMs });
  const watched = new Map([...hosts.keys()].map((host) => [`watch-${host}`, host]));
  // Hosts that are gone, or all of them when nothing is watched any more, lose their schedule.
  await queue.unschedule(watchJob, (id) => alerts.watch === undefined || !watched.has(id));
  if (alerts.watch === undefined) return;
  for (const [id, host] of watched) await queue.schedule(watchJob, { host }, { id, everyMs: alerts.watch.every });
}
