/** Sends what belongs to a topic (an incident, a question, a sweep), and finds the thread of an incident for its requests. */
import type { WebClient } from '@slack/web-api';
import { rootViewOf, type Topic, type TopicView } from '../alerts/topics.ts';
import type { Store } from '../requests/store.ts';
import { deliveryKey, type Delivery, type RequestRecord } from '../requests/types.ts';
import { sendFile, sendMessage, type Address } from './deliver.ts';
import { renderTopic } from './blocks/topic.ts';

/** Not now, or never, and why. */
export type Unsent = { readonly waitMs: number } | { readonly givenUp: string };
export type Sent = Unsent | { readonly called: boolean; readonly ts?: string };

const soonMs = 300;

/** The thread of a topic: waits while its root is still on the way; null when it has no message of its own. */
async function threadOfTopic(store: Store, topic: Topic | null): Promise<string | Unsent | null> {
  const view = topic === null ? null : rootViewOf(topic.kind);
  if (topic === null || view === null) return null;
  const root = await store.delivery(deliveryKey(topic.id, view));
  if (root === null) return null;
  if (root.givenUp !== undefined) return { givenUp: `the message of its thread could not be posted: ${root.givenUp}` };
  return root.messageTs ?? { waitMs: soonMs };
}

/** Where the card of a request goes: into the thread of its incident; a sweep's requests stand for themselves. */
export async function cardAddress(store: Store, record: RequestRecord, channel: string): Promise<Address | Unsent> {
  if (record.threadTs !== undefined) return { channel, threadTs: record.threadTs };
  const topic = record.topic === undefined ? null : await store.topics.get(record.topic);
  if (topic?.kind !== 'incident') return { channel };
  const thread = await threadOfTopic(store, topic);
  if (thread === null) return { channel };
  // A lost root must not keep a report from people.
  if (typeof thread !== 'string') return 'givenUp' in thread ? { channel } : thread;
  return { channel, threadTs: thread };
}

export const threadOf = (to: Address | Unsent): { readonly threadTs?: string } =>
  'channel' in to && to.threadTs !== undefined ? { threadTs: to.threadTs } : {};

export interface TopicParts {
  readonly store: Store;
  readonly client: WebClient;
}

/** Rendered from the newest state, like everything else. */
export async function sendTopic({ store, client }: TopicParts, delivery: Delivery, view: TopicView): Promise<Sent> {
  const topic = await store.topics.get(delivery.requestId);
  if (topic === null) return { givenUp: 'it is not in the store any more' };
  const { channel } = delivery;
  let to: Address = { channel };
  if (view !== rootViewOf(topic.kind)) {
    const thread = await threadOfTopic(store, topic);
    if (thread !== null && typeof thread !== 'string') return thread;
    if (thread !== null) to = { channel, threadTs: thread };
  }
  const rows = topic.kind === 'sweep' ? await store.topics.rows(topic.id) : [];
  const request = topic.kind === 'incident' && topic.request !== undefined ? await store.get(topic.request) : null;
  const rendered = renderTopic(topic, view, { rows, request });
  switch (rendered.kind) {
    case 'nothing':
      return { called: false };
    case 'message':
      return { called: true, ts: await sendMessage(client, to, delivery, topic, rendered.message) };
    case 'file':
      await sendFile(client, to, delivery, topic, rendered.file);
      return { called: true };
  }
}
