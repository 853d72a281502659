/** A backup as JSON lines: a head, each request, each audit event in order, and a foot that says how many there must be. Pure. */
import { z } from 'zod';
import { headAfter, backupInvalid } from './backup.ts';
import { emptyChain } from './chain.ts';
import { isOpen } from './state.ts';
import { contribution, type Totals } from './totals.ts';
import { type AuditEvent, eventSchema, type RequestRecord, requestSchema } from './types.ts';

export interface WholeBackup {
  readonly takenAt: string;
  readonly records: readonly RequestRecord[];
  readonly events: readonly AuditEvent[];
  readonly totals: Totals;
}

const lineSchema = z.union([
  z.strictObject({ backup: z.literal(1), takenAt: z.string(), release: z.string() }),
  z.strictObject({ request: requestSchema }),
  z.strictObject({ event: eventSchema }),
  z.strictObject({
    end: z.object({ requests: z.number(), events: z.number(), totals: z.record(z.string(), z.number()) }),
  }),
]);

export function* backupLines(backup: WholeBackup, release: string): Generator<string> {
  const { takenAt, records, events, totals } = backup;
  yield JSON.stringify({ backup: 1, takenAt, release });
  for (const request of records) yield JSON.stringify({ request });
  for (const event of events) yield JSON.stringify({ event });
  yield JSON.stringify({ end: { requests: records.length, events: events.length, totals } });
}

/** @throws ReclaimError `backup_invalid` for anything but a whole, unchanged backup */
export function parseBackup(text: string): WholeBackup {
  const records: RequestRecord[] = [];
  const events: AuditEvent[] = [];
  let takenAt: string | null = null;
  let end: { requests: number; events: number; totals: Totals } | null = null;
  for (const [n, said] of text.split('\n').entries()) {
    if (said === '') continue;
    const line = parseLine(said, n + 1);
    if (end !== null) throw backupInvalid(`Line ${n + 1} stands behind the end of the backup.`);
    if ('backup' in line) takenAt = line.takenAt;
    else if ('request' in line) records.push(line.request);
    else if ('event' in line) events.push(line.event);
    else end = line.end;
  }
  if (takenAt === null || end === null || end.requests !== records.length || end.events !== events.length) {
    throw backupInvalid('The backup is not whole: its beginning, its end or something in between is missing.');
  }
  headAfter(emptyChain, { events });
  return { takenAt, records, events, totals: end.totals };
}

function parseLine(said: string, number: number): z.infer<typeof lineSchema> {
  let value: unknown;
  try {
    value = JSON.parse(said);
  } catch {
    throw backupInvalid(`Line ${number} is not JSON.`);
  }
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) throw backupInvalid(`Line ${number} is no line of a backup this release can read.`);
  return parsed.data;
}

const cutOff = 'It was open when the backup was taken. Nothing more was done. Ask again.';

/**
 * The backup as it may go into a store: what was open is over, because a plan of then must not be approved or run now.
 * One that was running ends as `unknown`, anything else as `superseded` (a draft as `failed`).
 */
export function closed(backup: WholeBackup): WholeBackup {
  const totals: Record<string, number> = { ...backup.totals };
  const add = (from: Totals, sign: number) => {
    for (const [name, count] of Object.entries(from)) totals[name] = (totals[name] ?? 0) + sign * count;
  };
  const records = backup.records.map((record) => {
    if (!isOpen(record.state)) return record;
    const state = record.state === 'running' ? 'unknown' : record.state === 'draft' ? 'failed' : 'superseded';
    const over: RequestRecord = { ...record, state, reason: cutOff, version: record.version + 1 };
    add(contribution(record), -1);
    add(contribution(over), 1);
    return over;
  });
  return { ...backup, records, totals };
}
