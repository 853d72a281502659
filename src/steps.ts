/** One step of a run: how it is performed on the box, and how its end is told. */
import type { Box, ResultOf } from './box.ts';
import type { Outcome, Plan, RunReport, Step, StepReport, TargetResult } from './memory/contract.ts';
import type { Recheck } from './memory/recheck.ts';
import { targetKey, type Identity, type ThinkOptions } from './memory/story.ts';

/** Every planned step as a report that says what was already decided about its targets; `not_run` until it was. */
export function stepsToDo(plan: Plan, check: Recheck): StepReport[] {
  return plan.steps.map((step): StepReport => {
    const dropped = check.dropped.filter((d) => d.stepId === step.id);
    const left = check.steps.find((s) => s.id === step.id);
    const results = dropped.map((d) => ({ ...d.target, result: d.result, reason: d.reason }));
    const report = withResults({ ...step, state: 'not_run', tookMs: 0 }, results);
    if (left !== undefined && left.targets.length > 0) return report;
    const allGone = dropped.every((d) => d.result === 'already_gone');
    const reason = allGone ? 'Everything in it ended by itself before we acted.' : (dropped[0]?.reason ?? '');
    return { ...report, state: 'skipped', ...(reason === '' ? {} : { reason }) };
  });
}

type AnyResult = Step['targets'][number] & { readonly result: TargetResult };

const sameTarget = (a: Step['targets'][number], b: Step['targets'][number]): boolean => {
  if ('pid' in a) return 'pid' in b && targetKey(a) === targetKey(b);
  if ('ino' in a) return 'ino' in b && a.dev === b.dev && a.ino === b.ino && a.path === b.path;
  if ('shmid' in a) return 'shmid' in b && a.shmid === b.shmid;
  return 'level' in b && a.level === b.level;
};

/** The report with these results written to their targets; targets without one keep what they had. */
export function withResults(report: StepReport, results: readonly AnyResult[]): StepReport {
  const mark = <T extends Step['targets'][number]>(targets: readonly T[]): T[] =>
    targets.map((target) => {
      const found = results.find((r) => sameTarget(r, target));
      return found === undefined ? target : { ...target, result: found.result };
    });
  switch (report.action) {
    case 'kill':
      return { ...report, targets: mark(report.targets) };
    case 'remove_files':
      return { ...report, targets: mark(report.targets) };
    case 'ipcrm':
      return { ...report, targets: mark(report.targets) };
    case 'drop_caches':
      return { ...report, targets: mark(report.targets) };
  }
}

export interface StepOrder {
  readonly bootId: string;
  readonly graceMs: number;
  readonly identities: Readonly<Record<string, Identity>>;
  readonly options: ThinkOptions;
}

/** Does the step on the box. Rejects with the ReclaimError of a lost connection or a box that refused to begin. */
export async function perform(
  box: Box,
  step: Step,
  planned: StepReport,
  order: StepOrder,
  onProgress: (soFar: StepReport, doing: string) => void,
): Promise<StepReport> {
  switch (step.action) {
    case 'kill': {
      const ended: ResultOf<(typeof step.targets)[number]>[] = [];
      const results = await box.kill(
        {
          bootId: order.bootId,
          graceMs: order.graceMs,
          protect: order.options.protect,
          targets: step.targets.map((target) => pinned(target, order.identities)),
        },
        (result) => {
          ended.push(result);
          const open = step.targets.length - ended.length;
          if (open > 0) onProgress(withResults(planned, ended), `waiting for ${open} of ${step.targets.length} to end`);
        },
      );
      return finished(withResults(planned, results), results);
    }
    case 'remove_files': {
      const results = await box.removeFiles(step.targets, order.options.minAgeSeconds.shm);
      return finished(withResults(planned, results), results);
    }
    case 'ipcrm': {
      const results = await box.ipcrm(step.targets, order.options.minAgeSeconds.sysv);
      return finished(withResults(planned, results), results);
    }
    case 'drop_caches':
      return drop(box, step.targets[0]?.level ?? 1, planned);
  }
}

