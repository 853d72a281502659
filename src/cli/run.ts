/**
 * `reclaim run HOST`: the whole job from a terminal, under the same policy as in the channel. Looks, shows the plan,
 * asks, acts, measures. `--dry-run` is the same path without the effects.
 */
import { pino } from 'pino';
import { runApproved } from '../../jobs/run.ts';
import { act, type Order } from '../act.ts';
import type { Box } from '../box.ts';
import { openRecords, type Records } from '../compose.ts';
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { asReclaimError, exitCodes, isErrorCode, ReclaimError } from '../errors.ts';
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
  const { requests } = shared.records;
  const person = personAtTerminal(shared.config);
  const asked = await requests.ask({ host: shared.host, requester: person, surface: 'cli' });
  if (asked.existing) throw new ReclaimError('request_open', openAlready(asked.record));
  const { record, thought } = await lookFor(shared, asked.record.id, box);
  show(shared, thought);
  if (record.state !== 'pending') return end(shared, nothingToDo(shared.host, thought, record.id, record));
  try {
    await decide(shared, record, person);
  } catch (thrown) {
    const error = asReclaimError(thrown);
    if (shared.json && error.exitCode === exitCodes.notAllowed) {
      shared.io.out(json(unchanged(thought, { request: record.id, outcome: 'refused', reason: error.userText })));
    }
    throw error;
  }
  await box.close();
  return await runHere(shared, record.id, open);
}

function openAlready({ host, id, state, requester, run, updatedAt }: RequestRecord): string {
  if (state === 'running' && run !== undefined) {
    return `${host} is being worked on by run ${run.id} of request ${id} (asked for by @${requester.id}, started ${run.startedAt}), so no second one was made. Its card shows every step; reclaim history ${host} shows how it ended.`;
  }
  return `${host} already has an open request (${id} by @${requester.id}, ${state} since ${updatedAt}), so no second one was made. Decide or cancel that one first.`;
}

async function lookFor(shared: Shared, id: string, box: Box): Promise<{ record: RequestRecord; thought: Thought }> {
  const { requests, store } = shared.records;
  try {
    const first = await look(box, thinkOptions(shared.config.policy, []));
    const wishes = (await store.kept(shared.host, first.thought.bootId)).map((k) => k.target);
    const { thought } = wishes.length === 0 ? first : await look(box, thinkOptions(shared.config.policy, wishes));
    return { thought, record: await requests.looked(id, { thought, hostKey: box.hostKey }) };
  } catch (thrown) {
    const error = asReclaimError(thrown);
    await requests.lookFailed(id, error.code, error.userText);
    throw error;
  }
}

/** The question, and the answer as a vote. Rejects when it may not run (yet); what nobody else can decide is withdrawn. */
async function decide(shared: Shared, record: RequestRecord, person: Person): Promise<void> {
  const { requests } = shared.records;
  const withdraw = () => requests.cancel(record.id, person, 'cli').catch(() => undefined);
  const steps = record.plan?.steps ?? [];
  const processes = steps.reduce((n, step) => n + (step.action === 'kill' ? step.targets.length : 0), 0);
  const what = processes === 0 ? 'this plan' : `this plan (${processes} processes end)`;
  const answer = shared.yes ? 'yes' : await shared.io.ask(`Do ${what} on ${shared.host}? Type yes to go on: `);
  if (answer?.trim().toLowerCase() !== 'yes') {
    await withdraw();
    const why =
      answer === null ? 'Nobody can be asked here (no terminal); --yes answers for you.' : 'You did not say yes.';
    throw new ReclaimError('not_allowed', `${why} Nothing was done.`);
  }
  let decided: RequestRecord;
  try {
    const vote = { id: record.id, person, surface: 'cli', verdict: 'approve' } as const;
    decided = await requests.decide(
      record.digest === undefined ? vote : { ...vote, digest: record.digest },
      configDirectory(shared.config),
    );
  } catch (thrown) {
    await withdraw();
    throw thrown;
  }
  if (decided.state === 'approved') return;
  const counts = `Your approval counts, but ${decided.requiredWhy} Nothing was done yet.`;
  const { channel } = shared.config.alerts;
  if (channel === undefined) {
    await withdraw();
    throw new ReclaimError(
      'not_allowed',
      `${counts} The request was withdrawn, because alerts.channel names no channel to ask the others in. Use /reclaim ${shared.host} in Slack.`,
    );
  }
  await requests.handOver(record.id, person, channel);
  throw new ReclaimError(
    'not_allowed',
    `${counts} Request ${record.id} waits in Slack channel ${channel} for the others until ${decided.pendingUntil ?? 'it expires'}, and starts by itself when enough agree.`,
  );
}

/** The same run as a worker's: claimed once, its lease renewed, one at a time on a host. */
async function runHere(shared: Shared, id: string, open: Open): Promise<number> {
  const { config, io } = shared;
  const { requests, store, instance } = shared.records;
  const ran = await runApproved(
    id,
    {
      config,
      store,
      instance,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      openBox: open,
      requests: {
        claim: (...args) => requests.claim(...args),
        finish: (...args) => requests.finish(...args),
        abandon: (...args) => requests.abandon(...args),
        progress: (...[request, run, doing, report]) => {
          if (doing !== null) io.err(`  ${doing} …\n`);
          return requests.progress(request, run, doing, report);
        },
      },
    },
    io.signal,
  );
  const record = await store.get(id);
  const report = record?.run?.report;
  if (ran && report !== undefined) return end(shared, report);
  const code = record?.errorCode ?? 'request_closed';
  throw new ReclaimError(
    isErrorCode(code) ? code : 'internal',
    record?.reason ?? 'The request is not there any more. Nothing was done.',
  );
}

function orderFor(
  shared: Shared,
  of: { run: string; request: string; thought: Thought; hostKey: string; dryRun: boolean },
): Order {
  const { plan } = of.thought.diagnosis;
  if (plan === null) throw new ReclaimError('internal', 'There is no plan to act on. Nothing was done.');
  const { run, request, hostKey, dryRun } = of;
  const { identities, bootId } = of.thought;
  const { policy } = shared.config;
  const acting = { options: thinkOptions(policy, []), graceMs: policy.grace };
  return { ...acting, run, request, plan, identities, bootId, hostKey, dryRun };
}

function nothingToDo(host: string, thought: Thought, request: string, record?: RequestRecord): RunReport {
  const outcome = record?.state === 'blocked' ? 'refused' : 'nothing_to_do';
  return unchanged(thought, {
    request,
    outcome,
    reason: record?.reason ?? `There is nothing to give back on ${host}.`,
  });
}

/** The report of a run that never began. */
function unchanged(
  { diagnosis }: Thought,
  said: { readonly request: string; readonly outcome: Outcome; readonly reason: string },
): RunReport {
  const { host, memory } = diagnosis;
  const other = { freeKiB: 0, availableKiB: 0 };
  return { run: '-', host, ...said, diagnosis, before: memory, after: memory, steps: [], other, advice: [] };
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
