/**
 * What is counted over all time. Each record contributes a fixed set of numbers, so the totals of a store are the sum over
 * its records by construction: a write adds what its record contributes now and takes away what it did before. They stay
 * when old records are removed.
 */
import type { StepReport } from '../memory/contract.ts';
import { isOpen } from './state.ts';
import type { RequestRecord } from './types.ts';

/** Name -> count; names are words joined by dots, sizes end in `Kib`. */
export type Totals = Readonly<Record<string, number>>;

/** How far outside the promised range a step's measured gain was. */
export function outsideKiB(step: StepReport): number {
  const { low, high } = step.expectedFreeKiB;
  const got = step.measured?.freeKiB ?? low;
  if (got < low) return low - got;
  return Math.max(0, got - high);
}

function add(totals: Record<string, number>, name: string, by: number): void {
  const sum = (totals[name] ?? 0) + by;
  if (sum === 0) Reflect.deleteProperty(totals, name);
  else totals[name] = sum;
}

function addStep(totals: Record<string, number>, step: StepReport): void {
  add(totals, `steps.${step.action}.${step.state}`, 1);
  if (step.measured === undefined) return;
  add(totals, `expectedLowKib.${step.action}`, step.expectedFreeKiB.low);
  add(totals, `expectedHighKib.${step.action}`, step.expectedFreeKiB.high);
  // A total never falls: what others took meanwhile is not what this step took.
  add(totals, `gaveBackKib.${step.action}`, Math.max(0, step.measured.freeKiB));
  add(totals, `outsideKib.${step.action}`, outsideKiB(step));
}

/** What one record adds to the totals, in whatever state it is. */
export function contribution(record: RequestRecord): Totals {
  const totals: Record<string, number> = { 'requests.asked': 1 };
  const { state, diagnosis, run, errorCode } = record;
  if (diagnosis !== undefined) add(totals, `looks.${diagnosis.verdict}`, 1);
  if (isOpen(state)) return totals;
  add(totals, `requests.ended.${state}`, 1);
  if (diagnosis === undefined && state === 'failed') add(totals, `lookErrors.${errorCode ?? 'internal'}`, 1);
  if (run === undefined) return totals;
  add(totals, `runs.${run.report?.outcome ?? state}`, 1);
  if (errorCode !== undefined) add(totals, `runErrors.${errorCode}`, 1);
  for (const step of run.report?.steps ?? []) addStep(totals, step);
  return totals;
}

/** What writing `next` over `previous` changes in the totals, with one count per kind of audit event. */
export function totalsChange(
  previous: RequestRecord | null,
  next: RequestRecord | null,
  events: readonly { readonly what: string }[],
): Totals {
  const change: Record<string, number> = {};
  if (next !== null) for (const [name, n] of Object.entries(contribution(next))) add(change, name, n);
  if (previous !== null) for (const [name, n] of Object.entries(contribution(previous))) add(change, name, -n);
  for (const { what } of events) add(change, `events.${what}`, 1);
  return change;
}

/** The totals of everything given, from nothing. */
export function totalsOf(records: readonly RequestRecord[], events: readonly { readonly what: string }[]): Totals {
  const totals: Record<string, number> = {};
  for (const record of records) for (const [name, n] of Object.entries(contribution(record))) add(totals, name, n);
  for (const { what } of events) add(totals, `events.${what}`, 1);
  return totals;
}
