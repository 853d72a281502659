/**
 * Act: an approved plan to effects, step by step, measured after each. The third of the three verbs. The box is looked
 * at again first: what is gone is fine, what changed is left alone, what is new is never touched. A dry run is this
 * same path with the effects left out.
 */
import { afterLoss, isLost, type Aftermath } from './aftermath.ts';
import type { Box } from './box.ts';
import type { Clock } from './clock.ts';
import { asReclaimError } from './errors.ts';
import { look } from './look.ts';
import { adviceFor } from './memory/advice.ts';
import type { Capture, Diagnosis, Plan, RunReport, Step, StepReport } from './memory/contract.ts';
import { creditBound, creditStep, otherChange } from './memory/credit.ts';
import { recheck, startTimesOf, type Recheck } from './memory/recheck.ts';
import { droppedByOthers, memorySample, settled, type MemorySample } from './memory/sample.ts';
import type { Identity, ThinkOptions } from './memory/story.ts';
import { outcomeOf, perform, stepsToDo, whatIsLeft } from './steps.ts';

export interface Order {
  readonly run: string;
  readonly request: string;
  readonly plan: Plan;
  readonly identities: Readonly<Record<string, Identity>>;
  readonly bootId: string;
  /** `SHA256:…` the plan was made under; a box that proves another key is not the box that was approved. */
  readonly hostKey: string;
  readonly options: ThinkOptions;
  readonly graceMs: number;
  readonly dryRun: boolean;
}

export interface ActDeps {
  readonly clock: Clock;
  /** Opens the same box again after the connection broke, to see what really happened. */
  readonly reopen: () => Promise<Box>;
  /** Told after every change. False = the right to act was lost: stop before the next effect. */
  readonly progress: (report: RunReport, doing: string | null) => Promise<boolean>;
}

/** Rejects only when nothing was done at all (the look before acting failed). Afterwards every fault is an outcome. */
export async function act(box: Box, order: Order, deps: ActDeps): Promise<RunReport> {
  const { capture, thought } = await look(box, order.options);
  const check = recheck({
    plan: order.plan,
    identities: order.identities,
    bootId: order.bootId,
    fresh: thought,
    freshStat: startTimesOf(capture),
  });
  const report = blankReport(order, thought.diagnosis, check, capture);
  const refusal =
    order.hostKey === box.hostKey
      ? check.superseded
      : 'The box proves another host key than the one that was approved, so nothing was done. Look again.';
  if (refusal !== null) return { ...report, outcome: 'refused', reason: refusal };
  if (check.steps.length === 0) return { ...report, ...outcomeOf(report.steps, null) };
  if (order.dryRun) {
    return {
      ...report,
      outcome: 'dry_run',
      reason: 'This was a dry run: the steps were checked against the box as it is now, and nothing was done.',
    };
  }
  return execute(box, order, deps, report, check, capture);
}

function blankReport(order: Order, diagnosis: Diagnosis, check: Recheck, capture: Capture): RunReport {
  return {
    run: order.run,
    request: order.request,
    host: diagnosis.host,
    outcome: 'nothing_to_do',
    diagnosis,
    before: diagnosis.memory,
    after: diagnosis.memory,
    steps: stepsToDo(order.plan, check),
    other: { freeKiB: 0, availableKiB: 0 },
    advice: adviceFor(capture, diagnosis),
  };
}

const afterTheLoss = 'The connection was lost in an earlier step, so this one was not started.';

