/** `reclaim doctor`: one row for everything the bot depends on, each with the fix. Changes nothing. */
import { openRecords } from '../compose.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { asReclaimError, exitCodes } from '../errors.ts';
import { hostRows } from './doctor-hosts.ts';
import { redisRows } from './doctor-queue.ts';
import type { Row } from './doctor-rows.ts';
import { slackRows } from './doctor-slack.ts';
import { readArgs, type CliIo, type Command } from './io.ts';
import { json } from './output.ts';
import { table } from './table.ts';

const usage = 'reclaim doctor [--json]';

export const doctorCommand: Command = {
  summary: 'Check configuration, store, Slack and every host, and say how to mend what is off.',
  usage,
  examples: ['reclaim doctor', 'reclaim doctor --json'],
  async run(args, io) {
    const { values } = readArgs(args, { json: { type: 'boolean' } }, usage);
    const rows: Row[] = [nodeRow(process.versions.node)];
    const config = attemptConfig(rows, io, values.config);
    if (config !== null) {
      if (values.json !== true) io.err('Asking the store, Slack and every host …\n');
      const found = await Promise.all([
        storeRow(config),
        redisRows(config.queueUrl),
        slackRows(config),
        hostRows(config, io),
      ]);
      rows.push(...policyRows(config), ...found.flat());
    }
    if (values.json === true) io.out(json({ rows }));
    else io.out(`${table([['', 'what', 'found'], ...rows.map((row) => [row.state, row.what, row.detail])])}\n`);
    return rows.some((row) => row.state === 'fail') ? exitCodes.failed : exitCodes.done;
  },
};

function nodeRow(version: string): Row {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  const detail = fits ? version : `${version} is too old: install Node 20.19 or newer`;
  return { what: 'Node', state: fits ? 'ok' : 'fail', detail };
}

function attemptConfig(rows: Row[], io: CliIo, file: string | undefined): Config | null {
  try {
    const config = loadConfig({ cwd: io.cwd, env: io.env, file });
    const found = config.file ?? 'no reclaim.yaml: copy reclaim.example.yaml and name your hosts';
    rows.push({ what: 'configuration', state: config.file === null ? 'warn' : 'ok', detail: found });
    return config;
  } catch (thrown) {
    rows.push({ what: 'configuration', state: 'fail', detail: asReclaimError(thrown).userText });
    return null;
  }
}

function policyRows(config: Config): Row[] {
  const count = config.policy.approvers.length;
  return count > 0
    ? [{ what: 'approvers', state: 'ok', detail: `${count} configured` }]
    : [
        {
          what: 'approvers',
          state: 'warn',
          detail: 'no approver is configured, so nobody can approve anything: fill policy.approvers in reclaim.yaml',
        },
      ];
}

async function storeRow(config: Config): Promise<Row> {
  const where = config.queueUrl.replace(/\/\/[^@/]*@/, '//[secret]@');
  try {
    const records = await openRecords(config);
    try {
      await records.store.ping();
      return { what: 'store', state: 'ok', detail: where };
    } finally {
      await records.close();
    }
  } catch (thrown) {
    return { what: 'store', state: 'fail', detail: `${where}: ${asReclaimError(thrown).userText}` };
  }
}
