/** Alerts that came in by a webhook: finds their hosts, opens or folds incidents. Changes no box. */
import { receive, receivedSchema } from '../src/alerts/incidents.ts';
import { defineJob } from '../src/queue/define-job.ts';

export const alertJob = defineJob({
  name: 'alert',
  payload: receivedSchema,
  options: { attempts: 5, mutating: false, concurrency: 4, timeoutMs: 60_000 },
  run: (received, deps) => receive(deps, received),
});
