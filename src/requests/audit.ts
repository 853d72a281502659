/**
 * The audit log outside of its store: one event a line, as JSON, in the order of the log. Whoever has the lines can check
 * the chain without us: every event names the hash of the one before.
 */
import { chainProblems } from './chain.ts';
import type { Store } from './store.ts';
import { type AuditEvent, eventSchema } from './types.ts';

const pageSize = 500;

/** Every event, or those of one host, oldest first. */
export async function* auditEvents(store: Pick<Store, 'events'>, host?: string): AsyncGenerator<AuditEvent> {
  for (let afterSeq = 0; ;) {
    const page = await store.events({ afterSeq, limit: pageSize, ...(host === undefined ? {} : { host }) });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    afterSeq = last.seq;
  }
}

export const auditLine = (event: AuditEvent): string => `${JSON.stringify(event)}\n`;

export interface VerifiedAudit {
  readonly events: readonly AuditEvent[];
  /** Events between the first and the last that are not in the file; an export of one host has some by nature. */
  readonly missing: number;
  readonly problems: readonly string[];
}

/** Null when the text is no export of the audit log. Checks from the text alone. */
export function verifyAudit(text: string): VerifiedAudit | null {
  const events: AuditEvent[] = [];
  for (const line of text.split('\n').filter((l) => l.trim() !== '')) {
    const event = parsed(line);
    if (event !== null) events.push(event);
    else if (events.length === 0) return null;
    else return { events, missing: 0, problems: [`Line ${events.length + 1} is no event of the audit log.`] };
  }
  const [first] = events;
  const last = events.at(-1);
  if (first === undefined || last === undefined) return null;
  return { events, missing: last.seq - first.seq + 1 - events.length, problems: chainProblems(events) };
}

function parsed(line: string): AuditEvent | null {
  try {
    return eventSchema.strict().parse(JSON.parse(line));
  } catch {
    return null;
  }
}
