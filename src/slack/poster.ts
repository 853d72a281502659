/**
 * Delivers what the store holds for Slack. Each delivery is rendered from the newest record at the moment it is sent;
 * whatever fails is tried again until it arrives or Slack refuses it for good, and then the reason is kept.
 */
import { randomUUID } from 'node:crypto';
import { isTopicView } from '../alerts/topics.ts';
import type { Store } from '../requests/store.ts';
import { deliveryKey, type Delivery, type RequestRecord, type View } from '../requests/types.ts';
import { isFinal } from './blocks/words.ts';
import { cardKey, type Address } from './deliver.ts';
import { backoffMs, failureOf, type Failure } from './failures.ts';
import { perform, type RequestDelivery, type Sending } from './perform.ts';
import { cardAddress, sendTopic, threadOf, type Sent, type Unsent } from './topic-sender.ts';

export interface PosterParts extends Sending {
  /** Told why a message is put back to be tried again. */
  readonly retried?: (reason: string) => void;
}

export interface Poster {
  stop(): Promise<void>;
}

/** Slack allows about one post per second and channel; edits of one message are gathered for longer. */
const betweenSendsMs = 1000;
const betweenEditsMs = 1500;
const betweenSweepEditsMs = 3000;
const claimMs = 60_000;
/** A delivery waits in this process for at most so long, well within its claim. */
const longestHeldMs = 5_000;
const idleMs = 1000;
const inFlightAtMost = 20;

/** What has to be out first, so that a thread reads in order: the look, how it ended, then the receipt. */
const sentBefore: Partial<Record<View, readonly View[]>> = {
  owners: ['details'],
  outcome: ['card', 'plan_file', 'details', 'owners'],
  receipt_file: ['outcome'],
};

type Outcome = Parameters<Store['settleDelivery']>[2];
type Verdict = Outcome | { readonly waitMs: number };

class OutboxPoster implements Poster {
  readonly #parts: PosterParts;
  readonly #claimer = `poster-${randomUUID()}`;
  readonly #stopping = new AbortController();
  readonly #channels = new Map<string, { tail: Promise<void>; freeAt: number }>();
  readonly #lastEdit = new Map<string, { at: number; state: string }>();
  readonly #unsubscribe: () => void;
  readonly #loop: Promise<void>;
  #inFlight = 0;
  /** Set by a wake-up that came while nobody was waiting for one. */
  #news = false;
  #endPause: () => void = () => undefined;

  constructor(parts: PosterParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.store.onDelivery(() => {
      this.#wake();
    });
    this.#loop = this.#run();
  }

  #wake(): void {
    this.#news = true;
    this.#endPause();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort(new Error('the poster stops'));
    this.#wake();
    await this.#loop;
    await Promise.allSettled([...this.#channels.values()].map((c) => c.tail));
  }

  async #run(): Promise<void> {
    const { store, log } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      const room = inFlightAtMost - this.#inFlight;
      let claimed: Delivery[] = [];
      try {
        if (room > 0) claimed = await store.claimDeliveries(this.#claimer, claimMs, room);
      } catch (error) {
        log.warn({ err: error }, 'the store does not hand out deliveries; trying again');
      }
      for (const delivery of claimed) this.#enqueue(delivery);
      if (claimed.length === 0) await this.#pause();
    }
  }

