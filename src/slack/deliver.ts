/** Sends one delivery: posts, edits or uploads the newest state, and finds what an earlier try already posted. */
import type { WebClient } from '@slack/web-api';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';
import { deliveryKey, type Delivery, type RequestRecord } from '../requests/types.ts';
import type { Message } from './blocks/elements.ts';
import type { TextFile } from './blocks/thread.ts';
import { failureOf } from './failures.ts';

export interface Address {
  readonly channel: string;
  readonly threadTs?: string;
}

const eventType = 'reclaim';
const pageSize = 200;
const pagesAtMost = 5;

const messageSchema = z.object({
  ts: z.string(),
  metadata: z
    .object({ event_type: z.string(), event_payload: z.record(z.string(), z.unknown()) })
    .partial()
    .optional(),
  files: z.array(z.object({ name: z.string().nullish() })).optional(),
});
type Posted = z.infer<typeof messageSchema>;

/** Reads what was posted since the request was made, until `is` recognises one. */
async function findPosted(
  client: WebClient,
  to: Address,
  since: string,
  is: (message: Posted) => boolean,
): Promise<string | null> {
  // A minute earlier, for clocks that differ.
  const oldest = String(Math.floor(Date.parse(since) / 1000) - 60);
  let cursor: string | undefined;
  for (let page = 0; page < pagesAtMost; page += 1) {
    const common = {
      channel: to.channel,
      oldest,
      limit: pageSize,
      include_all_metadata: true,
      ...(cursor === undefined ? {} : { cursor }),
    };
    const answer =
      to.threadTs === undefined
        ? await client.conversations.history(common)
        : await client.conversations.replies({ ...common, ts: to.threadTs });
    const found = z
      .array(messageSchema)
      .parse(answer.messages ?? [])
      .find(is);
    if (found !== undefined) return found.ts;
    cursor = answer.response_metadata?.next_cursor;
    if (cursor === undefined || cursor === '') return null;
  }
  return null;
}

/** Blocks Slack refuses are said again in simpler ones, then as plain text: a poorer message is better than none. */
async function orPlainText<T>(
  { text, blocks, simpler }: Message,
  send: (payload: { text: string; blocks: Message['blocks'] }) => Promise<T>,
): Promise<T> {
  const poorer = [...(simpler === undefined ? [] : [simpler]), []];
  for (let tried = blocks; ;) {
    try {
      return await send({ text, blocks: tried });
    } catch (error) {
      const next = poorer.shift();
      if (next === undefined || failureOf(error).kind !== 'payload') throw error;
      tried = next;
    }
  }
}

export async function postMessage(client: WebClient, to: Address, key: string, message: Message): Promise<string> {
  const answer = await orPlainText(message, (payload) =>
    client.chat.postMessage({
      channel: to.channel,
      ...payload,
      ...(to.threadTs === undefined ? {} : { thread_ts: to.threadTs }),
      unfurl_links: false,
      unfurl_media: false,
      metadata: { event_type: eventType, event_payload: { key } },
    }),
  );
  return z.string().parse(answer.ts);
}

export async function editMessage(client: WebClient, channel: string, ts: string, key: string, message: Message) {
  await orPlainText(message, (payload) =>
    client.chat.update({
      channel,
      ts,
      ...payload,
      metadata: { event_type: eventType, event_payload: { key } },
    }),
  );
}

/** Posts or edits. Returns the timestamp of the message. */
export async function sendMessage(
  client: WebClient,
  to: Address,
  delivery: Delivery,
  record: { readonly createdAt: string },
  message: Message,
): Promise<string> {
  const { key } = delivery;
  let ts = delivery.messageTs ?? null;
  if (ts === null && delivery.attempts > 1) {
    ts = await findPosted(client, to, record.createdAt, (m) => m.metadata?.event_payload?.key === key);
  }
  if (ts !== null) {
    try {
      await editMessage(client, to.channel, ts, key, message);
      return ts;
    } catch (error) {
      if (failureOf(error).kind !== 'gone') throw error;
    }
  }
  return await postMessage(client, to, key, message);
}

/** A file ready to be uploaded. */
export interface Upload extends Omit<TextFile, 'content'> {
  readonly content: string | Buffer;
  /** What a picture shows, in words: at most 1000 characters. For pictures only: Slack fails to share others that have it. */
  readonly altText?: string;
}

const uploadTimeoutMs = 30_000;
const uploadAddress = z.object({ file_id: z.string(), upload_url: z.url() });

/** Uploads a file into the thread, unless one of its name is there already. */
export async function sendFile(
  client: WebClient,
  to: Address,
  delivery: Delivery,
  record: { readonly createdAt: string },
  file: Upload,
): Promise<void> {
  if (delivery.attempts > 1) {
    const named = (m: Posted) => m.files?.some((f) => f.name === file.filename) === true;
    if ((await findPosted(client, to, record.createdAt, named)) !== null) return;
  }
  const bytes = Buffer.from(file.content);
  // By hand: web-api's filesUploadV2 sends the alt text as `alt_text`, and Slack's method reads `alt_txt`.
  const about = { filename: file.filename, length: bytes.length };
  const answer = await client.apiCall(
    'files.getUploadURLExternal',
    file.altText === undefined ? about : { ...about, alt_txt: file.altText },
  );
  const { file_id: id, upload_url: url } = uploadAddress.parse(answer);
  const signal = AbortSignal.timeout(uploadTimeoutMs);
  const taken = await fetch(url, { method: 'POST', body: bytes, signal });
  await taken.body?.cancel();
  if (!taken.ok) throw new ReclaimError('slack_failed', `Slack did not take a file (HTTP status ${taken.status}).`);
  await client.files.completeUploadExternal({
    files: [{ id, title: file.title }],
    channel_id: to.channel,
    initial_comment: file.comment,
    ...(to.threadTs === undefined ? {} : { thread_ts: to.threadTs }),
  });
}

export const cardKey = (record: Pick<RequestRecord, 'id'>): string => deliveryKey(record.id, 'card');
