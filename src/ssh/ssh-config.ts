/**
 * An ssh config file, read only where reclaim.yaml names one. `ssh -G` answers with ssh's own rules (Include, Match,
 * tokens); it runs `Match exec` commands, which is why no file is read unasked. Without an ssh client the plain part of
 * the format is read here, and what that cannot express is refused, never guessed. What reclaim.yaml says wins.
 */
import { execFile } from 'node:child_process';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostConfig } from '../config/schema.ts';
import { ReclaimError } from '../errors.ts';
import { coversName } from './known-hosts.ts';

/** Where and as whom to connect: HostConfig with the ssh config file worked in. */
export interface Route {
  readonly host: string;
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly identity?: string | undefined;
  readonly agentIdentity?: string | undefined;
  readonly knownHosts: readonly string[];
  readonly hostKeyAlias?: string | undefined;
  /** `ProxyJump` of the file, first hop first; a `jump` in reclaim.yaml comes before it. */
  readonly proxyJump: readonly string[];
}

const answerMs = 5_000;

/** @throws ReclaimError ssh_config_invalid */
export async function routeOf(host: HostConfig, sshBinary = 'ssh'): Promise<Route> {
  const plain: Route = {
    host: host.name,
    address: host.address,
    port: host.port,
    user: host.user,
    identity: host.identity,
    agentIdentity: host.agentIdentity,
    knownHosts: host.knownHosts,
    hostKeyAlias: host.hostKeyAlias,
    proxyJump: [],
  };
  if (host.sshConfig === undefined) return plain;
  const said = await ask(host, host.sshConfig, sshBinary);
  const one = (key: string) => said.get(key)?.[0];
  if ((one('proxycommand') ?? 'none') !== 'none') {
    throw invalid(
      host,
      'it uses ProxyCommand, which Reclaim does not run',
      'Use ProxyJump, or "jump" in reclaim.yaml.',
    );
  }
  const open = new Set(host.defaulted ?? []);
  const alias = host.hostKeyAlias ?? one('hostkeyalias');
  const known = one('userknownhostsfile');
  const jump = one('proxyjump') ?? 'none';
  return {
    ...plain,
    address: one('hostname') ?? host.address,
    port: open.has('port') ? Number(one('port') ?? host.port) : host.port,
    user: open.has('user') ? (one('user') ?? host.user) : host.user,
    identity: open.has('identity') ? await firstExisting(said.get('identityfile') ?? [], host.identity) : host.identity,
    hostKeyAlias: alias === 'none' ? undefined : alias,
    knownHosts: open.has('knownHosts') && known !== undefined ? known.split(' ').map(expandHome) : host.knownHosts,
    proxyJump: host.jump !== undefined || jump === 'none' ? [] : jump.split(',').map((hop) => hop.trim()),
  };
}

function invalid(host: HostConfig, what: string, next: string, cause?: unknown): ReclaimError {
  return new ReclaimError(
    'ssh_config_invalid',
    `The ssh config file ${host.sshConfig ?? ''} cannot be used for ${host.name}: ${what}. Nothing was connected. ${next}`,
    { cause },
  );
}

type Answers = ReadonlyMap<string, readonly string[]>;

/**
 * Our defaults go after the file, so that ssh's "first value wins" ranks them below what the file says; plain `ssh -G`
 * would answer with its own (the local user, port 22) and hide whether the file said anything.
 */
async function ask(host: HostConfig, file: string, sshBinary: string): Promise<Answers> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(
      host,
      'it cannot be read',
      'Check the path in reclaim.yaml, and the owner and mode of the file.',
      cause,
    );
  });
  const quoted = (value: string) => `"${value.replaceAll('%', '%%')}"`;
  const defaults = [
    'Match all',
    `User ${host.user}`,
    `Port ${host.port}`,
    ...(host.identity === undefined ? [] : [`IdentityFile ${quoted(host.identity)}`]),
    `UserKnownHostsFile ${host.knownHosts.map(quoted).join(' ')}`,
  ].join('\n');
  const dir = await mkdtemp(join(tmpdir(), 'reclaim-ssh-'));
  try {
    const wrapper = join(dir, 'config');
    await writeFile(wrapper, `Include ${quoted(file)}\n${defaults}\n`, { mode: 0o600 });
    return parseAnswers(await runSsh(sshBinary, ['-G', '-F', wrapper, '--', host.address]));
  } catch (cause) {
    const inner = cause instanceof Error ? cause.cause : undefined;
    if (inner instanceof Error && 'code' in inner && inner.code === 'ENOENT') return readPlain(host, text);
    const stderr = cause instanceof Error ? cause.message : '';
    const why = stderr.trim().split('\n')[0]?.replace(`${dir}/config`, file).slice(0, 160) ?? '';
    throw invalid(host, why === '' ? 'ssh -G gave no answer' : `ssh says "${why}"`, 'Mend it and try again.', cause);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function runSsh(binary: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(binary, [...args], { timeout: answerMs, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(stderr, { cause: error }));
    });
  });
}

function parseAnswers(text: string): Answers {
  const answers = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ');
    if (space < 0) continue;
    const key = line.slice(0, space).toLowerCase();
    answers.set(key, [...(answers.get(key) ?? []), line.slice(space + 1).trim()]);
  }
  return answers;
}

/** The format without ssh's help: `Host` blocks, first value wins. */
function readPlain(host: HostConfig, text: string): Answers {
  const answers = new Map<string, string[]>();
  let applies = true;
  for (const raw of text.split('\n')) {
    const m = /^\s*([A-Za-z]+)(?:\s*=\s*|\s+)"?(.*?)"?\s*$/.exec(raw);
    const key = m?.[1]?.toLowerCase();
    const value = m?.[2];
    if (key === undefined || value === undefined) continue;
    if (key === 'include' || key === 'match') {
      throw invalid(host, `it uses ${key}, which needs the ssh client`, 'Install openssh-client where Reclaim runs.');
    }
    if (key === 'host') applies = coversName(value.trim().split(/\s+/).join(','), host.address.toLowerCase());
    else if (applies && (key === 'identityfile' || !answers.has(key))) {
      answers.set(key, [...(answers.get(key) ?? []), value.replaceAll('%h', host.address)]);
    }
  }
  return answers;
}

function expandHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

async function firstExisting(paths: readonly string[], otherwise: string | undefined): Promise<string | undefined> {
  for (const path of paths.map(expandHome)) {
    const there = await access(path).then(
      () => true,
      () => false,
    );
    if (there) return path;
  }
  return otherwise;
}
