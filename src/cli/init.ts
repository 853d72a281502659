/** `reclaim init`: the first .env and reclaim.yaml, from a few answers or flags. Never overwrites; asks for no secret. */
import { existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { importHosts, type ImportedHost } from '../config/import-hosts.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { readArgs, type CliIo, type Command } from './io.ts';
import { readTextFile } from './output.ts';

const usage =
  'reclaim init [--from FILE] [--host NAME=ADDRESS]… [--user NAME] [--privilege sudo|root|none|helper] [--approver ID]…';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Answers {
  readonly hosts: readonly ImportedHost[];
  readonly user: string;
  readonly privilege: string;
  readonly approvers: readonly string[];
}

export const initCommand: Command = {
  summary: 'Write the first .env and reclaim.yaml here, with hosts from an ssh config, an inventory or plain lines.',
  usage,
  examples: [
    'reclaim init',
    'reclaim init --from ~/.ssh/config --approver U0123ABCD',
    'reclaim init --host gpu-box-3=192.0.2.13 --privilege helper',
  ],
  async run(args, io) {
    const options = {
      from: { type: 'string' },
      host: { type: 'string', multiple: true },
      user: { type: 'string' },
      privilege: { type: 'string' },
      approver: { type: 'string', multiple: true },
    } as const;
    const { values } = readArgs(args, options, usage);
    const file = resolve(io.cwd, values.config ?? 'reclaim.yaml');
    if (existsSync(file)) {
      throw new ReclaimError(
        'usage',
        `${file} is there already, so nothing was written. Edit it, or name another with --config FILE.`,
      );
    }
    const flagged = Object.keys(values).some((key) => key !== 'config');
    const answers = flagged ? await fromFlags(values, io) : await fromQuestions(io);
    write(file, reclaimYaml(answers), io);
    const env = join(io.cwd, '.env');
    if (existsSync(env)) io.err(`${env} is there already and was left alone.\n`);
    else write(env, envText, io, 0o600);
    // What we wrote must be what we read.
    loadConfig({ cwd: io.cwd, env: io.env, file });
    io.out(nextSteps(answers));
    return exitCodes.done;
  },
};

function write(path: string, text: string, io: CliIo, mode = 0o644): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode });
  } catch (cause) {
    const next = 'Check the owner and mode of the folder, then try again.';
    throw new ReclaimError('file_unreadable', `${path} cannot be written, so nothing more was done. ${next}`, {
      cause,
    });
  }
  io.err(`Wrote ${path}.\n`);
}

interface Flags {
  readonly from?: string | undefined;
  readonly host?: readonly string[] | undefined;
  readonly user?: string | undefined;
  readonly privilege?: string | undefined;
  readonly approver?: readonly string[] | undefined;
}

async function fromFlags(flags: Flags, io: CliIo): Promise<Answers> {
  const named = importHosts((flags.host ?? []).join('\n'));
  if (named.left.length > 0) throw new ReclaimError('usage', `${named.left.join(' ')} Nothing was written.`);
  const filed = flags.from === undefined ? [] : await hostsOfFile(flags.from, io);
  return checked({
    hosts: [...named.hosts, ...filed.filter((host) => !named.hosts.some(({ name }) => name === host.name))],
    user: flags.user ?? 'reclaim',
    privilege: flags.privilege ?? 'sudo',
    approvers: flags.approver ?? [],
  });
}

async function hostsOfFile(path: string, io: CliIo): Promise<readonly ImportedHost[]> {
  const found = importHosts(await readTextFile(path.replace(/^~(?=\/)/, io.env['HOME'] ?? '~'), io.cwd));
  io.err(`${path} (${found.format}): ${found.hosts.length} ${found.hosts.length === 1 ? 'host' : 'hosts'}.\n`);
  for (const sentence of found.left) io.err(`  left out: ${sentence}\n`);
  return found.hosts;
}

