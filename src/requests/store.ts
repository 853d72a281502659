/**
 * Where requests, audit events and undelivered messages live. One interface, three backends (Redis, Postgres, PGlite),
 * one conformance suite. Every write is atomic: record, events and deliveries of one call land together or not at all.
 */
import type { TopicStore } from './topic-store.ts';
import type { Totals } from './totals.ts';
import type { AuditEvent, Delivery, NewAuditEvent, ProcessInfo, RequestRecord, RequestState, View } from './types.ts';

export interface Change {
  /** The record to write; its `version` must be the stored version + 1 (1 for a new one). */
  readonly record: RequestRecord;
  readonly events?: readonly NewAuditEvent[];
  /** Views to (re)deliver because of this change; ignored for records without a channel. */
  readonly deliver?: readonly View[];
}

export type WriteResult =
  | { readonly ok: true; readonly record: RequestRecord }
  /** Somebody else moved it first: here is what it is now. */
  | { readonly ok: false; readonly why: 'changed' | 'exists' | 'host_busy'; readonly current: RequestRecord | null };

/** What to remove. Open requests, the newest of the chain, and what still waits for delivery always stay. */
export interface TrimLimits {
  /** Requests made before this are removed, with their messages. */
  readonly requestsBefore: string;
  /** No more than so many requests are kept, the newest. */
  readonly requestsAtMost: number;
  /** Audit events and wishes of owners before this are removed, from the beginning of the chain on. */
  readonly auditBefore: string;
}

/** A piece of a backup on its way in: exactly what another store gave out, except that no request may be open. */
export interface BackupPart {
  readonly records?: readonly RequestRecord[];
  /** In order, without gaps, beginning where the chain of this store ends (anywhere when it has none yet). */
  readonly events?: readonly AuditEvent[];
  /** Replaces what was counted so far: hand it in last. */
  readonly totals?: Totals;
}

/** What a store does for those who run it. */
export interface Upkeep {
  /** Counted over all time, also what was removed since. */
  totals(): Promise<Totals>;
  /** Random name of this store: two gateways with different ones belong to different deployments. */
  deployment(): Promise<string>;
  /** "I am here", good for `ttlMs`. */
  beat(process: ProcessInfo, ttlMs: number): Promise<void>;
  /** "I am gone", said by a process that ends in order. */
  leave(instance: string): Promise<void>;
  /** The processes whose time is not over, by instance. */
  processes(): Promise<ProcessInfo[]>;
  /** Removes what is too old, some hundreds of each kind per call: call again while it answers anything but zeros. */
  trim(limits: TrimLimits): Promise<{ requests: number; events: number }>;
  /**
   * Takes in a piece of a backup. What is here already stays as it is. Rejects with `backup_invalid` when its events do
   * not continue the chain of this store, or when a request in it is open.
   */
  restore(part: BackupPart): Promise<void>;
}

export interface Store extends Upkeep {
  readonly topics: TopicStore;

  /** Writes a new request. `host_busy` when the host already has an open one (draft, pending, approved, running). */
  create(change: Change): Promise<WriteResult>;
  /** Compare-and-swap on version. */
  update(change: Change): Promise<WriteResult>;
  get(id: string): Promise<RequestRecord | null>;
  /** The open request of a host, if any. */
  openFor(host: string): Promise<RequestRecord | null>;
  /** Newest first. */
  list(filter: { states?: readonly RequestState[]; host?: string; limit: number }): Promise<RequestRecord[]>;

  /** Records what was tried and refused, without touching the request. */
  appendEvents(events: readonly NewAuditEvent[]): Promise<void>;
  events(filter: { request?: string; host?: string; afterSeq?: number; limit: number }): Promise<AuditEvent[]>;

  /** Hands out undelivered messages, each to one claimer at a time, oldest first. */
  claimDeliveries(claimer: string, claimMs: number, limit: number): Promise<Delivery[]>;
  /** Ends a claim: delivered up to `revision`, or to be tried again at `notBefore`, or given up with a reason. */
  settleDelivery(
    key: string,
    claimer: string,
    outcome:
      | { readonly delivered: number; readonly messageTs?: string }
      | { readonly retryAt: string }
      | { readonly givenUp: string },
  ): Promise<void>;
  delivery(key: string): Promise<Delivery | null>;
  /** For /readyz and metrics: how many wait, and since when the oldest does. */
  undelivered(): Promise<{ count: number; oldestAt: string | null }>;
  /** Calls back soon after something was put up for delivery, also by other processes. Returns the unsubscriber. */
  onDelivery(wake: () => void): () => void;

  /** Wishes of owners ("mine, keep it") by host, boot id, pid and start time. */
  keep(wish: { host: string; bootId: string; target: string; by: string; at: string }): Promise<void>;
  kept(host: string, bootId: string): Promise<{ target: string; by: string }[]>;

  /** Holds a name for `ttlMs` across all processes; false when somebody else does. Renewing is holding again as the same holder. */
  hold(name: string, holder: string, ttlMs: number): Promise<boolean>;
  release(name: string, holder: string): Promise<void>;

  ping(): Promise<void>;
  close(): Promise<void>;
}
