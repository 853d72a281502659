/** What passes over the store's socket: one JSON object a line, checked on both sides. */
import { z } from 'zod';
import { sampleSchema } from '../alerts/watch/sample.ts';
import { sweepRowSchema, type TopicKind, topicSchema, topicViews } from '../alerts/topics.ts';
import type { Store } from './store.ts';
import { deliverySchema, eventSchema, processSchema, requestSchema, requestStates, requestViews } from './types.ts';

const newEvent = eventSchema.omit({ seq: true, hash: true, previousHash: true });
const change = z.object({
  record: requestSchema,
  events: z.array(newEvent).default([]),
  deliver: z.array(z.enum(requestViews)).default([]),
});
const writeResult = z.union([
  z.object({ ok: z.literal(true), record: requestSchema }),
  z.object({
    ok: z.literal(false),
    why: z.enum(['changed', 'exists', 'host_busy']),
    current: requestSchema.nullable(),
  }),
]);
const text = z.string();
const nothing = z.null();
const outcome = z.union([
  z.object({ delivered: z.number(), messageTs: text.exactOptional() }),
  z.object({ retryAt: text }),
  z.object({ givenUp: text }),
]);
const listFilter = z.object({
  states: z.array(z.enum(requestStates)).exactOptional(),
  host: text.exactOptional(),
  limit: z.number(),
});
const eventFilter = z.object({
  request: text.exactOptional(),
  host: text.exactOptional(),
  afterSeq: z.number().exactOptional(),
  limit: z.number(),
});
const wish = z.object({ host: text, bootId: text, target: text, by: text, at: text });

const totals = z.record(text, z.number());
const trimLimits = z.object({ requestsBefore: text, requestsAtMost: z.number(), auditBefore: text });
const trimmed = z.object({ requests: z.number(), events: z.number() });
const backupPart = z.object({
  records: z.array(requestSchema).exactOptional(),
  events: z.array(eventSchema).exactOptional(),
  totals: totals.exactOptional(),
});

const topicChange = z.object({ topic: topicSchema, deliver: z.array(z.enum(topicViews)).default([]) });
const topicResult = z.union([
  z.object({ ok: z.literal(true), topic: topicSchema }),
  z.object({
    ok: z.literal(false),
    why: z.enum(['changed', 'exists', 'slot_taken']),
    current: topicSchema.nullable(),
  }),
]);
const topicKind = z.enum(['incident', 'question', 'silence', 'sweep'] satisfies TopicKind[]);
const sweepRef = z.object({ id: text, channel: text.nullable() });

interface Method<Result> {
  readonly result: z.ZodType<Result>;
  /** Checks the arguments as they came over the wire, then calls. */
  answer(store: Store, args: unknown): Promise<unknown>;
}

const method = <Args, Result>(
  args: z.ZodType<Args>,
  result: z.ZodType<Result>,
  call: (store: Store, args: Args) => Promise<unknown>,
): Method<Result> => ({ result, answer: async (store, raw) => (await call(store, args.parse(raw))) ?? null });

