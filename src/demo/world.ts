/** The demo's world: a workspace of four people, a channel, this machine as a box, and the bot itself, all in one process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { loadConfig } from '../config/load.ts';
import { serve } from '../serve.ts';
import { startLocalSlack, type LocalSlack } from '../standin/local-slack.ts';
import { startDemoBox } from './box.ts';
import { makeLeftovers, type Leftovers } from './leftovers.ts';

export const people = {
  asker: { id: 'U0ASKER', name: 'ana', realName: 'Ana (asks)', role: 'asker' },
  approver: { id: 'U0APPROVER', name: 'bo', realName: 'Bo (approves)', role: 'approver' },
  second: { id: 'U0SECOND', name: 'chen', realName: 'Chen (approves too)', role: 'second approver' },
  stranger: { id: 'U0STRANGER', name: 'sam', realName: 'Sam (may not approve)', role: 'stranger' },
} as const;

export const channel = { id: 'C0GPUBOXES', name: 'gpu-boxes', topic: 'Shared GPU boxes' } as const;
export const hostName = 'gpu-box-3';

export interface DemoWorld {
  readonly slack: LocalSlack;
  readonly leftovers: Leftovers;
  /** Ends the bot, the box, the leftovers and removes every file. Safe to call twice. */
  close(): Promise<void>;
}

export interface DemoOptions {
  /** Port of the page; 0 = any free one. */
  readonly port?: number;
  readonly logLevel: string;
}

export async function startWorld(options: DemoOptions): Promise<DemoWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-demo-'));
  const closers: (() => Promise<void> | void)[] = [
    () => {
      rmSync(folder, { recursive: true, force: true });
    },
  ];
  const close = async (): Promise<void> => {
    // Newest first: the bot stops before the box and the workspace it works with.
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    const box = await startDemoBox({ folder });
    closers.push(() => box.close());
    const slack = await startLocalSlack({
      people: Object.values(people),
      channels: [channel],
      botToken: 'xoxb-demo',
      appToken: 'xapp-demo',
      boxName: hostName,
      commands: [
        { command: '/reclaim', hint: hostName, description: 'Look at a box, and give its memory back if people agree' },
      ],
      ...(options.port === undefined ? {} : { port: options.port }),
    });
    closers.push(() => slack.close());
    const leftovers = await makeLeftovers();
    closers.push(() => leftovers.dispose());
    const server = await serve(demoConfig(folder, box, slack, options.logLevel), 'all');
    closers.push(() => server.stop());
    return { slack, leftovers, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

type BoxFacts = Awaited<ReturnType<typeof startDemoBox>>;

/** Written to files and read back like any other configuration, so that the demo runs what everybody runs. */
function demoConfig(folder: string, box: BoxFacts, slack: LocalSlack, logLevel: string): ReturnType<typeof loadConfig> {
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
      LOG_LEVEL: logLevel,
      RECLAIM_DATA_DIR: join(folder, 'data'),
    },
  });
}
