/** `reclaim export`: requests and audit log as JSON lines, for a backup or for other programs. */
import { openRecords } from '../compose.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes } from '../errors.ts';
import { release } from '../release.ts';
import { backupLines } from '../requests/backup-lines.ts';
import type { Store } from '../requests/store.ts';
import type { AuditEvent } from '../requests/types.ts';
import { systemClock } from '../system-clock.ts';
import { readArgs, type Command } from './io.ts';

const usage = 'reclaim export';
const pageSize = 1_000;
/** More than retention ever keeps. */
const everything = 10_000_000;

export const exportCommand: Command = {
  summary: 'Write all requests and the audit log as JSON lines, one object a line.',
  usage,
  examples: ['reclaim export > reclaim-backup.jsonl', 'reclaim export | gzip > reclaim-backup.jsonl.gz'],
  async run(args, io) {
    const { values } = readArgs(args, {}, usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const opened = await openRecords(config);
    const { store } = opened;
    try {
      const events = await allEvents(store);
      const records = await store.list({ limit: everything });
      const takenAt = new Date(systemClock.now()).toISOString();
      const backup = { takenAt, records, events, totals: await store.totals() };
      for (const line of backupLines(backup, release())) io.out(`${line}\n`);
      io.err(`${records.length} requests and ${events.length} audit events.\n`);
      return exitCodes.done;
    } finally {
      await opened.close();
    }
  },
};

async function allEvents(store: Store): Promise<AuditEvent[]> {
  const all: AuditEvent[] = [];
  for (;;) {
    const page = await store.events({ afterSeq: all.at(-1)?.seq ?? 0, limit: pageSize });
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}
