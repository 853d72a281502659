/** Brings the numbers of the whole deployment, as store and queue have them at this moment, into the meters. */
import type { Clock } from './clock.ts';
import type { Meters } from './meters.ts';
import type { Queue } from './queue/types.ts';
import { openStates } from './requests/state.ts';
import type { Store } from './requests/store.ts';
import type { Totals } from './requests/totals.ts';

export interface MetricsParts {
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly meters: Meters;
}

type Rows = (readonly [Readonly<Record<string, string>>, number])[];
const bytes = 1024;

/** Rows of every total `PREFIX.VALUE`, with VALUE as the label. */
function rowsOf(totals: Totals, prefix: string, label: string, by = 1): Rows {
  return Object.entries(totals).flatMap(([name, count]) =>
    name.startsWith(`${prefix}.`) ? [[{ [label]: name.slice(prefix.length + 1) }, count * by] as const] : [],
  );
}

function fromTotals(meters: Meters, totals: Totals): void {
  meters.replace('reclaim_requests_asked_total', [[{}, totals['requests.asked'] ?? 0]]);
  meters.replace('reclaim_requests_ended_total', rowsOf(totals, 'requests.ended', 'state'));
  meters.replace('reclaim_looks_total', rowsOf(totals, 'looks', 'verdict'));
  meters.replace('reclaim_look_errors_total', rowsOf(totals, 'lookErrors', 'code'));
  meters.replace('reclaim_runs_total', rowsOf(totals, 'runs', 'outcome'));
  meters.replace('reclaim_run_errors_total', rowsOf(totals, 'runErrors', 'code'));
  const steps = rowsOf(totals, 'steps', 'both').map(([{ both = '' }, count]) => {
    const [action = '', state = ''] = both.split('.');
    return [{ action, state }, count] as const;
  });
  meters.replace('reclaim_steps_total', steps);
  const bound = (name: string, which: string) =>
    rowsOf(totals, name, 'action', bytes).map(([labels, count]) => [{ ...labels, bound: which }, count] as const);
  const expected = [...bound('expectedLowKib', 'low'), ...bound('expectedHighKib', 'high')];
  meters.replace('reclaim_expected_bytes_total', expected);
  meters.replace('reclaim_given_back_bytes_total', rowsOf(totals, 'gaveBackKib', 'action', bytes));
  meters.replace('reclaim_prediction_error_bytes_total', rowsOf(totals, 'outsideKib', 'action', bytes));
  meters.replace('reclaim_audit_events_total', rowsOf(totals, 'events', 'what'));
}

async function fromStore({ store, clock, meters }: MetricsParts): Promise<void> {
  const [totals, open, waiting, processes] = await Promise.all([
    store.totals(),
    store.list({ states: openStates, limit: 10_000 }),
    store.undelivered(),
    store.processes(),
  ]);
  fromTotals(meters, totals);
  const states = openStates.map((state) => [{ state }, open.filter((r) => r.state === state).length] as const);
  meters.replace('reclaim_requests_open', states);
  const sinceMs = waiting.oldestAt === null ? 0 : clock.now() - Date.parse(waiting.oldestAt);
  meters.replace('reclaim_undelivered_messages', [[{}, waiting.count]]);
  meters.replace('reclaim_undelivered_oldest_seconds', [[{}, Math.max(0, sinceMs) / 1000]]);
  const roles = (['all', 'gateway', 'worker'] as const).map((role) => {
    return [{ role }, processes.filter((p) => p.role === role).length] as const;
  });
  meters.replace('reclaim_processes', roles);
  meters.replace('reclaim_policy_versions', [[{}, new Set(processes.map((p) => p.policyVersion)).size]]);
}

async function fromQueue({ queue, clock, meters }: MetricsParts): Promise<void> {
  const depths = await queue.depths();
  const jobs: Rows = [];
  const ages: Rows = [];
  for (const { job, waiting, delayed, active, oldestWaitingAt } of depths) {
    for (const [state, count] of Object.entries({ waiting, delayed, active })) jobs.push([{ job, state }, count]);
    ages.push([{ job }, oldestWaitingAt === null ? 0 : Math.max(0, clock.now() - oldestWaitingAt) / 1000]);
  }
  meters.replace('reclaim_queue_jobs', jobs);
  meters.replace('reclaim_queue_oldest_seconds', ages);
}

const storeMetrics = [
  'reclaim_requests_asked_total',
  'reclaim_requests_open',
  'reclaim_requests_ended_total',
  'reclaim_looks_total',
  'reclaim_look_errors_total',
  'reclaim_runs_total',
  'reclaim_run_errors_total',
  'reclaim_steps_total',
  'reclaim_expected_bytes_total',
  'reclaim_given_back_bytes_total',
  'reclaim_prediction_error_bytes_total',
  'reclaim_audit_events_total',
  'reclaim_undelivered_messages',
  'reclaim_undelivered_oldest_seconds',
  'reclaim_processes',
  'reclaim_policy_versions',
] as const;
const queueMetrics = ['reclaim_queue_jobs', 'reclaim_queue_oldest_seconds'] as const;

/** The text for Prometheus. A store or queue that does not answer takes its own numbers out, and no others. */
export async function metricsText(parts: MetricsParts): Promise<string> {
  const forget = (names: readonly Parameters<Meters['replace']>[0][]) => () => {
    for (const name of names) parts.meters.replace(name, []);
  };
  await Promise.all([fromStore(parts).catch(forget(storeMetrics)), fromQueue(parts).catch(forget(queueMetrics))]);
  return await parts.meters.registry.metrics();
}
