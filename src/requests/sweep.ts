/** The reconciler: what clocks force, and what got lost between store and queue. Safe to run anywhere, any number of times. */
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Asked } from './service.ts';
import { forcedByClock, openStates, worksItself } from './state.ts';
import type { Store } from './store.ts';
import { deliveryKey, type RequestRecord } from './types.ts';

export interface SweepParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  put(what: 'look' | 'run', record: RequestRecord): Promise<void>;
  ask(asked: Asked): Promise<{ readonly record: RequestRecord; readonly existing: boolean }>;
}

/** Leaves a job that was just put up the time to be taken. */
const settleMs = 4_000;
const atOnce = 500;

async function sweepOne(parts: SweepParts, record: RequestRecord): Promise<void> {
  const nowMs = parts.clock.now();
  const forced = forcedByClock(record, nowMs);
  if (forced !== null) {
    const written = await parts.store.update(forced);
    if (written.ok && written.record.state === 'unknown') await lookAnew(parts, written.record);
    return;
  }
  if (nowMs - Date.parse(record.updatedAt) < settleMs) return;
  // The ids of these jobs are fixed, so putting up again what is still queued or being worked changes nothing.
  if (record.state === 'draft') await parts.put('look', record);
  if (record.state === 'approved') await parts.put('run', record);
}

/** After a lost run the box is read again, in the same thread; what to do then is decided anew by people. */
async function lookAnew(parts: SweepParts, record: RequestRecord): Promise<void> {
  if (worksItself(record)) return;
  const card = await parts.store.delivery(deliveryKey(record.id, 'card'));
  const threadTs = record.threadTs ?? card?.messageTs;
  await parts.ask({
    host: record.host,
    requester: record.requester,
    surface: 'system',
    ...(record.channel === undefined ? {} : { channel: record.channel }),
    ...(threadTs === undefined ? {} : { threadTs }),
    ...(record.topic === undefined ? {} : { topic: record.topic }),
  });
}

export async function sweepOnce(parts: SweepParts): Promise<void> {
  for (const record of await parts.store.list({ states: openStates, limit: atOnce })) {
    try {
      await sweepOne(parts, record);
    } catch (error) {
      // One request that cannot be swept must not keep the others from it.
      parts.log.error({ err: error, request: record.id }, 'could not sweep a request');
    }
  }
}