/** Each question has an answer for Enter, so that it can be walked through without knowing anything. */
async function fromQuestions(io: CliIo): Promise<Answers> {
  const ask = async (question: string, otherwise: string): Promise<string> => {
    const answer = (await io.ask(`${question}${otherwise === '' ? '' : ` [${otherwise}]`}: `))?.trim();
    if (answer === undefined)
      throw new ReclaimError('usage', `There is no terminal to ask in, so nothing was written. Usage: ${usage}`);
    return answer === '' ? otherwise : answer;
  };
  const source = await ask('Hosts: a file (ssh config, Ansible inventory, lines), or NAME=ADDRESS NAME=ADDRESS …', '');
  const isFile = source !== '' && existsSync(resolve(io.cwd, source.replace(/^~(?=\/)/, io.env['HOME'] ?? '~')));
  const hosts = isFile ? await hostsOfFile(source, io) : importHosts(source.split(/\s+/).join('\n')).hosts;
  return checked({
    hosts,
    user: await ask('Unix user to log in as', 'reclaim'),
    privilege: await ask('How it may act: sudo, helper, root or none', 'sudo'),
    approvers: (await ask('Slack ids of who may approve (U… or S…)', '')).split(/[\s,]+/).filter((id) => id !== ''),
  });
}

const privileges = ['sudo', 'helper', 'root', 'none'];

/** The rest is held to the schema by reading the file back; these three would leave a file behind that is refused. */
function checked(answers: Answers): Answers {
  const wrong =
    !privileges.includes(answers.privilege) && `"${answers.privilege}" is none of ${privileges.join(', ')}.`;
  const noId = answers.approvers.find((id) => !/^[UWS][A-Z0-9]{2,}$/.test(id));
  const said =
    wrong !== false
      ? wrong
      : noId !== undefined
        ? `"${noId}" is no Slack id: one looks like U0123ABCD, a user group like S0123ABCD.`
        : !/^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$/.test(answers.user) && `"${answers.user}" is not a Unix user name.`;
  if (said !== false) throw new ReclaimError('usage', `${said} Nothing was written.`);
  return answers;
}

function reclaimYaml({ hosts, user, privilege, approvers }: Answers): string {
  const entries = hosts.map(({ name, groups, ...host }) => [
    name,
    { ...host, ...(groups.length === 0 ? {} : { groups: [...groups] }) },
  ]);
  const body = {
    defaults: { user, identity: '~/.ssh/reclaim_ed25519', privilege, knownHosts: ['~/.ssh/known_hosts'] },
    hosts: Object.fromEntries(entries) as Record<string, unknown>,
    policy: { approvers: [...approvers], self_approval: 'never', people: {} },
  };
  return `# Hosts and policy. reclaim.example.yaml shows every key there is; docs/reference.md says what each does.\n${stringify(body)}`;
}

const envText = `# Secrets and addresses. .env.example shows every key there is.
SLACK_BOT_TOKEN=
SLACK_APP_TOKEN=
# redis://host:6379, or empty for the embedded store in ./.reclaim
QUEUE_URL=
`;

function nextSteps({ hosts, approvers }: Answers): string {
  const first = hosts[0]?.name ?? 'HOST';
  const steps = [
    ...(hosts.length === 0 ? ['Name your hosts in reclaim.yaml.'] : []),
    'Make the key the bot logs in with:  ssh-keygen -t ed25519 -f ~/.ssh/reclaim_ed25519',
    `Let each host in, then:  reclaim trust ${first}`,
    `Look at one from here, with no Slack at all:  reclaim diagnose ${first}`,
    `Create the Slack app from ${join(root, 'manifest.yaml')} (api.slack.com/apps, "From a manifest"), and put its two tokens into .env`,
    ...(approvers.length === 0 ? ['Name who may approve: policy.approvers. Until then nobody can.'] : []),
    'Check all of it:  reclaim doctor',
    'Start:  reclaim serve',
  ];
  return `Next:\n${steps.map((step, i) => `  ${i + 1}. ${step}`).join('\n')}\n`;
}