/** The steps that are left, one after the other, each between two measurements. */
async function execute(
  firstBox: Box,
  order: Order,
  deps: ActDeps,
  blank: RunReport,
  check: Recheck,
  before: Capture,
): Promise<RunReport> {
  let box = firstBox.forRun(order.run);
  let reopened: Box | null = null;
  let report = blank;
  let stopped: string | null = null;
  const first = await measure(box);
  let last = first;
  if (first !== null) report = { ...report, before: first.memory, after: first.memory };
  const put = (step: StepReport): void => {
    report = { ...report, steps: report.steps.map((s) => (s.id === step.id ? step : s)) };
  };

  for (const step of check.steps) {
    const planned = report.steps.find((s) => s.id === step.id);
    if (planned === undefined) continue;
    if (stopped === null && !(await deps.progress(report, doing(step)))) {
      stopped = 'The worker lost its right to act before this step, so it was not started.';
    }
    if (stopped !== null) {
      put({ ...planned, state: 'not_run', reason: stopped });
      continue;
    }
    const startedMs = deps.clock.now();
    const ended = await performOrLearn(box, step, planned, { order, deps, before }, (soFar, words) => {
      put(soFar);
      void deps.progress(report, words).catch(() => false);
    });
    let done = ended.step;
    if (ended.box !== null) {
      await reopened?.close();
      box = reopened = ended.box;
    }
    if (ended.lost && (done.state === 'unknown' || done.state === 'not_run')) stopped = afterTheLoss;
    const after = await settle(box, deps, step);
    if (last !== null && after !== null && done.state !== 'skipped') {
      const bound = creditBound(done, report.diagnosis.findings);
      done = { ...done, measured: { ...creditStep(last, after, step.action, bound) } };
      const strangers = droppedByOthers(last, after, step);
      if (strangers !== null) done = { ...done, reason: [done.reason, strangers].filter(Boolean).join(' ') };
    }
    if (after !== null) {
      last = after;
      report = { ...report, after: after.memory };
    }
    put({ ...done, tookMs: Math.max(0, Math.round(deps.clock.now() - startedMs)) });
    await deps.progress(report, null);
  }
  await reopened?.close();
  return conclude(report, first, last, stopped);
}

interface Acting {
  readonly order: Order;
  readonly deps: ActDeps;
  readonly before: Capture;
}

/** How a step ended, also where the connection broke in it; `box` is set where it had to be opened anew. */
async function performOrLearn(
  box: Box,
  step: Step,
  planned: StepReport,
  { order, deps, before }: Acting,
  onProgress: (soFar: StepReport, doing: string) => void,
): Promise<Aftermath & { readonly lost: boolean }> {
  let soFar = planned;
  try {
    const done = await perform(box, step, planned, order, (now, words) => {
      soFar = now;
      onProgress(now, words);
    });
    return { box: null, step: done, lost: false };
  } catch (thrown) {
    const error = asReclaimError(thrown);
    if (!isLost(error)) return { box: null, step: { ...soFar, state: 'failed', reason: error.userText }, lost: false };
    onProgress(soFar, 'finding out what happened, for the connection was lost');
    return { ...(await afterLoss(deps, { ...order, before }, soFar, error)), lost: true };
  }
}

function conclude(
  report: RunReport,
  first: MemorySample | null,
  last: MemorySample | null,
  stopped: string | null,
): RunReport {
  const credits = report.steps.flatMap((step) => (step.measured === undefined ? [] : [step.measured]));
  const other = first === null || last === null ? report.other : otherChange(first, last, credits);
  return {
    ...report,
    ...outcomeOf(report.steps, stopped),
    other,
    advice: [...whatIsLeft(report), ...report.advice],
  };
}

function doing(step: Step): string {
  switch (step.action) {
    case 'kill':
      return step.targets.length === 1 ? 'asking 1 process to end' : `asking ${step.targets.length} processes to end`;
    case 'remove_files':
      return 'removing files nobody holds';
    case 'ipcrm':
      return 'removing shared memory segments nobody is attached to';
    case 'drop_caches':
      return 'writing dirty pages to disk, then dropping caches';
  }
}

async function measure(box: Box): Promise<MemorySample | null> {
  try {
    return memorySample(await box.collect({ scope: 'memory' }));
  } catch {
    // A step that cannot be measured is reported without figures; it is never given somebody else's.
    return null;
  }
}

const samplePauseMs = 250;
const settleCapMs = 60_000;

/** Waits until memory comes to rest: the exit of hundreds of GiB takes seconds, and its tail belongs to this step. */
async function settle(box: Box, deps: ActDeps, step: Step): Promise<MemorySample | null> {
  const samples: MemorySample[] = [];
  const startMs = deps.clock.now();
  for (;;) {
    const sample = await measure(box);
    if (sample === null) return samples.at(-1) ?? null;
    samples.push(sample);
    if (step.action === 'drop_caches' || settled(samples)) return sample;
    if (deps.clock.now() - startMs > settleCapMs) return sample;
    await deps.clock.sleep(samplePauseMs);
  }
}
