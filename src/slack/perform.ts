/** One delivery, rendered from the newest record and sent: a message, a file, or a picture. */
import type { WebClient } from '@slack/web-api';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Store } from '../requests/store.ts';
import { deliveryKey, type Delivery, type RequestRecord, type View } from '../requests/types.ts';
import type { CardContext } from './blocks/card.ts';
import type { Picture } from './blocks/picture.ts';
import { renderView } from './blocks/render.ts';
import type { TextFile } from './blocks/thread.ts';
import { cardKey, editMessage, sendFile, sendMessage, type Address } from './deliver.ts';
import { mrkdwn } from './text.ts';

/** A delivery of one of a request's own views. */
export type RequestDelivery = Delivery & { readonly view: View };

export interface Sending {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** For posts alone: interactive calls must never wait behind them. Rejects rate-limited calls, retries nothing itself. */
  readonly client: WebClient;
  readonly cardContext: () => Omit<CardContext, 'now' | 'planFilePosted'>;
  /** SVG to PNG. */
  readonly paint: (svg: string) => Promise<Buffer>;
  /** Makes the receipt of an ended run. */
  readonly receipt: (record: RequestRecord) => Promise<TextFile | undefined>;
}

/** `called` says whether Slack was called at all; `ts` is the message's. Rejects with what Slack answered. */
export async function perform(
  sending: Sending,
  delivery: RequestDelivery,
  record: RequestRecord,
  to: Address,
): Promise<{ called: boolean; ts?: string }> {
  const { client, store } = sending;
  const planFile = await store.delivery(deliveryKey(record.id, 'plan_file'));
  const posted = planFile !== null && planFile.deliveredRevision >= planFile.revision;
  const receipt = delivery.view === 'receipt_file' ? await sending.receipt(record) : undefined;
  const rendered = renderView(record, delivery.view, contextOf(sending, posted), receipt);
  switch (rendered.kind) {
    case 'nothing':
      return { called: false };
    case 'message':
      return { called: true, ts: await sendMessage(client, to, delivery, record, rendered.message) };
    case 'file':
      await sendFile(client, to, delivery, record, rendered.file);
      if (delivery.view === 'plan_file') await allowApproval(sending, record, to);
      return { called: true };
    case 'picture':
      return { called: await sendPicture(sending, delivery, record, to, rendered.picture) };
  }
}

function contextOf({ cardContext, clock }: Sending, planFilePosted: boolean): CardContext {
  return { ...cardContext(), now: clock.now(), planFilePosted };
}

/** Nothing depends on a picture: one that cannot be painted here is left out, and the card says the same in text. */
async function sendPicture(
  { client, log, paint }: Sending,
  delivery: Delivery,
  record: RequestRecord,
  to: Address,
  { filename, title, altText, svg }: Picture,
): Promise<boolean> {
  let content: Buffer;
  try {
    content = await paint(svg);
  } catch (error) {
    log.warn({ err: error, request: record.id }, 'a picture could not be painted; it is left out');
    return false;
  }
  await sendFile(client, to, delivery, record, { filename, title, altText, content, comment: mrkdwn([title]) });
  return true;
}

/** The whole plan is in the thread now, so the card may offer to approve it. Done before the file counts as delivered. */
async function allowApproval(sending: Sending, record: RequestRecord, to: Address): Promise<void> {
  const card = await sending.store.delivery(cardKey(record));
  if (card?.messageTs === undefined) return;
  const rendered = renderView(record, 'card', contextOf(sending, true));
  if (rendered.kind !== 'message') return;
  await editMessage(sending.client, to.channel, card.messageTs, card.key, rendered.message);
}