function pinned<T extends { pid: number; startTime: number }>(target: T, identities: StepOrder['identities']) {
  const identity = identities[targetKey(target)];
  return {
    ...target,
    ...(identity?.uid == null ? {} : { uid: identity.uid }),
    ...(identity?.exe == null ? {} : { exe: identity.exe }),
  };
}

async function drop(box: Box, level: 1 | 2 | 3, planned: StepReport): Promise<StepReport> {
  // Dirty pages cannot be dropped; written to disk first, they can.
  const synced = await box.sync();
  const answer = await box.dropCaches(level);
  const reasons = [synced, answer].flatMap((a) => (a.reason === undefined ? [] : [a.reason]));
  const report = answer.state === 'done' ? withResults(planned, [{ level, result: 'dropped' }]) : planned;
  return { ...report, state: answer.state, ...(reasons.length === 0 ? {} : { reason: reasons.join(' ') }) };
}

const good: ReadonlySet<TargetResult> = new Set(['exited', 'killed', 'already_gone', 'removed', 'dropped']);

/** The state of a step that has a result for every target it was sent with. */
export function finished(report: StepReport, results: readonly ResultOf<object>[]): StepReport {
  const bad = results.filter((r) => !good.has(r.result));
  if (bad.length === 0) return { ...report, state: 'done' };
  const why = [...new Set(bad.map((r) => r.reason ?? wordsFor[r.result]))].slice(0, 3).join(' ');
  const left = `${bad.length} of ${results.length} left as they are: ${why}`;
  return { ...report, state: bad.length === results.length ? 'failed' : 'done', reason: left };
}

/** How the end of a target is told. */
export const wordsFor: Readonly<Record<TargetResult, string>> = {
  exited: 'ended when asked',
  killed: 'killed after it did not end when asked',
  already_gone: 'had ended by itself',
  not_same_process: 'is not the process that was approved, so it was left alone',
  refused: 'was left alone',
  still_there: 'is still there',
  respawned: 'ended, but another one was started in its place',
  removed: 'removed',
  in_use: 'is in use, so it was left alone',
  dropped: 'dropped',
};

/** How the run as a whole ended, from how its steps did. */
export function outcomeOf(steps: readonly StepReport[], stopped: string | null): { outcome: Outcome; reason?: string } {
  const has = (state: StepReport['state']): boolean => steps.some((step) => step.state === state);
  const bad = steps.find((s) => s.state === 'unknown' || s.state === 'failed');
  const why = (bad ?? steps.find((s) => s.state === 'not_run'))?.reason ?? stopped;
  const because = why === null ? {} : { reason: why };
  if (has('unknown')) return { outcome: 'unknown', ...because };
  if (steps.every((step) => step.state === 'skipped')) {
    return { outcome: 'nothing_to_do', reason: steps[0]?.reason ?? 'Nothing of the plan was left to do.' };
  }
  const whole = steps.every((step) => step.state === 'done' && step.targets.every(isGood));
  if (whole) return { outcome: 'succeeded' };
  if (!has('done')) return { outcome: 'failed', ...because };
  const partly = steps.find((step) => step.state !== 'done' || !step.targets.every(isGood))?.reason;
  return { outcome: 'partial', ...(partly === undefined ? because : { reason: partly }) };
}

const isGood = (target: { result?: TargetResult | undefined }): boolean =>
  target.result === undefined || good.has(target.result);

/** A sentence for everything that was to go and is still there. */
export function whatIsLeft(report: RunReport): string[] {
  return report.steps.flatMap((step) => {
    const left = step.targets.filter(
      (t) => t.result === 'still_there' || t.result === 'respawned' || t.result === 'in_use',
    );
    if (left.length === 0) return [];
    return [`${left.length} of ${step.targets.length} targets of ${step.id} remain. ${step.reason ?? ''}`.trim()];
  });
}
