/**
 * Where requests, audit events and undelivered messages live. One interface, three backends (Redis, Postgres, PGlite),
 * one conformance suite. Every write is atomic: record, events and deliveries of one call land together or not at all.
 */
import type { AuditEvent, Delivery, NewAuditEvent, RequestRecord, RequestState, View } from './types.ts';

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

export interface Store {
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
