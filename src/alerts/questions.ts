/** Alerts whose host is not known: asked about once, folded while they repeat, and remembered for a day when answered. */
import type { Arrival } from './incident/state.ts';
import { type IncidentParts, raise } from './incidents.ts';
import type { Alert } from './parsers/alert.ts';
import type { Mapped } from './parsers/hosts.ts';
import { attemptsAtMost, changeTopic, inSlot, liveTopics, newTopicId, tooBusy } from './topic-changes.ts';
import type { Question } from './topics.ts';

const rememberedMs = 24 * 3_600_000;
/** A sender that names hosts we do not have must not fill the channel. */
const openAtMost = 20;
const iso = (ms: number): string => new Date(ms).toISOString();

export interface Unclear {
  readonly alert: Alert;
  readonly mapped: Exclude<Mapped, { kind: 'known' }>;
  readonly channel: string;
  readonly arrival: Arrival;
  readonly edited: boolean;
}

/** Asks in the channel, or counts the repeat. Answers the host when a person already said which one it is. */
export async function askWhich(parts: IncidentParts, unclear: Unclear): Promise<string | null> {
  const { topics } = parts.store;
  const { fingerprint } = unclear.alert;
  for (let n = 0; n < attemptsAtMost; n += 1) {
    const there = await inSlot(topics, 'question', fingerprint);
    if (there !== null) {
      const { answer } = there;
      if (answer !== undefined && parts.config.hosts.has(answer.host)) return answer.host;
      if (answer !== undefined || unclear.edited) return null;
      const at = iso(unclear.arrival.nowMs);
      const topic = { ...there, count: there.count + 1, resolved: false, updatedAt: at, version: there.version + 1 };
      if ((await topics.update({ topic, deliver: ['question'] })).ok) return null;
      continue;
    }
    if ((await topics.live('question')).length >= openAtMost) {
      parts.log.warn(
        { title: unclear.alert.title },
        'too many alerts for unknown hosts are open; this one was not asked about',
      );
      return null;
    }
    if ((await topics.create({ topic: question(parts, unclear), deliver: ['question'] })).ok) return null;
  }
  throw tooBusy();
}

function question(parts: IncidentParts, { alert, mapped, channel, arrival }: Unclear): Question {
  const at = iso(arrival.nowMs);
  return {
    kind: 'question',
    id: newTopicId('q'),
    version: 1,
    slot: `question.${alert.fingerprint}`,
    channel,
    createdAt: at,
    updatedAt: at,
    title: alert.title,
    source: alert.source,
    fingerprint: alert.fingerprint,
    said: mapped.kind === 'several' ? (alert.hints[0]?.said ?? null) : mapped.said,
    candidates: mapped.kind === 'several' ? [...mapped.hosts] : [],
    choices: [...(mapped.kind === 'several' ? mapped.hosts : parts.config.hosts.keys())].slice(0, 100),
    count: 1,
    resolved: false,
    ...(arrival.told === undefined ? {} : { told: arrival.told }),
  };
}

/** A person says which host it is (opens its incident), or that it is none of ours (`host` null). */
export async function answerQuestion(
  parts: IncidentParts,
  id: string,
  { host, by }: { host: string | null; by: string },
): Promise<void> {
  const nowMs = parts.clock.now();
  const answered = await changeTopic(parts.store.topics, 'question', id, (current) => {
    if (current.answer !== undefined) return null;
    const answer = { host: host ?? '', by, at: iso(nowMs) };
    return {
      topic: { ...current, answer, updatedAt: iso(nowMs), version: current.version + 1 },
      deliver: ['question'],
    };
  });
  if (answered === null || host === null || answered.answer?.host !== host || answered.channel === null) return;
  const { channel, title, source, fingerprint, told } = answered;
  const arrival: Arrival = { nowMs, ...(told === undefined ? {} : { told }) };
  await raise(parts, { host, channel, alert: { title, source, fingerprint }, arrival, edited: false });
}

export async function resolveQuestions(
  parts: IncidentParts,
  fingerprint: string,
  told: { channel: string; ts: string } | undefined,
): Promise<void> {
  const { topics } = parts.store;
  for (const each of await liveTopics(topics, 'question')) {
    const same = told !== undefined && each.told?.ts === told.ts && each.told.channel === told.channel;
    if ((each.fingerprint !== fingerprint && !same) || each.answer !== undefined) continue;
    const at = iso(parts.clock.now());
    await changeTopic(topics, 'question', each.id, (current) => ({
      topic: { ...current, resolved: true, slot: null, updatedAt: at, version: current.version + 1 },
      deliver: ['question'],
    }));
  }
}

/** Questions and answers are good for a day. */
export async function forgetQuestions(parts: IncidentParts): Promise<void> {
  const { topics } = parts.store;
  for (const each of await liveTopics(topics, 'question')) {
    const nowMs = parts.clock.now();
    if (Date.parse(each.updatedAt) > nowMs - rememberedMs) continue;
    await changeTopic(topics, 'question', each.id, (current) => ({
      topic: { ...current, slot: null, updatedAt: iso(nowMs), version: current.version + 1 },
      deliver: [],
    }));
  }
}
