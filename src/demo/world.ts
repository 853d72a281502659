/** The demo's world: a workspace of four people, a channel, this machine as a box, and the bot itself, all in one process. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { loadConfig } from '../config/load.ts';
import { serve } from '../serve.ts';
import { startLocalSlack, type LocalSlack } from '../standin/local-slack.ts';
import { startDemoBox } from './box.ts';
import { startSituation, type BoxSituation } from './box-situation.ts';
import { situations, situationNames, type SituationName } from './situations.ts';
import { startSweeper } from './sweeper.ts';

export const people = {
  asker: { id: 'U0ASKER', name: 'ana', realName: 'Ana (asks)', role: 'asker' },
  approver: { id: 'U0APPROVER', name: 'bo', realName: 'Bo (approves)', role: 'approver' },
  second: { id: 'U0SECOND', name: 'chen', realName: 'Chen (approves too)', role: 'second approver' },
  stranger: { id: 'U0STRANGER', name: 'sam', realName: 'Sam (may not approve)', role: 'stranger' },
} as const;

export const channel = { id: 'C0GPUBOXES', name: 'gpu-boxes', topic: 'Shared GPU boxes' } as const;
export const hostName = 'gpu-box-3';

/** The first minute of a visitor. What is done is read off the messages of the channel. */
const guide = [
  { text: `Type /reclaim ${hostName} and press Enter. You are ${people.asker.realName}.`, doneWhen: `^${hostName}: ` },
  {
    text: 'Read the report: what holds the memory, and what each step would give back.',
    doneWhen: `^${hostName}: (waiting|approved|running|done|nothing)`,
  },
  {
    text: `Become ${people.approver.realName} on the left, and press Approve.`,
    doneWhen: `^${hostName}: (approved|running|done)`,
  },
  { text: 'Read what was measured, before and after. The thread has the rest.', doneWhen: `^${hostName}: done` },
];

export interface DemoWorld {
  readonly slack: LocalSlack;
  readonly box: BoxSituation;
  /** Ends the bot, the box, the leftovers and removes every file. Safe to call twice. */
  close(): Promise<void>;
}

export interface DemoOptions {
  /** Port of the page; 0 = any free one. */
  readonly port?: number;
  readonly logLevel: string;
  /** What is on the box at first; left out: the leftover build. */
  readonly situation?: SituationName;
  /** Settings of the policy that differ from the demo's own. */
  readonly policy?: Readonly<Record<string, unknown>>;
}

export async function startWorld(options: DemoOptions): Promise<DemoWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const sweeper = startSweeper([folder]);
  const closers: (() => Promise<void> | void)[] = [
    // Keys and records of the demo go with it, also when it is killed.
    () => sweeper.sweep(),
  ];
  const close = async (): Promise<void> => {
    // Newest first: the bot stops before the box and the workspace it works with.
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    const sshServer = await startDemoBox({ folder });
    closers.push(() => sshServer.close());
    const box = await startSituation(options.situation ?? 'leftover-build');
    closers.push(() => box.dispose());
    const slack = await startLocalSlack({
      people: Object.values(people),
      channels: [channel],
      botToken: 'xoxb-demo',
      appToken: 'xapp-demo',
      boxName: hostName,
      box: {
        choices: situationNames.map((name) => ({ name, summary: situations[name].summary })),
        chosen: () => box.name(),
        choose: (name) => box.choose(name),
      },
      guide,
      commands: [
        {
          command: '/reclaim',
          hint: hostName,
          example: `/reclaim ${hostName}`,
          description: 'Look at a box, and give its memory back if people agree',
        },
      ],
      ...(options.port === undefined ? {} : { port: options.port }),
    });
    closers.push(() => slack.close());
    const server = await serve(demoConfig(folder, sshServer, slack, options), 'all');
    closers.push(() => server.stop());
    return { slack, box, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

type BoxFacts = Awaited<ReturnType<typeof startDemoBox>>;

/** Written to files and read back like any other configuration, so that the demo runs what everybody runs. */
function demoConfig(
  folder: string,
  box: BoxFacts,
  slack: LocalSlack,
  options: DemoOptions,
): ReturnType<typeof loadConfig> {
  writeFileSync(join(folder, 'known_hosts'), `${box.knownHostsLine}\n`);
  const yaml = {
    hosts: {
      [hostName]: {
        address: '127.0.0.1',
        port: box.port,
        user: box.user,
        identity: box.identityFile,
        knownHosts: [join(folder, 'known_hosts')],
        privilege: userInfo().uid === 0 ? 'root' : 'sudo',
        aliases: ['box'],
      },
    },
    policy: {
      approvers: [people.approver.id, people.second.id],
      people: { [userInfo().username]: people.asker.id },
      grace: '3s',
      // What the demo made is seconds old.
      min_age: { shm: '1s' },
      ...options.policy,
    },
  };
  writeFileSync(join(folder, 'reclaim.yaml'), stringify(yaml));
  return loadConfig({
    cwd: folder,
    env: {
      SLACK_BOT_TOKEN: 'xoxb-demo',
      SLACK_APP_TOKEN: 'xapp-demo',
      SLACK_API_URL: slack.apiUrl,
      HTTP_PORT: '0',
      LOG_LEVEL: options.logLevel,
      RECLAIM_DATA_DIR: join(folder, 'data'),
    },
  });
}