/** Every store call that crosses the socket; `onDelivery` becomes a pushed line, `close` stays on its side. */
export const methods = {
  create: method(z.tuple([change]), writeResult, (s, [a]) => s.create(a)),
  update: method(z.tuple([change]), writeResult, (s, [a]) => s.update(a)),
  get: method(z.tuple([text]), requestSchema.nullable(), (s, [a]) => s.get(a)),
  openFor: method(z.tuple([text]), requestSchema.nullable(), (s, [a]) => s.openFor(a)),
  list: method(z.tuple([listFilter]), z.array(requestSchema), (s, [a]) => s.list(a)),
  appendEvents: method(z.tuple([z.array(newEvent)]), nothing, (s, [a]) => s.appendEvents(a)),
  events: method(z.tuple([eventFilter]), z.array(eventSchema), (s, [a]) => s.events(a)),
  claimDeliveries: method(z.tuple([text, z.number(), z.number()]), z.array(deliverySchema), (s, [a, b, c]) =>
    s.claimDeliveries(a, b, c),
  ),
  settleDelivery: method(z.tuple([text, text, outcome]), nothing, (s, [a, b, c]) => s.settleDelivery(a, b, c)),
  delivery: method(z.tuple([text]), deliverySchema.nullable(), (s, [a]) => s.delivery(a)),
  undelivered: method(z.tuple([]), z.object({ count: z.number(), oldestAt: text.nullable() }), (s) => s.undelivered()),
  keep: method(z.tuple([wish]), nothing, (s, [a]) => s.keep(a)),
  kept: method(z.tuple([text, text]), z.array(z.object({ target: text, by: text })), (s, [a, b]) => s.kept(a, b)),
  hold: method(z.tuple([text, text, z.number()]), z.boolean(), (s, [a, b, c]) => s.hold(a, b, c)),
  release: method(z.tuple([text, text]), nothing, (s, [a, b]) => s.release(a, b)),
  totals: method(z.tuple([]), totals, (s) => s.totals()),
  deployment: method(z.tuple([]), text, (s) => s.deployment()),
  beat: method(z.tuple([processSchema, z.number()]), nothing, (s, [a, b]) => s.beat(a, b)),
  leave: method(z.tuple([text]), nothing, (s, [a]) => s.leave(a)),
  processes: method(z.tuple([]), z.array(processSchema), (s) => s.processes()),
  trim: method(z.tuple([trimLimits]), trimmed, (s, [a]) => s.trim(a)),
  restore: method(z.tuple([backupPart]), nothing, (s, [a]) => s.restore(a)),
  createTopic: method(z.tuple([topicChange]), topicResult, (s, [a]) => s.topics.create(a)),
  updateTopic: method(z.tuple([topicChange]), topicResult, (s, [a]) => s.topics.update(a)),
  topic: method(z.tuple([text]), topicSchema.nullable(), (s, [a]) => s.topics.get(a)),
  topicInSlot: method(z.tuple([text]), topicSchema.nullable(), (s, [a]) => s.topics.inSlot(a)),
  liveTopics: method(z.tuple([topicKind]), z.array(topicSchema), (s, [a]) => s.topics.live(a)),
  putRow: method(z.tuple([sweepRef, sweepRowSchema]), nothing, (s, [a, b]) => s.topics.putRow(a, b)),
  rows: method(z.tuple([text]), z.array(sweepRowSchema), (s, [a]) => s.topics.rows(a)),
  addSample: method(z.tuple([text, sampleSchema]), nothing, (s, [a, b]) => s.topics.addSample(a, b)),
  samples: method(z.tuple([text, z.number()]), z.array(sampleSchema), (s, [a, b]) => s.topics.samples(a, b)),
  trimTopics: method(z.tuple([text]), z.number(), (s, [a]) => s.topics.trim(a)),
  ping: method(z.tuple([]), nothing, (s) => s.ping()),
};
export type MethodName = keyof typeof methods;
export type ResultOf<M extends MethodName> = z.infer<(typeof methods)[M]['result']>;

export const questionSchema = z.object({ id: z.number(), method: text, args: z.array(z.unknown()) });
export const lineSchema = z.union([
  z.object({ id: z.number(), ok: z.literal(true), value: z.unknown() }),
  z.object({ id: z.number(), ok: z.literal(false), code: text, text }),
  z.object({ wake: z.literal(true) }),
]);
export type Line = z.infer<typeof lineSchema>;

/** Rejects for an unknown method or a wrong argument. */
export async function answer(store: Store, name: string, args: unknown): Promise<unknown> {
  const known = new Map<string, Method<unknown>>(Object.entries(methods)).get(name);
  if (known === undefined) throw new Error(`no store method ${name}`);
  return await known.answer(store, args);
}
