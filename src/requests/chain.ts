/** Hashes that others can recompute: canonical JSON, SHA-256, and the chain that ties each audit event to the one before. */
import { createHash } from 'node:crypto';
import type { AuditEvent, NewAuditEvent } from './types.ts';

/** JSON with sorted keys and without `undefined`, so that equal values give equal bytes. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
      .filter(([, v]) => v !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`);
    return `{${entries.join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Lower-case hex. */
export const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** What the first event is chained to. */
export const chainStart = '0'.repeat(64);

export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

export const emptyChain: ChainHead = { seq: 0, hash: chainStart };

/** The hash of an event covers everything in it, its place in the log and the hash of the event before. */
export function eventHash(event: Omit<AuditEvent, 'hash'>): string {
  const { seq, at, request, host, who, surface, what, why, digest, previousHash } = event;
  return sha256(canonicalJson({ seq, at, request, host, who, surface, what, why, digest, previousHash }));
}

/** Numbers and hashes new events behind `head`. */
export function chainEvents(head: ChainHead, events: readonly NewAuditEvent[]): AuditEvent[] {
  let { seq, hash } = head;
  return events.map((event) => {
    const open = { ...event, seq: seq + 1, previousHash: hash };
    const closed = { ...open, hash: eventHash(open) };
    ({ seq, hash } = closed);
    return closed;
  });
}

/** One sentence per thing that does not hold. Events in between may be missing: they belong to other requests or hosts. */
export function chainProblems(events: readonly AuditEvent[]): string[] {
  return events.flatMap((event, n) => {
    const before = events[n - 1];
    const problems: string[] = [];
    if (eventHash(event) !== event.hash) problems.push(`Event ${event.seq} was changed.`);
    if (event.seq === 1 && event.previousHash !== chainStart) problems.push('Event 1 does not begin the log.');
    if (before === undefined) return problems;
    if (event.seq <= before.seq) problems.push(`Event ${event.seq} is out of order.`);
    if (event.seq === before.seq + 1 && event.previousHash !== before.hash) {
      problems.push(`Event ${event.seq} does not follow event ${before.seq}.`);
    }
    return problems;
  });
}
