/** The numbers of this deployment in Prometheus text, read from the store at the moment of asking. */
import type { Clock } from './clock.ts';
import { requestStates } from './requests/types.ts';
import type { Store } from './requests/store.ts';

/** Enough to see what is open; totals over all time belong to the audit log. */
const readAtMost = 1000;

export async function metricsText(store: Store, clock: Clock): Promise<string> {
  const [records, waiting] = await Promise.all([store.list({ limit: readAtMost }), store.undelivered()]);
  const oldestSeconds =
    waiting.oldestAt === null ? 0 : Math.max(0, (clock.now() - Date.parse(waiting.oldestAt)) / 1000);
  const byState = requestStates.map((state) => {
    const count = records.filter((record) => record.state === state).length;
    return `reclaim_requests{state="${state}"} ${count}`;
  });
  const gave = records.reduce((sum, record) => {
    const steps = record.run?.report?.steps ?? [];
    return sum + steps.reduce((kiB, step) => kiB + (step.measured?.freeKiB ?? 0), 0);
  }, 0);
  return [
    '# HELP reclaim_requests Requests by state, among the newest 1000.',
    '# TYPE reclaim_requests gauge',
    ...byState,
    '# HELP reclaim_given_back_bytes Free memory given back by the runs of those requests.',
    '# TYPE reclaim_given_back_bytes gauge',
    `reclaim_given_back_bytes ${gave * 1024}`,
    '# HELP reclaim_undelivered_messages Messages waiting for Slack.',
    '# TYPE reclaim_undelivered_messages gauge',
    `reclaim_undelivered_messages ${waiting.count}`,
    '# HELP reclaim_undelivered_oldest_seconds Age of the oldest of them.',
    '# TYPE reclaim_undelivered_oldest_seconds gauge',
    `reclaim_undelivered_oldest_seconds ${oldestSeconds.toFixed(1)}`,
    '',
  ].join('\n');
}
