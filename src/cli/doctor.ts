/** `reclaim doctor`: one row for everything the bot depends on, each with the fix. Changes nothing. */
import { openRecords } from '../compose.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { asReclaimError, exitCodes } from '../errors.ts';
import { think } from '../memory/think.ts';
import { readArgs, type CliIo, type Command } from './io.ts';
import { json } from './output.ts';
import { cliBoxes } from './source.ts';
import { table } from './table.ts';

const usage = 'reclaim doctor [--json]';

export interface Row {
  readonly what: string;
  readonly state: 'ok' | 'warn' | 'fail';
  /** What was found, and for warn and fail what to do about it. */
  readonly detail: string;
}

export const doctorCommand: Command = {
  summary: 'Check configuration, store, Slack and every host, and say how to mend what is off.',
  usage,
  examples: ['reclaim doctor', 'reclaim doctor --json'],
  async run(args, io) {
    const { values } = readArgs(args, { json: { type: 'boolean' } }, usage);
    const rows: Row[] = [nodeRow(process.versions.node)];
    const config = attemptConfig(rows, io, values.config);
    if (config !== null) {
      rows.push(...policyRows(config), ...slackRows(config), await storeRow(config));
      rows.push(...(await hostRows(config, io)));
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

function slackRows(config: Config): Row[] {
  const tokens = [
    ['SLACK_BOT_TOKEN', config.env.SLACK_BOT_TOKEN],
    ['SLACK_APP_TOKEN', config.env.SLACK_APP_TOKEN],
  ] as const;
  return tokens.map(([name, value]) =>
    value === undefined
      ? { what: name, state: 'warn', detail: `not set in .env: a gateway needs it; the CLI and workers do not` }
      : { what: name, state: 'ok', detail: 'set' },
  );
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

async function hostRows(config: Config, io: CliIo): Promise<Row[]> {
  const boxes = cliBoxes(config);
  const check = async (name: string): Promise<Row> => {
    const what = `host ${name}`;
    try {
      const box = await boxes.openBox(name, { signal: io.signal });
      try {
        const capture = await box.collect({ scope: 'full', windowSeconds: 0 });
        const { partial } = think(capture).diagnosis;
        if (partial.length === 0) return { what, state: 'ok', detail: 'reachable, everything can be seen' };
        return { what, state: 'warn', detail: `reachable, but ${partial.join(' ')}` };
      } finally {
        await box.close();
      }
    } catch (thrown) {
      return { what, state: 'fail', detail: asReclaimError(thrown).userText };
    }
  };
  try {
    return await Promise.all([...config.hosts.keys()].map(check));
  } finally {
    boxes.close();
  }
}
