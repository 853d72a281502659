/**
 * Every few seconds: brings incidents up to date with what people, runs and clocks did, ends silences and sweeps, and puts
 * up again what got lost between store and queue.
 */
import { z } from 'zod';
import { attendIncident } from '../src/alerts/attend.ts';
import { forgetQuestions } from '../src/alerts/questions.ts';
import { endDueSilences } from '../src/alerts/silences.ts';
import { attendSweeps } from '../src/alerts/sweeps.ts';
import { liveTopics } from '../src/alerts/topic-changes.ts';
import { defineJob } from '../src/queue/define-job.ts';

export const incidentsEveryMs = 3_000;

export const incidentsJob = defineJob({
  name: 'incidents',
  payload: z.object({}),
  options: { attempts: 1, mutating: false, concurrency: 1, timeoutMs: 60_000 },
  async run(_payload, deps) {
    const each = async (what: string, work: () => Promise<unknown>) => {
      try {
        await work();
      } catch (error) {
        // One incident that cannot be attended to must not keep the others from it.
        deps.log.error({ err: error, what }, 'could not attend to something');
      }
    };
    await each('silences', () => endDueSilences(deps));
    for (const { id } of await liveTopics(deps.store.topics, 'incident'))
      await each(id, () => attendIncident(deps, id));
    await each('sweeps', () => attendSweeps(deps));
    await each('questions', () => forgetQuestions(deps));
  },
});
