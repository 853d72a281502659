/** `reclaim receipt FILE`: is this receipt, or this export of the audit log, whole and unchanged? Works offline. */
import { exitCodes, ReclaimError } from '../errors.ts';
import { verifyReceipt } from '../requests/receipt.ts';
import { verifyAudit, type VerifiedAudit } from '../requests/audit.ts';
import { onePositional, readArgs, type CliIo, type Command } from './io.ts';
import { json, readTextFile } from './output.ts';

const usage = 'reclaim receipt FILE [--json]';

export const receiptCommand: Command = {
  summary: 'Verify the receipt of a run, or an exported audit log, offline.',
  usage,
  examples: ['reclaim receipt reclaim-r1a2b3.receipt.json', 'reclaim receipt audit.jsonl'],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { json: { type: 'boolean' } }, usage);
    const path = onePositional(positionals, 'a receipt file', usage);
    const text = await readTextFile(path, io.cwd);
    const audit = verifyAudit(text);
    if (audit !== null) return tellAudit(path, audit, values.json === true, io);
    const { receipt, problems } = verifyReceipt(text);
    if (values.json === true) io.out(json({ ok: problems.length === 0, problems, receipt }));
    if (problems.length > 0) throw doesNotHold(path, problems);
    if (values.json !== true && receipt !== null) {
      io.out(`${path} is whole and unchanged: request ${receipt.request} on ${receipt.host}, ${receipt.state}.\n`);
    }
    return exitCodes.done;
  },
};

function tellAudit(path: string, { events, missing, problems }: VerifiedAudit, asJson: boolean, io: CliIo): number {
  const last = events.at(-1);
  const facts = { events: events.length, missing, lastSeq: last?.seq ?? 0, lastHash: last?.hash ?? '' };
  if (asJson) io.out(json({ ok: problems.length === 0, problems, ...facts }));
  if (problems.length > 0) throw doesNotHold(path, problems);
  const gaps = missing === 0 ? 'none is missing in between' : `${missing} in between are not in this file`;
  if (!asJson) {
    io.out(
      `${path} is an audit log whose chain holds: ${facts.events} events, ${gaps}. Event ${facts.lastSeq} has hash ${facts.lastHash}.\n`,
    );
  }
  return exitCodes.done;
}

function doesNotHold(path: string, problems: readonly string[]): ReclaimError {
  const more = problems.length > 5 ? ` And ${problems.length - 5} more.` : '';
  return new ReclaimError(
    'receipt_invalid',
    `${path} does not hold: ${problems.slice(0, 5).join(' ')}${more} Trust nothing it says.`,
  );
}
