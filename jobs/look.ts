/** Reads one box for a request and brings the report up. Changes nothing on the box, so it may run again. */
import { z } from 'zod';
import { attendIncident } from '../src/alerts/attend.ts';
import type { Deps } from '../src/deps.ts';
import { asReclaimError } from '../src/errors.ts';
import { look, thinkOptions } from '../src/look.ts';
import { defineJob } from '../src/queue/define-job.ts';
import type { RequestRecord } from '../src/requests/types.ts';

export const lookJob = defineJob({
  name: 'look',
  payload: z.object({ requestId: z.string() }),
  options: { attempts: 3, mutating: false, concurrency: 8, timeoutMs: 180_000 },
  async run({ requestId }, deps, signal) {
    const record = await deps.store.get(requestId);
    if (record?.state !== 'draft') return;
    let found;
    try {
      const box = await deps.openBox(record.host, { signal });
      try {
        // Wishes of owners are bound to a boot, which only the look tells; the service takes them out of the plan.
        const { thought } = await look(box, thinkOptions(deps.config.policy, []));
        found = { thought, hostKey: box.hostKey };
      } finally {
        await box.close();
      }
    } catch (thrown) {
      const error = asReclaimError(thrown);
      deps.log.warn({ err: thrown, request: requestId, host: record.host }, 'the look failed');
      await deps.requests.lookFailed(requestId, error.code, error.userText);
      await attend(deps, record);
      return;
    }
    await deps.requests.looked(requestId, found);
    await attend(deps, record);
  },
});

/** Shows it on the incident at once; should that fail, the reconciler does it. */
async function attend(deps: Deps, { topic, id }: RequestRecord): Promise<void> {
  if (topic === undefined) return;
  await attendIncident(deps, topic).catch((error: unknown) => {
    deps.log.warn({ err: error, request: id }, 'the incident could not be brought up to date');
  });
}
