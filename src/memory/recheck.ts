/**
 * At the moment of acting: what of an approved plan still holds on the box as it is now. Only ever takes things out. What
 * the fresh look would not propose again is dropped, whatever the reason; what it proposes on top is not added.
 */
import type { Capture, Finding, KillTarget, Plan, Step, TargetResult } from './contract.ts';
import { heldByTarget, identityOf, keepTargets } from './plan.ts';
import { targetKey, type Identity, type Thought } from './story.ts';
import { textOf } from './blob.ts';

export interface RecheckInput {
  readonly plan: Plan;
  readonly identities: Readonly<Record<string, Identity>>;
  readonly bootId: string;
  readonly fresh: Thought;
  /** pid -> start time of what lives now (see startTimesOf); without it, what cannot be found is taken to be gone. */
  readonly freshStat?: ReadonlyMap<number, number>;
}

export interface DroppedTarget {
  readonly stepId: string;
  readonly target: Step['targets'][number];
  readonly result: Extract<TargetResult, 'already_gone' | 'not_same_process' | 'refused'>;
  /** A sentence for people. */
  readonly reason: string;
}

export interface Recheck {
  /** Set when nothing of the plan may run any more: the sentence that says why. */
  readonly superseded: string | null;
  /** What is left, in order, with the ids of the plan. Empty when superseded. */
  readonly steps: readonly Step[];
  readonly dropped: readonly DroppedTarget[];
}

export function recheck(input: RecheckInput): Recheck {
  const superseded = supersededBecause(input.bootId, input.fresh.bootId);
  if (superseded !== null) return { superseded, steps: [], dropped: [] };
  const dropped: DroppedTarget[] = [];
  const steps: Step[] = [];
  for (const step of input.plan.steps) {
    const kept = recheckStep(step, input, dropped);
    if (kept.targets.length > 0) steps.push(kept);
  }
  return { superseded: null, steps, dropped };
}

function supersededBecause(planned: string, now: string): string | null {
  if (planned === '' || now === '') {
    return 'The box did not tell which boot it is in, so nothing of the plan can be matched to it. Nothing was done. Look again.';
  }
  return planned === now
    ? null
    : 'The box was restarted since the plan was made, so every process of it is gone. Nothing was done. Look again.';
}

function recheckStep(step: Step, input: RecheckInput, dropped: DroppedTarget[]): Step {
  const fresh = input.fresh.diagnosis;
  const drop = (target: Step['targets'][number], verdict: Verdict): void => {
    if (verdict !== null) dropped.push({ stepId: step.id, target, ...verdict });
  };
  const proposed = fresh.plan?.steps ?? [];
  switch (step.action) {
    case 'kill': {
      const verdicts = new Map(step.targets.map((t) => [targetKey(t), processVerdict(t, input)]));
      for (const target of step.targets) drop(target, verdicts.get(targetKey(target)) ?? null);
      return keepTargets(step, (t) => verdicts.get(targetKey(t)) === null, heldByTarget(fresh.findings));
    }
    case 'remove_files': {
      const files = proposed.flatMap((s) => (s.action === 'remove_files' ? s.targets : []));
      const targets = step.targets.filter((target) => {
        const verdict = files.some((f) => f.dev === target.dev && f.ino === target.ino && f.path === target.path)
          ? null
          : fileVerdict(target.path, fresh.findings);
        drop(target, verdict);
        return verdict === null;
      });
      return targets.length === step.targets.length ? step : shrunk({ ...step, targets }, sumKiB(targets));
    }
    case 'ipcrm': {
      const segments = proposed.flatMap((s) => (s.action === 'ipcrm' ? s.targets : []));
      const targets = step.targets.filter((target) => {
        const still = segments.some((s) => s.shmid === target.shmid);
        drop(target, still ? null : noLonger('segment'));
        return still;
      });
      return targets.length === step.targets.length ? step : shrunk({ ...step, targets }, sumKiB(targets));
    }
    case 'drop_caches': {
      if (proposed.some((s) => s.action === 'drop_caches')) return step;
      for (const target of step.targets) drop(target, noDrop);
      return { ...step, targets: [] };
    }
  }
}

type Verdict = Pick<DroppedTarget, 'result' | 'reason'> | null;

const noDrop: Verdict = { result: 'refused', reason: 'There is too little cache left for a drop to be worth it.' };
const noLonger = (what: string): Verdict => ({
  result: 'refused',
  reason: `A fresh look no longer finds this ${what} unused, or no longer finds it at all.`,
});

const sumKiB = (targets: readonly { kiB: number }[]): number => targets.reduce((sum, t) => sum + t.kiB, 0);

function shrunk<T extends Step>(step: T, mostKiB: number): T {
  const cap = ({ low, high }: { low: number; high: number }) => ({
    low: Math.min(0, low),
    high: Math.max(0, Math.min(high, mostKiB)),
  });
  return { ...step, expectedFreeKiB: cap(step.expectedFreeKiB), expectedAvailableKiB: cap(step.expectedAvailableKiB) };
}

/** Null = may be signalled: proposed again, and everything that pins it is as approved. */
function processVerdict(target: KillTarget, input: RecheckInput): Verdict {
  const { fresh, freshStat } = input;
  const key = targetKey(target);
  const proposed = (fresh.diagnosis.plan?.steps ?? []).some(
    (step) => step.action === 'kill' && step.targets.some((t) => targetKey(t) === key),
  );
  if (proposed) return identityVerdict(identityOf(input.identities, target), identityOf(fresh.identities, target));
  const listed = fresh.diagnosis.findings.flatMap((f) => f.processes ?? []).filter((p) => p.pid === target.pid);
  const startTime = freshStat?.get(target.pid) ?? listed[0]?.startTime;
  if (startTime === undefined) return { result: 'already_gone', reason: 'It ended by itself before we acted.' };
  if (startTime !== target.startTime) {
    return { result: 'not_same_process', reason: 'It ended, and another process has its number now.' };
  }
  return {
    result: 'refused',
    reason: 'It no longer looks left over: a fresh look finds signs of life, or it is protected or kept by its owner.',
  };
}

function identityVerdict(approved: Identity, now: Identity): Verdict {
  if (approved.uid !== now.uid) return { result: 'not_same_process', reason: 'It now runs as another user.' };
  if (approved.exe !== now.exe) return { result: 'not_same_process', reason: 'It now runs another program.' };
  return null;
}

function fileVerdict(path: string, findings: readonly Finding[]): Verdict {
  return findings.some((f) => f.paths?.includes(path) === true)
    ? noLonger('file')
    : { result: 'already_gone', reason: 'It was removed, or replaced by another file, before we acted.' };
}

/** pid -> start time of every process that is not a zombie, from the newest look a capture holds. */
export function startTimesOf(capture: Capture): Map<number, number> {
  const found = new Map<number, number>();
  for (const files of [capture.files, capture.later]) {
    const seen = new Map<number, number>();
    for (const [path, blob] of Object.entries(files)) {
      const pid = /^\/proc\/(\d{1,10})\/stat$/.exec(path)?.[1];
      if (pid === undefined) continue;
      const text = textOf(blob);
      // The name may hold anything, a bracket too: fields begin after the last one.
      const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      const startTime = Number(fields[18]);
      if (state !== 'Z' && state !== 'X' && Number.isSafeInteger(startTime)) seen.set(Number(pid), startTime);
    }
    if (seen.size > 0) {
      found.clear();
      for (const [pid, startTime] of seen) found.set(pid, startTime);
    }
  }
  return found;
}
