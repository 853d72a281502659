/** `reclaim receipt FILE`: is this receipt whole and unchanged? Needs no network, store or configuration. */
import { exitCodes, ReclaimError } from '../errors.ts';
import { verifyReceipt } from '../requests/receipt.ts';
import { onePositional, readArgs, type Command } from './io.ts';
import { json, readTextFile } from './output.ts';

const usage = 'reclaim receipt FILE [--json]';

export const receiptCommand: Command = {
  summary: 'Verify the receipt of a run, offline.',
  usage,
  examples: ['reclaim receipt reclaim-r1a2b3.receipt.json'],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { json: { type: 'boolean' } }, usage);
    const path = onePositional(positionals, 'a receipt file', usage);
    const { receipt, problems } = verifyReceipt(await readTextFile(path, io.cwd));
    if (values.json === true) io.out(json({ ok: problems.length === 0, problems, receipt }));
    if (problems.length > 0) {
      throw new ReclaimError('receipt_invalid', `${path} does not hold: ${problems.join(' ')} Trust nothing it says.`);
    }
    if (values.json !== true && receipt !== null) {
      io.out(`${path} is whole and unchanged: request ${receipt.request} on ${receipt.host}, ${receipt.state}.\n`);
    }
    return exitCodes.done;
  },
};
