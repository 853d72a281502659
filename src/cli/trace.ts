/** `reclaim trace REQUEST`: what happened to one request, in order, at whichever process. */
import { openRecords } from '../compose.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { deltaText } from '../memory/sizes.ts';
import type { Store } from '../requests/store.ts';
import { deliveryKey, deliverySchema, type RequestRecord } from '../requests/types.ts';
import { onePositional, readArgs, type Command } from './io.ts';
import { logLinesOf } from './log-lines.ts';
import { json, readTextFile } from './output.ts';
import { table } from './table.ts';

const usage = 'reclaim trace REQUEST [--log FILE]… [--json]';

/** One thing that happened. `at` is ISO time where it is known; steps and messages follow what they belong to. */
interface Trace {
  readonly at: string | null;
  readonly from: 'audit' | 'step' | 'message' | 'log';
  /** A person, `system`, or the instance of a process. */
  readonly who: string;
  readonly what: string;
  readonly why: string;
}

export const traceCommand: Command = {
  summary: 'Follow one request through all processes: audit log, steps, messages, and log lines where a log is given.',
  usage,
  examples: ['reclaim trace r1a2b3c4d5e6', 'journalctl -o cat -u reclaim > log; reclaim trace r1a2b3c4d5e6 --log log'],
  async run(args, io) {
    const options = { json: { type: 'boolean' }, log: { type: 'string', multiple: true } } as const;
    const { values, positionals } = readArgs(args, options, usage);
    const id = onePositional(positionals, 'the id of a request (reclaim history shows them)', usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const logs = await Promise.all((values.log ?? []).map((file) => readTextFile(file, io.cwd)));
    const opened = await openRecords(config);
    const { store } = opened;
    try {
      const record = await store.get(id);
      const audit = await auditOf(store, id);
      if (record === null && audit.length === 0) {
        throw new ReclaimError(
          'request_unknown',
          `There is no request ${id.slice(0, 40)}. reclaim history lists them.`,
        );
      }
      const traced = [...audit, ...logs.flatMap((text) => logLinesOf(text, id))].sort(byTime);
      const happened: Trace[] = [
        ...traced,
        ...(record === null ? [] : [...steps(record), ...(await messages(store, id))]),
      ];
      const about = { request: id, host: record?.host ?? null, state: record?.state ?? null };
      const run = record?.run === undefined ? {} : { run: record.run.id, worker: record.run.worker };
      const policy = record === null ? {} : { policyVersion: record.policyVersion };
      if (values.json === true) io.out(json({ ...about, ...policy, ...run, trace: happened }));
      else io.out(human({ ...about, ...policy, ...run }, happened));
      return exitCodes.done;
    } finally {
      await opened.close();
    }
  },
};

async function auditOf(store: Store, request: string): Promise<Trace[]> {
  const events = await store.events({ request, limit: 10_000 });
  return events.map(({ at, who, what, why }) => ({ at, from: 'audit', who, what, why }));
}

const byTime = (a: Trace, b: Trace): number => (a.at ?? '').localeCompare(b.at ?? '');

function steps(record: RequestRecord): Trace[] {
  const { run } = record;
  return (run?.report?.steps ?? []).map((step) => {
    const gave = step.measured === undefined ? 'not measured' : `free ${deltaText(step.measured.freeKiB)}`;
    const why = `${step.targets.length} targets, ${gave}, took ${(step.tookMs / 1000).toFixed(1)} s`;
    const what = `${step.action} ${step.state}`;
    return { at: null, from: 'step', who: run?.worker ?? '', what, why: step.reason ?? why };
  });
}

async function messages(store: Store, request: string): Promise<Trace[]> {
  const views = deliverySchema.shape.view.options;
  const found = await Promise.all(views.map((view) => store.delivery(deliveryKey(request, view))));
  return found.flatMap((delivery): Trace[] => {
    if (delivery === null) return [];
    const { view, revision, deliveredRevision, givenUp, messageTs, claimedBy } = delivery;
    const state = givenUp !== undefined ? 'given up' : deliveredRevision >= revision ? 'delivered' : 'waiting';
    const ts = messageTs === undefined ? '' : `, message ${messageTs}`;
    const why = givenUp ?? `revision ${deliveredRevision} of ${revision}${ts}`;
    return [{ at: null, from: 'message', who: claimedBy ?? '', what: `${view} ${state}`, why }];
  });
}

function human(about: Readonly<Record<string, string | null>>, happened: readonly Trace[]): string {
  const facts = Object.entries(about).map(([name, value]) => `${name} ${value ?? 'no longer kept'}`);
  const rows = happened.map((t) => [t.at?.slice(0, 23).replace('T', ' ') ?? '', t.from, t.who, t.what, t.why]);
  return `${facts.join(', ')}\n${table([['when', 'from', 'who', 'what', 'why'], ...rows])}\n`;
}
