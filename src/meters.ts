/**
 * What one process counts of itself, and the list of every metric there is. Names, labels and help stand here once; docs,
 * dashboard and alert rules are held to them by tests.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { asReclaimError } from './errors.ts';

/** Of the whole deployment, read from store and queue when asked: every process says the same, so take the maximum. */
export const sharedMetrics = {
  reclaim_requests_asked_total: { type: 'counter', labels: [], help: 'Requests made.' },
  reclaim_requests_open: { type: 'gauge', labels: ['state'], help: 'Requests that are not over, by state.' },
  reclaim_requests_ended_total: { type: 'counter', labels: ['state'], help: 'Requests that ended, by last state.' },
  reclaim_looks_total: { type: 'counter', labels: ['verdict'], help: 'Looks that came to a verdict.' },
  reclaim_look_errors_total: { type: 'counter', labels: ['code'], help: 'Looks that failed, by error code.' },
  reclaim_runs_total: { type: 'counter', labels: ['outcome'], help: 'Runs that ended, by outcome.' },
  reclaim_run_errors_total: { type: 'counter', labels: ['code'], help: 'Runs that ended with an error, by code.' },
  reclaim_steps_total: { type: 'counter', labels: ['action', 'state'], help: 'Steps of ended runs.' },
  reclaim_expected_bytes_total: {
    type: 'counter',
    labels: ['action', 'bound'],
    help: 'Free memory promised by measured steps; bound is low or high.',
  },
  reclaim_given_back_bytes_total: {
    type: 'counter',
    labels: ['action'],
    help: 'Free memory measured steps gave back.',
  },
  reclaim_prediction_error_bytes_total: {
    type: 'counter',
    labels: ['action'],
    help: 'How far outside the promised range the gain of measured steps was, summed.',
  },
  reclaim_audit_events_total: { type: 'counter', labels: ['what'], help: 'Audit events, by kind.' },
  reclaim_undelivered_messages: { type: 'gauge', labels: [], help: 'Messages waiting for Slack.' },
  reclaim_undelivered_oldest_seconds: { type: 'gauge', labels: [], help: 'Age of the oldest of them.' },
  reclaim_queue_jobs: { type: 'gauge', labels: ['job', 'state'], help: 'Jobs waiting, delayed or active.' },
  reclaim_queue_oldest_seconds: { type: 'gauge', labels: ['job'], help: 'Age of the oldest waiting job.' },
  reclaim_processes: { type: 'gauge', labels: ['role'], help: 'Processes that are here, by role.' },
  reclaim_policy_versions: {
    type: 'gauge',
    labels: [],
    help: 'Different policies among them; more than 1 is a fault.',
  },
} as const satisfies Record<string, Facts>;

/** Of this process alone: sum them up. They begin again with it. */
export const ownMetrics = {
  reclaim_build_info: { type: 'gauge', labels: ['release', 'node', 'role', 'deployment'], help: 'Always 1.' },
  reclaim_ready: { type: 'gauge', labels: ['part'], help: 'What /readyz says of each part: 1 or 0.' },
  reclaim_jobs_total: {
    type: 'counter',
    labels: ['job', 'outcome'],
    help: 'Jobs worked here; outcome is done or failed.',
  },
  reclaim_job_seconds: { type: 'histogram', labels: ['job'], help: 'How long jobs took.' },
  reclaim_ssh_errors_total: { type: 'counter', labels: ['code'], help: 'Boxes that could not be opened, by code.' },
  reclaim_slack_calls_total: {
    type: 'counter',
    labels: ['method', 'outcome'],
    help: 'Calls of the Slack API; outcome is ok, the error Slack names, rate_limited, http_NNN or network.',
  },
  reclaim_slack_call_seconds: { type: 'histogram', labels: ['method'], help: 'How long Slack took to answer.' },
  reclaim_slack_retries_total: { type: 'counter', labels: ['reason'], help: 'Messages put back to be tried again.' },
  reclaim_slack_sockets: { type: 'gauge', labels: [], help: 'Slack sockets open.' },
  reclaim_slack_foreign_sockets: {
    type: 'gauge',
    labels: [],
    help: 'Sockets of the Slack app that no process of this deployment holds.',
  },
  reclaim_config_reloads_total: { type: 'counter', labels: ['result'], help: 'Reloads on SIGHUP: done or refused.' },
} as const satisfies Record<string, Facts>;