  /** Until something is put up for delivery, something in flight has ended, or a second has passed. */
  async #pause(): Promise<void> {
    const woken = new AbortController();
    this.#endPause = () => {
      woken.abort();
    };
    if (this.#news) woken.abort();
    this.#news = false;
    const signal = AbortSignal.any([woken.signal, this.#stopping.signal]);
    await this.#parts.clock.sleep(idleMs, signal).catch(() => undefined);
  }

  #enqueue(delivery: Delivery): void {
    const channel = this.#channels.get(delivery.channel) ?? { tail: Promise.resolve(), freeAt: 0 };
    this.#channels.set(delivery.channel, channel);
    this.#inFlight += 1;
    channel.tail = channel.tail.then(async () => {
      try {
        await this.#deliver(delivery, channel);
      } catch (error) {
        // The claim runs out by itself and somebody takes it up again.
        this.#parts.log.error({ err: error, delivery: delivery.key }, 'a delivery could not be settled');
      } finally {
        this.#inFlight -= 1;
        this.#wake();
      }
    });
  }

  async #deliver(delivery: Delivery, channel: { freeAt: number }): Promise<void> {
    const { store, clock } = this.#parts;
    if (this.#stopping.signal.aborted) {
      await this.#settle(delivery, { waitMs: 0 });
      return;
    }
    const lock = `send.${delivery.requestId}`;
    // One sender per request across all gateways, so that an older state never lands on a newer one.
    if (!(await store.hold(lock, this.#claimer, claimMs))) {
      await this.#settle(delivery, { waitMs: 300 });
      return;
    }
    try {
      const waitMs = channel.freeAt - clock.now();
      if (waitMs > longestHeldMs) {
        // Slack named a long wait: give the claim back, so that it does not run out in this queue.
        await this.#settle(delivery, { waitMs });
        return;
      }
      if (waitMs > 0) await clock.sleep(waitMs, this.#stopping.signal).catch(() => undefined);
      const current = await this.#stillMine(delivery);
      if (current === null) return;
      const verdict = await this.#send(current, channel);
      await this.#settle(delivery, verdict);
    } finally {
      await store.release(lock, this.#claimer);
    }
  }

  /**
   * The delivery as it is now, or null when its claim ran out while it queued and somebody else has it or sent it: what
   * was claimed then may not know the message that was posted since.
   */
  async #stillMine(delivery: Delivery): Promise<Delivery | null> {
    const current = await this.#parts.store.delivery(delivery.key);
    if (current === null || current.claimedBy !== this.#claimer) return null;
    return current.deliveredRevision >= current.revision ? null : current;
  }

  async #settle(delivery: Delivery, verdict: Verdict): Promise<void> {
    const { store, clock } = this.#parts;
    const outcome = 'waitMs' in verdict ? { retryAt: new Date(clock.now() + verdict.waitMs).toISOString() } : verdict;
    await store.settleDelivery(delivery.key, this.#claimer, outcome);
  }

  async #send(delivery: Delivery, channel: { freeAt: number }): Promise<Verdict> {
    const { clock, log } = this.#parts;
    const { view } = delivery;
    const early = view === 'sweep' ? this.#sinceEdit(delivery) : 0;
    if (early > 0) return { waitMs: early };
    try {
      const sent = isTopicView(view)
        ? await sendTopic(this.#parts, delivery, view)
        : await this.#sendRequest({ ...delivery, view });
      if ('waitMs' in sent || 'givenUp' in sent) return sent;
      if (sent.called) channel.freeAt = clock.now() + betweenSendsMs;
      return { delivered: delivery.revision, ...(sent.ts === undefined ? {} : { messageTs: sent.ts }) };
    } catch (error) {
      const failure = view === 'picture' ? orLeaveOut(failureOf(error)) : failureOf(error);
      const facts = { delivery: delivery.key, attempts: delivery.attempts, reason: failure.reason };
      if (failure.kind === 'permanent' || failure.kind === 'payload') {
        log.error({ ...facts, err: error }, 'Slack refuses a message for good');
        return { givenUp: failure.reason };
      }
      log.warn(facts, 'a message did not arrive; trying again');
      this.#parts.retried?.(failure.kind);
      const ms = backoffMs(failure, delivery.attempts);
      channel.freeAt = clock.now() + (failure.kind === 'wait' ? ms : betweenSendsMs);
      return { waitMs: ms };
    }
  }

  async #sendRequest(delivery: RequestDelivery): Promise<Sent> {
    const record = await this.#parts.store.get(delivery.requestId);
    if (record === null) return { givenUp: 'the request is not in the store any more' };
    const to = await this.#address(delivery, record);
    if ('waitMs' in to || 'givenUp' in to) return to;
    const early = this.#tooEarly(delivery, record);
    if (early > 0) return { waitMs: early };
    const sent = await perform(this.#parts, delivery, record, to);
    if (delivery.view === 'card') this.#remember(delivery, record);
    return sent;
  }

  /** Where it goes. Whatever belongs into a thread waits for what the thread hangs on. */
  async #address(delivery: RequestDelivery, record: RequestRecord): Promise<Address | Unsent> {
    const { channel } = delivery;
    if (delivery.view === 'card') return await cardAddress(this.#parts.store, record, channel);
    if (delivery.view === 'break_glass') return { channel };
    const card = await this.#parts.store.delivery(cardKey(record));
    if (card?.givenUp !== undefined) return { givenUp: `its card could not be posted: ${card.givenUp}` };
    for (const before of sentBefore[delivery.view] ?? []) {
      const earlier = before === 'card' ? card : await this.#parts.store.delivery(deliveryKey(record.id, before));
      if (earlier !== null && earlier.givenUp === undefined && earlier.deliveredRevision < earlier.revision) {
        return { waitMs: 300 };
      }
    }
    if (card?.messageTs === undefined) return { waitMs: 300 };
    const { threadTs = card.messageTs } = threadOf(await cardAddress(this.#parts.store, record, channel));
    return { channel, threadTs };
  }

  /** Milliseconds a mere progress edit still has to wait. First posts and changes of state go at once. */
  #tooEarly(delivery: RequestDelivery, record: RequestRecord): number {
    const last = this.#lastEdit.get(delivery.key);
    if (delivery.view !== 'card' || last === undefined || isFinal(record) || last.state !== record.state) return 0;
    return last.at + betweenEditsMs - this.#parts.clock.now();
  }

  /** A sweep changes with every host that answers; its message is edited in one go now and then. */
  #sinceEdit({ key, deliveredRevision }: Delivery): number {
    const nowMs = this.#parts.clock.now();
    const last = this.#lastEdit.get(key);
    if (deliveredRevision > 0 && last !== undefined && last.at + betweenSweepEditsMs > nowMs) {
      return last.at + betweenSweepEditsMs - nowMs;
    }
    this.#lastEdit.set(key, { at: nowMs, state: '' });
    return 0;
  }

  #remember(delivery: RequestDelivery, record: RequestRecord): void {
    if (isFinal(record)) this.#lastEdit.delete(delivery.key);
    else this.#lastEdit.set(delivery.key, { at: this.#parts.clock.now(), state: record.state });
  }
}

/** A picture is not worth waiting for an operator to grant a scope or to mend a token. */
const orLeaveOut = (failure: Failure): Failure =>
  failure.kind === 'wait' && failure.reason !== 'ratelimited' ? { kind: 'permanent', reason: failure.reason } : failure;

/** Starts delivering; `stop` lets what is under way end. */
export function startPoster(parts: PosterParts): Poster {
  return new OutboxPoster(parts);
}
