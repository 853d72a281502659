/**
 * What is kept beside the requests: incidents, questions about unknown hosts, silences and sweeps of the fleet. Each is a
 * record with a version, changed by compare-and-swap only. A topic that is live stands in a slot, which holds one at a
 * time; one without a slot is history.
 */
import { z } from 'zod';
import { alertSources } from './parsers/alert.ts';

const base = {
  id: z.string(),
  version: z.number().int().positive(),
  /** `incident.HOST`, `question.FINGERPRINT`, `silence.HOST`, `sweep.ID`; null once it is over. */
  slot: z.string().nullable(),
  /** Where its message lives; null for what has none. */
  channel: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
};

const kiB = z.number().int().nonnegative();
/** Available memory at one moment. */
export const figureSchema = z.object({ at: z.string(), availableKiB: kiB, totalKiB: kiB });
export type Figure = z.infer<typeof figureSchema>;

export const incidentStates = [
  'open', // an alert fired; the look is under way or could not be taken
  'diagnosed', // the report is in the thread
  'reclaiming', // an approved plan runs
  'recovered', // measured by us
  'resolved', // said by whoever sent the alert
  'closed', // over for longer than it could reopen
] as const;
export type IncidentState = (typeof incidentStates)[number];

export const incidentSchema = z.object({
  ...base,
  kind: z.literal('incident'),
  host: z.string(),
  state: z.enum(incidentStates),
  /** Why it is in this state, in one sentence of ours. */
  reason: z.string(),
  /** The first alert's own words: raw text. */
  title: z.string(),
  source: z.enum(alertSources),
  /** Firing alerts folded in so far. */
  count: z.number().int().positive(),
  lastFiredAt: z.string(),
  /** Fingerprints that fire now. */
  firing: z.array(z.string()),
  /** Messages of other bots it was told by: an edit of one may say that it is over. */
  told: z.array(z.object({ channel: z.string(), ts: z.string(), fingerprint: z.string() })),
  reopened: z.number().int().nonnegative(),
  endedAt: z.string().optional(),
  /** Newest request in its thread, and the state it was last seen in. */
  request: z.string().optional(),
  requestState: z.string().optional(),
  /** Said when the box was found to have plenty: the rule that fired is wrong, or it is over. */
  ruleWrong: z.string().optional(),
  /** How it came to this, from the readings of the watcher. */
  trend: z.string().optional(),
  /** What else there is to know about how it came in. */
  note: z.string().optional(),
  now: figureSchema.optional(),
  reclaim: z.object({ request: z.string(), at: z.string(), before: figureSchema, after: figureSchema }).optional(),
  /** Measured again so many minutes after the reclaim; without a figure, why there is none. */
  checks: z.array(
    z.object({ minutes: z.number(), at: z.string(), figure: figureSchema.optional(), why: z.string().optional() }),
  ),
  silence: z.object({ until: z.string(), by: z.string() }).optional(),
});
export type Incident = z.infer<typeof incidentSchema>;

/** An alert whose host is not known, or could be several. */
export const questionSchema = z.object({
  ...base,
  kind: z.literal('question'),
  title: z.string(),
  source: z.enum(alertSources),
  fingerprint: z.string(),
  /** The name it gave: raw text. */
  said: z.string().nullable(),
  /** The hosts it could be; empty = any. */
  candidates: z.array(z.string()),
  /** What the menu offers: the candidates, or all hosts there were. */
  choices: z.array(z.string()),
  count: z.number().int().positive(),
  /** Set when the sender said that it is over. */
  resolved: z.boolean(),
  told: z.object({ channel: z.string(), ts: z.string() }).optional(),
  answer: z.object({ host: z.string(), by: z.string(), at: z.string() }).optional(),
});
export type Question = z.infer<typeof questionSchema>;

export const silenceSchema = z.object({
  ...base,
  kind: z.literal('silence'),
  host: z.string(),
  until: z.string(),
  by: z.string(),
});
export type Silence = z.infer<typeof silenceSchema>;

export const sweepSchema = z.object({
  ...base,
  kind: z.literal('sweep'),
  requester: z.object({ id: z.string(), team: z.string().optional() }),
  /** What was asked for, in the asker's words: `all`, `@train`. */
  asked: z.string(),
  hosts: z.array(z.string()),
  endedAt: z.string().optional(),
});
export type Sweep = z.infer<typeof sweepSchema>;

/** What one host of a sweep answered. */
export const sweepRowSchema = z.object({
  host: z.string(),
  at: z.string(),
  tookMs: z.number().int().nonnegative(),
  /** `something`: there is a plan worth asking for. */
  outcome: z.enum(['fine', 'something', 'busy', 'unreachable', 'unseen']),
  /** One sentence: the verdict, or why the box could not be seen. */
  text: z.string(),
  errorCode: z.string().optional(),
  memory: z.object({ availableKiB: kiB, totalKiB: kiB }).optional(),
  reclaimableKiB: kiB.optional(),
  /** The request that was opened for it, or was open already. */
  request: z.string().optional(),
});
export type SweepRow = z.infer<typeof sweepRowSchema>;

export const topicSchema = z.discriminatedUnion('kind', [incidentSchema, questionSchema, silenceSchema, sweepSchema]);
export type Topic = z.infer<typeof topicSchema>;
export type TopicKind = Topic['kind'];

/** What is shown of a topic: one message each. */
export const topicViews = ['incident', 'incident_after', 'incident_end', 'question', 'sweep', 'sweep_file'] as const;
export type TopicView = (typeof topicViews)[number];

/** The view whose thread everything else of a topic belongs into. */
export const rootViewOf = (kind: TopicKind): TopicView | null =>
  kind === 'incident' ? 'incident' : kind === 'question' ? 'question' : kind === 'sweep' ? 'sweep' : null;

/** Everything else of a topic waits for its root and goes into its thread. */
export const isTopicView = (view: string): view is TopicView => topicViews.some((each) => each === view);
