/** What the handlers of commands, clicks and dialogs share: their parts, private answers, and once-only handling. */
import { randomUUID } from 'node:crypto';
import type { WebClient } from '@slack/web-api';
import type { Deps } from '../deps.ts';
import { asReclaimError } from '../errors.ts';
import type { Directory } from '../requests/directory.ts';
import { deliveryKey, slackPersonToken, type Person, type RequestRecord } from '../requests/types.ts';
import { cut, limits, mrkdwn, withPeople } from './text.ts';

export interface Surface {
  readonly deps: Deps;
  readonly directory: Directory;
  /** For answers to people who wait: never shares a queue with posts, fails at once when rate limited. */
  readonly client: WebClient;
  /** The workspace this bot lives in. */
  readonly homeTeam: string;
}

/** Redelivered envelopes stay known for longer than Slack retries. */
const rememberMs = 15 * 60_000;

/** True for the first delivery of a command or click in any process, false for its copies. */
export async function isFirst({ deps }: Surface, name: string): Promise<boolean> {
  return await deps.store.hold(`slack.${name}`, randomUUID(), rememberMs);
}

/** Says something to one person only. `say` is how; the text is ours, its `@U…` tokens become mentions. */
export type Whisper = (text: string) => Promise<unknown>;

/** The people a sentence of our own names, as mentions; the sentence itself is escaped. */
export function ownSentence(sentence: string): string {
  const people = new Set(Array.from(sentence.matchAll(slackPersonToken), (m) => m[1] ?? ''));
  return mrkdwn(withPeople(sentence, people), limits.fallbackChars);
}

/** Runs the work behind a click or command; whatever goes wrong becomes one private sentence, never silence. */
export async function answering(surface: Surface, whisper: Whisper, work: () => Promise<void>): Promise<void> {
  const { log } = surface.deps;
  try {
    await work();
  } catch (thrown) {
    const error = asReclaimError(thrown);
    if (error.code === 'internal') log.error({ err: thrown }, 'a Slack handler failed');
    else log.info({ code: error.code }, error.message);
    try {
      await whisper(ownSentence(error.userText));
    } catch (cause) {
      log.warn({ err: cause, code: error.code }, 'the answer could not be given to the person');
    }
  }
}

/** An acknowledgement can fail when the socket just went; the work is safe to do all the same. */
export async function acknowledge(surface: Surface, ack: () => Promise<unknown>): Promise<void> {
  try {
    await ack();
  } catch (error) {
    surface.deps.log.warn({ err: error }, 'an acknowledgement did not reach Slack');
  }
}

export function personOf(id: string, team: string | null | undefined): Person {
  return team === null || team === undefined ? { id } : { id, team };
}

const queuePatienceMs = 700;

/** A sentence when what was just put up has to wait because the queue does not answer. What was recorded stands. */
export async function queueWords({ deps }: Surface, what: string): Promise<string | null> {
  const answered = new AbortController();
  const late = deps.clock.sleep(queuePatienceMs, answered.signal).then(
    () => false,
    () => true,
  );
  const asked = deps.queue.ping().then(
    () => true,
    () => false,
  );
  const answers = await Promise.race([asked, late]);
  answered.abort(new Error('answered'));
  if (answers) return null;
  return `The queue does not answer, so ${what} waits. It is recorded and starts by itself when the queue is back; the card shows it. If this lasts, tell who runs Reclaim.`;
}

/** `https://…` to the card, or null while it has not been posted. */
export async function linkToCard({ deps, client }: Surface, record: RequestRecord): Promise<string | null> {
  const card = await deps.store.delivery(deliveryKey(record.id, 'card'));
  if (card?.messageTs === undefined) return null;
  try {
    const answer = await client.chat.getPermalink({ channel: card.channel, message_ts: card.messageTs });
    return answer.permalink ?? null;
  } catch (error) {
    deps.log.info({ err: error }, 'no link to the card');
    return null;
  }
}

/** A link of Slack's own making, as mrkdwn. */
export const linked = (url: string | null, label: string): string =>
  url === null || !/^https?:\/\/[^\s<>|]+$/.test(url) ? label : `<${url}|${cut(label, 75)}>`;
