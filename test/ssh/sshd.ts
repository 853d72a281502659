/**
 * A real OpenSSH server for tests: free port, temp folder, own host keys and sshd_config, stopped by its own pid. Also
 * the keys, agents and Unix users such tests need.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

const sshdBinary = ['/usr/sbin/sshd', '/usr/local/sbin/sshd'].find((path) => existsSync(path));

/** False, loudly, where there is no sshd; under CI a missing one is a failure, not a gap. */
export function haveSshd(): boolean {
  if (sshdBinary !== undefined) return true;
  if (process.env['CI'] === 'true')
    throw new Error('sshd is missing: install openssh-server, these tests must run in CI');
  console.warn('LEFT OUT: no sshd on this machine, so nothing was tried against a real OpenSSH server');
  return false;
}

export type HostKeyType = 'ed25519' | 'rsa' | 'ecdsa';

export interface SshdOptions {
  readonly hostKeys?: readonly HostKeyType[];
  /** Lines for sshd_config. They come first, so they win. */
  readonly config?: readonly string[];
  /** Folders that are empty for this server and its sessions, and put back when it ends: a tmpfs over each. Root only. */
  readonly hidden?: readonly string[];
  /** Public keys let in as any user. */
  readonly authorized: readonly string[];
}

export interface Sshd {
  readonly port: number;
  readonly pid: number;
  readonly dir: string;
  /** `name type base64` lines for a known_hosts file, for this server under `name` ([127.0.0.1]:port by default). */
  knownHosts(name?: string): string;
  log(): string;
  stop(): Promise<void>;
}

export interface KeyPair {
  readonly file: string;
  readonly publicFile: string;
  readonly publicKey: string;
}

export function makeKey(dir: string, type: HostKeyType = 'ed25519', passphrase = ''): KeyPair {
  const file = join(dir, `key-${randomBytes(4).toString('hex')}`);
  const bits = type === 'rsa' ? ['-b', '2048'] : [];
  execFileSync('ssh-keygen', ['-q', '-t', type, ...bits, '-N', passphrase, '-C', 'test', '-f', file]);
  return { file, publicFile: `${file}.pub`, publicKey: readFileSync(`${file}.pub`, 'utf8').trim() };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function startSshd(options: SshdOptions): Promise<Sshd> {
  if (sshdBinary === undefined) throw new Error('no sshd');
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-sshd-'));
  chmodSync(dir, 0o755);
  // sshd as root wants its empty chroot folder, which the package's own service would make.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const hostKeys = (options.hostKeys ?? ['ed25519']).map((type) => makeKey(dir, type));
  writeFileSync(join(dir, 'authorized_keys'), `${options.authorized.join('\n')}\n`, { mode: 0o644 });
  const port = await freePort();
  writeFileSync(
    join(dir, 'sshd_config'),
    [
      ...(options.config ?? []),
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      ...hostKeys.map((key) => `HostKey ${key.file}`),
      `AuthorizedKeysFile ${join(dir, 'authorized_keys')}`,
      `PidFile ${join(dir, 'sshd.pid')}`,
      'StrictModes no',
      'UsePAM no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      'PrintMotd no',
      'LogLevel VERBOSE',
      '',
    ].join('\n'),
  );
  let log = '';
  // -D: stays our child, so that we end exactly this one; sessions it has forked end with their connections.
  const command = [sshdBinary, '-D', '-e', '-f', join(dir, 'sshd_config')];
  const hide =
    'n=$1; shift; while [ $n -gt 0 ]; do mount -t tmpfs -o mode=755 none "$1"; shift; n=$((n-1)); done; exec "$@"';
  const { hidden = [] } = options;
  const child =
    hidden.length === 0
      ? spawn(sshdBinary, command.slice(1), { stdio: ['ignore', 'ignore', 'pipe'] })
      : spawn('unshare', ['-m', 'sh', '-c', hide, 'sh', String(hidden.length), ...hidden, ...command], {
          stdio: ['ignore', 'ignore', 'pipe'],
        });
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  await listening(child, () => log);
  return {
    port,
    pid: child.pid!,
    dir,
    knownHosts: (name = `[127.0.0.1]:${port}`) =>
      hostKeys.map((key) => `${name} ${key.publicKey.split(' ').slice(0, 2).join(' ')}\n`).join(''),
    log: () => log,
    stop: () => stopSshd(child, dir),
  };
}

async function listening(child: ChildProcess, log: () => string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.stderr!.on('data', () => {
      if (log().includes('Server listening on')) resolve();
    });
    child.once('exit', () => {
      reject(new Error(`sshd did not start: ${log()}`));
    });
  });
}

async function stopSshd(child: ChildProcess, dir: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    // A stopped process takes no TERM until it goes on.
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    await gone;
  }
  rmSync(dir, { recursive: true, force: true });
}

const statOf = (pid: string) => {
  try {
    return /^\d+ \((.*)\) \S (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
};

/** The processes of this server's sessions, not of what runs in them. */
export function sessionsOf(server: Sshd): number[] {
  const children = new Map<number, number[]>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const stat = statOf(pid);
    if (stat?.[1]?.startsWith('sshd') !== true) continue;
    const parent = Number(stat[2]);
    children.set(parent, [...(children.get(parent) ?? []), Number(pid)]);
  }
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(server.pid);
}

export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended with another of them.
    }
  }
}

/** Resolves when something accepts on the port and the ssh banner came. */
export async function greets(port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

export interface Agent {
  readonly socket: string;
  add(key: KeyPair): void;
  stop(): void;
}

/** A real ssh-agent of our own. */
export async function startAgent(dir: string): Promise<Agent> {
  const socket = join(dir, `agent-${randomBytes(4).toString('hex')}.sock`);
  const child = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => {
      resolve();
    });
    child.once('exit', () => {
      reject(new Error('ssh-agent did not start'));
    });
  });
  return {
    socket,
    add(key) {
      execFileSync('ssh-add', ['-q', key.file], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    },
    stop() {
      child.kill();
    },
  };
}

export interface TestUser {
  readonly name: string;
  readonly home: string;
  remove(): void;
}

export const isRoot = process.getuid?.() === 0;

/** The user tests log in as when no other is made. */
export const me = userInfo().username;

/** A Unix user with the given login shell, for as long as the test runs. Root only. */
export function makeUser(shell: string): TestUser {
  const name = `rt${randomBytes(5).toString('hex')}`;
  const home = mkdtempSync(join(tmpdir(), `home-${name}-`));
  // '*' and not '!': sshd without PAM takes '!' as a locked account.
  execFileSync('useradd', ['-M', '-d', home, '-s', shell, '-p', '*', name], { stdio: 'ignore' });
  execFileSync('chown', [name, home]);
  return {
    name,
    home,
    remove() {
      spawnSync('userdel', [name], { stdio: 'ignore' });
      rmSync(home, { recursive: true, force: true });
    },
  };
}
