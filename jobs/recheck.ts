/** Measures a box again some minutes after a reclaim, and says in the incident's thread whether it held. */
import { z } from 'zod';
import { attendIncident } from '../src/alerts/attend.ts';
import { checked } from '../src/alerts/incident/state.ts';
import { incidentSettings } from '../src/alerts/settings.ts';
import { changeTopic } from '../src/alerts/topic-changes.ts';
import type { Incident } from '../src/alerts/topics.ts';
import { readSample } from '../src/alerts/read-sample.ts';
import type { Deps } from '../src/deps.ts';
import { asReclaimError } from '../src/errors.ts';
import { defineJob } from '../src/queue/define-job.ts';

export const recheckJob = defineJob({
  name: 'recheck',
  payload: z.object({ id: z.string(), request: z.string(), minutes: z.number() }),
  options: { attempts: 3, mutating: false, concurrency: 8, timeoutMs: 60_000 },
  async run({ id, request, minutes }, deps, signal) {
    const { store, clock, config } = deps;
    const incident = await store.topics.get(id);
    if (incident?.kind !== 'incident' || incident.reclaim?.request !== request) return;
    const check = await measure(deps, incident.host, minutes, signal);
    await changeTopic(store.topics, 'incident', id, (current) =>
      current.reclaim?.request === request ? checked(current, check, incidentSettings(config), clock.now()) : null,
    );
    await attendIncident(deps, id);
  },
});

async function measure(
  deps: Deps,
  host: string,
  minutes: number,
  signal: AbortSignal,
): Promise<Incident['checks'][number]> {
  const at = new Date(deps.clock.now()).toISOString();
  try {
    const sample = await readSample(deps, host, signal);
    const { availableKiB, totalKiB } = sample;
    return { minutes, at, figure: { at, availableKiB, totalKiB } };
  } catch (thrown) {
    return { minutes, at, why: asReclaimError(thrown).userText };
  }
}