interface Facts {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
}

type Labels = Readonly<Record<string, string>>;
type Name = keyof typeof sharedMetrics | keyof typeof ownMetrics;
type Made = Counter | Gauge | Histogram;

const seconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export class Meters {
  readonly registry = new Registry();
  readonly #made = new Map<string, Made>();

  constructor() {
    for (const [name, facts] of Object.entries<Facts>({ ...sharedMetrics, ...ownMetrics })) {
      const about = { name, help: facts.help, labelNames: [...facts.labels], registers: [this.registry] };
      if (facts.type === 'counter') this.#made.set(name, new Counter(about));
      else if (facts.type === 'gauge') this.#made.set(name, new Gauge(about));
      else this.#made.set(name, new Histogram({ ...about, buckets: seconds }));
    }
    collectDefaultMetrics({ register: this.registry });
  }

  #of(name: Name): Made {
    const made = this.#made.get(name);
    if (made === undefined) throw new Error(`no metric ${name}`);
    return made;
  }

  /** Raises a counter. */
  count(name: Name, labels: Labels = {}, by = 1): void {
    const made = this.#of(name);
    if (made instanceof Counter) made.inc(labels, by);
  }

  observe(name: Name, labels: Labels, value: number): void {
    const made = this.#of(name);
    if (made instanceof Histogram) made.observe(labels, value);
  }

  /** Replaces every value of a metric by these; what is not among them is gone. */
  replace(name: Name, values: readonly (readonly [Labels, number])[]): void {
    const made = this.#of(name);
    if (made instanceof Histogram) return;
    made.reset();
    // `reset` of a metric without labels leaves a zero, which would say more than is known.
    made.remove({});
    for (const [labels, value] of values) made.inc(labels, value);
  }

  /** Times `work` and counts how it ended. */
  async job<T>(job: string, work: () => Promise<T>): Promise<T> {
    const since = performance.now();
    let outcome = 'failed';
    try {
      const answer = await work();
      outcome = 'done';
      return answer;
    } finally {
      this.count('reclaim_jobs_total', { job, outcome });
      this.observe('reclaim_job_seconds', { job }, (performance.now() - since) / 1000);
    }
  }

  /** Counts what could not be opened. */
  async opening<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      this.count('reclaim_ssh_errors_total', { code: asReclaimError(thrown).code });
      throw thrown;
    }
  }

  /** `fetch`, with every call of the Slack API counted and timed. */
  readonly slackFetch: typeof fetch = async (input, init) => {
    const url = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url;
    const method = /\/api\/([a-zA-Z.]{1,60})$/.exec(new URL(url).pathname)?.[1] ?? 'upload';
    const since = performance.now();
    let outcome = 'network';
    try {
      const answer = await fetch(input, init);
      outcome = await slackOutcome(answer);
      return answer;
    } finally {
      this.count('reclaim_slack_calls_total', { method, outcome });
      this.observe('reclaim_slack_call_seconds', { method }, (performance.now() - since) / 1000);
    }
  };
}

async function slackOutcome(answer: Response): Promise<string> {
  if (answer.status === 429) return 'rate_limited';
  if (!answer.ok) return `http_${answer.status}`;
  if (answer.headers.get('content-type')?.includes('json') !== true) return 'ok';
  const said: unknown = await answer
    .clone()
    .json()
    .catch(() => null);
  if (typeof said !== 'object' || said === null || !('ok' in said) || said.ok === true) return 'ok';
  // Slack's error names are a fixed list of short words; anything else would make labels without end.
  return 'error' in said && typeof said.error === 'string' && /^[a-z_]{1,40}$/.test(said.error)
    ? said.error
    : 'refused';
}
