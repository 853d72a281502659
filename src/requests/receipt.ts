/**
 * The receipt of a run: plan, people, steps, measured figures and the audit events of the request in one JSON file that
 * anybody can check without us. The hashes show that nothing in it was changed since it was written; that it was this bot
 * that wrote it, shows the same SHA-256 in the thread.
 */
import { z } from 'zod';
import { planSchema, runReportSchema } from '../memory/contract.ts';
import { canonicalJson, chainProblems, sha256 } from './chain.ts';
import { approvalDigest } from './digest.ts';
import { type AuditEvent, eventSchema, type RequestRecord, requestSchema } from './types.ts';

const shape = requestSchema.shape;
export const receiptSchema = z.strictObject({
  receipt: z.literal(1),
  request: z.string(),
  host: z.string(),
  state: shape.state,
  reason: z.string(),
  createdAt: z.string(),
  policyVersion: z.string(),
  hostKey: z.string(),
  bootId: z.string(),
  digest: z.string(),
  plan: planSchema,
  identities: shape.identities,
  people: z.strictObject({
    requester: shape.requester,
    required: z.number(),
    requiredWhy: z.string(),
    votes: shape.votes,
    kept: shape.kept,
  }),
  run: z.strictObject({ id: z.string(), worker: z.string(), startedAt: z.string() }),
  report: runReportSchema.nullable(),
  events: z.array(eventSchema),
  /** Over everything above, as canonical JSON. */
  sha256: z.string(),
});
export type Receipt = z.infer<typeof receiptSchema>;

/** Null for a request that never ran: there is nothing to give a receipt for. */
export function receiptOf(record: RequestRecord, events: readonly AuditEvent[]): Receipt | null {
  const { run, plan, hostKey, bootId, digest } = record;
  if (run === undefined || plan === null || hostKey === undefined || bootId === undefined || digest === undefined) {
    return null;
  }
  const open = {
    receipt: 1 as const,
    request: record.id,
    host: record.host,
    state: record.state,
    reason: record.reason,
    createdAt: record.createdAt,
    policyVersion: record.policyVersion,
    hostKey,
    bootId,
    digest,
    plan,
    identities: record.identities,
    people: {
      requester: record.requester,
      required: record.required,
      requiredWhy: record.requiredWhy,
      votes: record.votes,
      kept: record.kept,
    },
    run: { id: run.id, worker: run.worker, startedAt: run.startedAt },
    report: run.report ?? null,
    events: [...events],
  };
  return { ...open, sha256: sha256(canonicalJson(open)) };
}

export interface Verified {
  readonly receipt: Receipt | null;
  /** One sentence per thing that does not hold; none means the receipt is whole. */
  readonly problems: readonly string[];
}

/** Checks the text of a receipt file from itself alone. */
export function verifyReceipt(text: string): Verified {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { receipt: null, problems: ['This is not JSON, so it is no receipt.'] };
  }
  const parsed = receiptSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue === undefined || issue.path.length === 0 ? '' : ` (at ${issue.path.join('.')})`;
    return { receipt: null, problems: [`This is not a receipt of Reclaim${where}.`] };
  }
  const receipt = parsed.data;
  return {
    receipt,
    problems: [...hashProblems(receipt, json), ...approvalProblems(receipt), ...eventProblems(receipt)],
  };
}

function hashProblems(receipt: Receipt, json: unknown): string[] {
  const { sha256: claimed, ...open } = z.looseObject({ sha256: z.string() }).parse(json);
  return sha256(canonicalJson(open)) === claimed && claimed === receipt.sha256
    ? []
    : ['The SHA-256 does not fit: something in this file was changed after it was written.'];
}

function approvalProblems(receipt: Receipt): string[] {
  const problems: string[] = [];
  if (approvalDigest(receipt) !== receipt.digest) problems.push('The digest does not fit the plan.');
  const { votes, required } = receipt.people;
  const counting = votes.filter((v) => v.verdict === 'approve' && v.digest === receipt.digest);
  const people = new Set(counting.map((v) => v.person)).size;
  const glass = counting.some((v) => v.breakGlass === true);
  if (people < (glass ? 1 : Math.max(1, required))) {
    problems.push(`${required} people had to approve this very plan, and ${people} did.`);
  }
  const { report, run, request } = receipt;
  if (report !== null && (report.run !== run.id || report.request !== request)) {
    problems.push('The report belongs to another run.');
  }
  return problems;
}

function eventProblems({ events, request }: Receipt): string[] {
  const others = events.filter((event) => event.request !== request);
  const problems = others.map((event) => `Event ${event.seq} belongs to another request.`);
  problems.push(...chainProblems(events));
  const started = events.some((e) => e.what === 'run_started');
  if (!started) problems.push('The audit log in it does not show that the run was started.');
  return problems;
}
