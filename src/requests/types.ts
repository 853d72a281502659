/**
 * A request is one plan awaiting people. Its record is the whole truth about it: cards, logs, receipts and recovery are
 * all derived from here. Records change only by compare-and-swap on `version` (see Store).
 */
import { z } from 'zod';
import { topicViews } from '../alerts/topics.ts';
import { diagnosisSchema, planSchema, runReportSchema } from '../memory/contract.ts';

export const requestStates = [
  'draft', // asked for; the look is queued or under way
  'pending', // plan shown, waiting for people
  'approved', // enough people agreed; not started yet
  'running', // a worker holds it
  'succeeded',
  'failed',
  'unknown', // the outcome was not observed
  'denied',
  'expired',
  'cancelled',
  'superseded', // the box or the policy changed: a new look is needed
  'blocked', // policy lets nobody approve it
] as const;
export type RequestState = (typeof requestStates)[number];

/** A person is a Slack user id, or `unix:NAME` for a Unix user that policy.people does not map. */
export const personSchema = z.object({ id: z.string(), team: z.string().optional() });
export type Person = z.infer<typeof personSchema>;

/** How a person is named in `reason`, `requiredWhy` and in the sentences of refusals: `@U0123ABCD`, `@unix:alice`. */
export const personToken = (id: string): string => `@${id}`;
/** Finds the Slack people among those tokens; group 1 is the user id. Host text and typed reasons are never searched. */
export const slackPersonToken = /@([UW][A-Z0-9]{2,})\b/g;

/** The requester of what an alert opened: nobody can cancel it, and no process is its own. */
export const alertRequester = 'alert';

const surfaceSchema = z.enum(['slack', 'cli', 'alert', 'system']);
export type Surface = z.infer<typeof surfaceSchema>;

export const voteSchema = z.object({
  person: z.string(),
  verdict: z.enum(['approve', 'deny']),
  at: z.string(),
  /** Ids of the steps this person agreed to, and the kill targets taken out of them. */
  steps: z.array(z.string()),
  /** The request's digest at the moment of the vote: an approval counts only while it is still the current one. */
  digest: z.string().optional(),
  /** Set when policy.break_glass let this one approval stand for all. */
  breakGlass: z.literal(true).optional(),
  /** Typed by a person: shown as plain text, never as markup. */
  reason: z.string().optional(),
});
export type Vote = z.infer<typeof voteSchema>;

export const requestSchema = z.object({
  id: z.string(),
  version: z.number().int().positive(),
  state: z.enum(requestStates),
  /**
   * Why the request is in this state, in one sentence: feeds card, log and audit alike. Free of markup; a person is
   * written `@ID` (see personToken), which the Slack layer turns into a mention and the terminal prints as it is.
   */
  reason: z.string(),
  host: z.string(),
  surface: surfaceSchema,
  requester: personSchema,
  /** Where the card lives; absent for requests made in a terminal. */
  channel: z.string().optional(),
  /** Set when the card belongs into an existing thread (an alert's). */
  threadTs: z.string().optional(),
  /** The incident or sweep it was opened for. An incident's card goes into the incident's thread, once that is there. */
  topic: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
  lookedAt: z.string().optional(),
  pendingUntil: z.string().optional(),
  unusedUntil: z.string().optional(),
  hostKey: z.string().optional(),
  bootId: z.string().optional(),
  policyVersion: z.string(),
  diagnosis: diagnosisSchema.optional(),
  /** By `pid:startTime`: what pins each process of the plan beside pid and start time. */
  identities: z.record(z.string(), z.object({ uid: z.number().int().nullable(), exe: z.string().nullable() })),
  /** What may be approved: the diagnosis' plan after policy. Null when there is nothing to approve. */
  plan: planSchema.nullable(),
  /** Digest over plan, host key and boot id: what the votes are bound to. */
  digest: z.string().optional(),
  /** How many distinct people must agree, and the sentence that says why. */
  required: z.number().int().nonnegative(),
  requiredWhy: z.string(),
  votes: z.array(voteSchema),
  /** Targets owners or approvers took out, by `pid:startTime`, with who did it. */
  kept: z.array(z.object({ target: z.string(), by: z.string(), why: z.string() })),
  /** Whose processes the plan would end, as it was first shown: each is told once, by name, in the thread. */
  owners: z.array(z.object({ person: z.string(), targets: z.array(z.string()) })).optional(),
  run: z
    .object({
      id: z.string(),
      worker: z.string(),
      startedAt: z.string(),
      /** Renewed by the worker while it works; a run whose time passed is unknown. */
      aliveUntil: z.string(),
      dryRun: z.boolean(),
      /** What is being waited for right now, in words, for the card. */
      doing: z.string().optional(),
      report: runReportSchema.optional(),
    })
    .optional(),
  /** The error that ended it, where one did. */
  errorCode: z.string().optional(),
});
export type RequestRecord = z.infer<typeof requestSchema>;

/** One line of the append-only audit log. `hash` chains it to the event before. */
export const eventSchema = z.object({
  seq: z.number().int().positive(),
  at: z.string(),
  request: z.string(),
  host: z.string(),
  who: z.string(),
  surface: surfaceSchema,
  /** What happened or was tried: `approved`, `denied`, `race_lost`, `refused`, `expired`, `run_started`, … */
  what: z.string(),
  why: z.string(),
  digest: z.string().optional(),
  previousHash: z.string(),
  hash: z.string(),
});
export type AuditEvent = z.infer<typeof eventSchema>;
export type NewAuditEvent = Omit<AuditEvent, 'seq' | 'hash' | 'previousHash'>;

export const requestViews = [
  'card',
  'details',
  'owners',
  'outcome',
  'plan_file',
  'receipt_file',
  'picture',
  'break_glass',
] as const;

/**
 * One thing a person should see, rendered from the record at the moment it is sent, so that a late delivery shows the
 * newest state. `key` is unique: putting it again only raises `revision` (coalescing).
 */
export const deliverySchema = z.object({
  key: z.string(),
  channel: z.string(),
  /** Of a request, or of a topic (src/alerts/topics.ts): the view tells which. */
  requestId: z.string(),
  view: z.enum([...requestViews, ...topicViews]),
  revision: z.number().int().positive(),
  deliveredRevision: z.number().int().nonnegative(),
  /** Timestamp of the message once posted. */
  messageTs: z.string().optional(),
  attempts: z.number().int().nonnegative(),
  notBefore: z.string().optional(),
  claimedBy: z.string().optional(),
  claimedUntil: z.string().optional(),
  /** Set when Slack refused it for good (channel gone): the reason, never silently dropped. */
  givenUp: z.string().optional(),
});
export type Delivery = z.infer<typeof deliverySchema>;
/** What is shown of a request. */
export type View = (typeof requestViews)[number];
/** One message per request (or topic) and view. */
export const deliveryKey = (requestId: string, view: Delivery['view']): string => `${requestId}.${view}`;

/** One running process of a deployment, as it last said of itself. */
export const processSchema = z.object({
  instance: z.string(),
  role: z.enum(['all', 'gateway', 'worker']),
  startedAt: z.string(),
  seenAt: z.string(),
  release: z.string(),
  policyVersion: z.string(),
  /** Slack sockets it holds open; 0 for workers. */
  sockets: z.number().int().nonnegative(),
});
export type ProcessInfo = z.infer<typeof processSchema>;
