/**
 * `reclaim run HOST`: the whole job from a terminal, under the same policy as in the channel. Looks, shows the plan,
 * asks, acts, measures. `--dry-run` is the same path without the effects.
 */
import { act, type Order } from '../act.ts';
import type { Box } from '../box.ts';
import { openRecords, type Records } from '../compose.ts';
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { asReclaimError, exitCodes, ReclaimError } from '../errors.ts';
import { look, thinkOptions } from '../look.ts';
import type { Outcome, RunReport } from '../memory/contract.ts';
import { renderReport } from '../memory/render.ts';
import type { Thought } from '../memory/story.ts';
import type { Person, RequestRecord } from '../requests/types.ts';
import { systemClock } from '../system-clock.ts';
import { onePositional, readArgs, type CliIo, type Command } from './io.ts';
import { json } from './output.ts';
import { configDirectory, personAtTerminal } from './person.ts';
import { renderRun } from './run-report.ts';
import { cliBoxes } from './source.ts';

const usage = 'reclaim run HOST [--yes] [--dry-run] [--json]';

export const runCommand: Command = {
  summary: 'Look at a box, show the plan, ask, act on exactly that, and measure.',
  usage,
  examples: ['reclaim run gpu-box-3', 'reclaim run gpu-box-3 --dry-run', 'reclaim run gpu-box-3 --yes --json'],
  async run(args, io) {
    const flags = { yes: { type: 'boolean' }, 'dry-run': { type: 'boolean' }, json: { type: 'boolean' } } as const;
    const { values, positionals } = readArgs(args, flags, usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const host = findHost(config, onePositional(positionals, 'a host', usage)).name;
    const boxes = cliBoxes(config);
    const records = await openRecords(config);
    const shared = { config, records, host, io, yes: values.yes === true, json: values.json === true };
    const open = (): Promise<Box> => boxes.openBox(host, { signal: io.signal });
    try {
      io.err(`Looking at ${host} …\n`);
      const box = await open();
      try {
        return await (values['dry-run'] === true ? dryRun(shared, box, open) : reclaim(shared, box, open));
      } finally {
        await box.close();
      }
    } finally {
      await records.close();
      boxes.close();
    }
  },
};

interface Shared {
  readonly config: Config;
  readonly records: Records;
  readonly host: string;
  readonly io: CliIo;
  readonly yes: boolean;
  readonly json: boolean;
}

type Open = () => Promise<Box>;

async function dryRun(shared: Shared, box: Box, open: Open): Promise<number> {
  const { thought } = await look(box, thinkOptions(shared.config.policy, []));
  show(shared, thought);
  if (thought.diagnosis.plan === null) return end(shared, nothingToDo(shared.host, thought, '-'));
  const order = orderFor(shared, { run: 'dry-run', request: '-', thought, hostKey: box.hostKey, dryRun: true });
  const report = await act(box, order, { clock: systemClock, reopen: open, progress: () => Promise.resolve(true) });
  return end(shared, report);
}

async function reclaim(shared: Shared, box: Box, open: Open): Promise<number> {
  const { requests, store } = shared.records;
  const person = personAtTerminal(shared.config);
  const asked = await requests.ask({ host: shared.host, requester: person, surface: 'cli' });
  if (asked.existing) {
    throw new ReclaimError(
      'request_open',
      `${shared.host} already has an open request (${asked.record.id}, ${asked.record.state}), so no second one was made. Decide or cancel that one first.`,
    );
  }
  const { id } = asked.record;
  let record: RequestRecord;
  let thought: Thought;
  try {
    const first = await look(box, thinkOptions(shared.config.policy, []));
    const kept = await store.kept(shared.host, first.thought.bootId);
    const wishes = kept.map((k) => k.target);
    thought =
      wishes.length === 0 ? first.thought : (await look(box, thinkOptions(shared.config.policy, wishes))).thought;
    record = await requests.looked(id, { thought, hostKey: box.hostKey });
  } catch (thrown) {
    const error = asReclaimError(thrown);
    await requests.lookFailed(id, error.code, error.userText);
    throw error;
  }
  show(shared, thought);
  if (record.state !== 'pending') return end(shared, nothingToDo(shared.host, thought, id, record));
  record = await decide(shared, record, person);
  return runApproved(shared, record, box, open);
}

/** The question, and the answer as a vote. Rejects when the policy says no; the request is then withdrawn. */
async function decide(shared: Shared, record: RequestRecord, person: Person): Promise<RequestRecord> {
  const { requests } = shared.records;
  const steps = record.plan?.steps ?? [];
  const processes = steps.reduce((n, step) => n + (step.action === 'kill' ? step.targets.length : 0), 0);
  const what = processes === 0 ? 'this plan' : `this plan (${processes} processes end)`;
  const answer = shared.yes ? 'yes' : await shared.io.ask(`Do ${what} on ${shared.host}? Type yes to go on: `);
  if (answer?.trim().toLowerCase() !== 'yes') {
    await requests.cancel(record.id, person, 'cli');
    const why =
      answer === null ? 'Nobody can be asked here (no terminal); --yes answers for you.' : 'You did not say yes.';
    throw new ReclaimError('not_allowed', `${why} Nothing was done.`);
  }
  try {
    const vote = { id: record.id, person, surface: 'cli', verdict: 'approve' } as const;
    const decided = await requests.decide(
      record.digest === undefined ? vote : { ...vote, digest: record.digest },
      configDirectory(shared.config),
    );
    if (decided.state === 'approved') return decided;
    throw new ReclaimError(
      'not_allowed',
      `Your approval counts, but this plan needs ${decided.required} people (${decided.requiredWhy}), so nothing was done. Use /reclaim ${shared.host} in Slack, where the others can agree.`,
    );
  } catch (thrown) {
    await requests.cancel(record.id, person, 'cli').catch(() => undefined);
    throw thrown;
  }
}

async function runApproved(shared: Shared, record: RequestRecord, box: Box, open: Open): Promise<number> {
  const { requests } = shared.records;
  const claimed = await requests.claim(record.id, shared.records.instance);
  const { run, plan, bootId, hostKey } = claimed ?? {};
  if (claimed === null || run === undefined || plan == null || bootId === undefined || hostKey === undefined) {
    throw new ReclaimError('request_closed', 'Another process holds this request now, so nothing was done here.');
  }
  const order: Order = {
    ...base(shared),
    run: run.id,
    request: record.id,
    plan,
    identities: claimed.identities,
    bootId,
    hostKey,
    dryRun: false,
  };
  try {
    const report = await act(box, order, {
      clock: systemClock,
      reopen: open,
      progress: async (soFar, doing) => {
        if (doing !== null) shared.io.err(`  ${doing} …\n`);
        return requests.progress(record.id, run.id, doing, soFar);
      },
    });
    await requests.finish(record.id, run.id, report);
    return end(shared, report);
  } catch (thrown) {
    const error = asReclaimError(thrown);
    await requests.abandon(record.id, run.id, 'failed', error.code, error.userText);
    throw error;
  }
}

const base = (shared: Shared): Pick<Order, 'options' | 'graceMs'> => ({
  options: thinkOptions(shared.config.policy, []),
  graceMs: shared.config.policy.grace,
});

function orderFor(
  shared: Shared,
  of: { run: string; request: string; thought: Thought; hostKey: string; dryRun: boolean },
): Order {
  const { plan } = of.thought.diagnosis;
  if (plan === null) throw new ReclaimError('internal', 'There is no plan to act on. Nothing was done.');
  const { run, request, hostKey, dryRun } = of;
  const { identities, bootId } = of.thought;
  return { ...base(shared), run, request, plan, identities, bootId, hostKey, dryRun };
}

function nothingToDo(host: string, thought: Thought, request: string, record?: RequestRecord): RunReport {
  const { diagnosis } = thought;
  return {
    run: '-',
    request,
    host,
    outcome: record?.state === 'blocked' ? 'refused' : 'nothing_to_do',
    reason: record?.reason ?? 'There is nothing to give back.',
    diagnosis,
    before: diagnosis.memory,
    after: diagnosis.memory,
    steps: [],
    other: { freeKiB: 0, availableKiB: 0 },
    advice: [],
  };
}

function show(shared: Shared, thought: Thought): void {
  const text = renderReport(thought.diagnosis, {
    width: shared.io.columns,
    colour: shared.io.color && !shared.json,
    freeWords: thought.freeWords,
    detail: 'full',
  });
  (shared.json ? shared.io.err : shared.io.out)(`${text}\n`);
}

function end(shared: Shared, report: RunReport): number {
  if (shared.json) shared.io.out(json(report));
  else shared.io.out(`\n${renderRun(report)}`);
  return exitFor[report.outcome];
}

const exitFor: Readonly<Record<Outcome, number>> = {
  succeeded: exitCodes.done,
  nothing_to_do: exitCodes.done,
  dry_run: exitCodes.done,
  partial: exitCodes.failed,
  failed: exitCodes.failed,
  refused: exitCodes.notAllowed,
  unknown: exitCodes.unknown,
};
