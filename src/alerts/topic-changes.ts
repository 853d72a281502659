/** Compare-and-swap on topics: read, decide, write, and again when somebody else was first. */
import { randomBytes } from 'node:crypto';
import { ReclaimError } from '../errors.ts';
import type { TopicStore } from '../requests/topic-store.ts';
import type { Topic, TopicKind, TopicView } from './topics.ts';

export type TopicOf<K extends TopicKind> = Extract<Topic, { kind: K }>;

interface Next<T> {
  readonly topic: T;
  readonly deliver: readonly TopicView[];
}

/** Losing the race this often in a row means something is wrong, not busy. */
export const attemptsAtMost = 60;

export const newTopicId = (prefix: string): string => `${prefix}${randomBytes(6).toString('hex')}`;

export const tooBusy = (): ReclaimError =>
  new ReclaimError('request_changed', 'Too many changes at the same moment. Nothing was done. Try again.');

const isKind = <K extends TopicKind>(topic: Topic | null, kind: K): topic is TopicOf<K> => topic?.kind === kind;

/** The topic after the change; as it was when `attempt` says that nothing changes; null when there is none. */
export async function changeTopic<K extends TopicKind>(
  topics: TopicStore,
  kind: K,
  id: string,
  attempt: (topic: TopicOf<K>) => Next<TopicOf<K>> | null,
): Promise<TopicOf<K> | null> {
  for (let n = 0; n < attemptsAtMost; n += 1) {
    const topic = await topics.get(id);
    if (!isKind(topic, kind)) return null;
    const next = attempt(topic);
    if (next === null) return topic;
    const written = await topics.update(next);
    if (written.ok) return next.topic;
  }
  throw tooBusy();
}

export async function inSlot<K extends TopicKind>(
  topics: TopicStore,
  kind: K,
  name: string,
): Promise<TopicOf<K> | null> {
  const topic = await topics.inSlot(`${kind}.${name}`);
  return isKind(topic, kind) ? topic : null;
}

export async function liveTopics<K extends TopicKind>(topics: TopicStore, kind: K): Promise<TopicOf<K>[]> {
  return (await topics.live(kind)).filter((topic) => isKind(topic, kind));
}
