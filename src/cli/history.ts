/** `reclaim history [HOST]`: what was asked, by whom, and how it ended; or every event of the audit log. */
import { openRecords } from '../compose.ts';
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { deltaText } from '../memory/sizes.ts';
import { auditEvents, auditLine } from '../requests/audit.ts';
import type { RequestRecord } from '../requests/types.ts';
import { readArgs, type Command } from './io.ts';
import { json } from './output.ts';
import { table } from './table.ts';

const usage = 'reclaim history [HOST] [--json | --audit]';
const shownAtMost = 50;

export const historyCommand: Command = {
  summary: 'List what was asked, by whom, and how it ended, newest first.',
  usage,
  examples: [
    'reclaim history',
    'reclaim history gpu-box-3',
    'reclaim history gpu-box-3 --json',
    'reclaim history --audit',
  ],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { json: { type: 'boolean' }, audit: { type: 'boolean' } }, usage);
    if (positionals.length > 1) throw new ReclaimError('usage', `Name one host or none. Usage: ${usage}`);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const said = positionals[0];
    const host = said === undefined ? undefined : findHost(config, said).name;
    const records = await openRecords(config);
    try {
      if (values.audit === true) {
        for await (const event of auditEvents(records.store, host)) io.out(auditLine(event));
        return exitCodes.done;
      }
      const found = await records.store.list({ limit: shownAtMost, ...(host === undefined ? {} : { host }) });
      if (values.json === true) io.out(json({ requests: found.map(summary) }));
      else if (found.length === 0) io.out('Nothing was asked yet.\n');
      else io.out(`${table([['when', 'host', 'who', 'state', 'free', 'why'], ...found.map(row)])}\n`);
      return exitCodes.done;
    } finally {
      await records.close();
    }
  },
};

function gaveBackKiB(record: RequestRecord): number | null {
  const report = record.run?.report;
  if (report === undefined) return null;
  return report.steps.reduce((sum, step) => sum + (step.measured?.freeKiB ?? 0), 0);
}

function summary(record: RequestRecord) {
  const { id, host, state, reason, createdAt, updatedAt, surface } = record;
  const outcome = record.run?.report?.outcome ?? null;
  return {
    request: id,
    host,
    requester: record.requester.id,
    surface,
    state,
    reason,
    createdAt,
    updatedAt,
    outcome,
    gaveBackKiB: gaveBackKiB(record),
  };
}

function row(record: RequestRecord): string[] {
  const gave = gaveBackKiB(record);
  return [
    record.createdAt.slice(0, 16).replace('T', ' '),
    record.host,
    record.requester.id,
    record.state,
    gave === null ? '-' : deltaText(gave),
    record.reason,
  ];
}
