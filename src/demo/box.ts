/** The demo's box: an ssh server on loopback that runs what it is told for real, as the user who started the demo. */
import { spawn, type ChildProcess } from 'node:child_process';
import { timingSafeEqual } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import ssh2, { type AuthContext, type Connection, type ParsedKey, type ServerChannel } from 'ssh2';

export interface DemoBox {
  readonly port: number;
  readonly user: string;
  /** A line for known_hosts: `[127.0.0.1]:PORT ssh-ed25519 …`. */
  readonly knownHostsLine: string;
  /** File with the only key that may log in; readable by its owner alone. */
  readonly identityFile: string;
  /** Ends connections and every command still running. */
  close(): Promise<void>;
}

export interface DemoBoxOptions {
  /** An existing folder for the key. */
  readonly folder: string;
  readonly port?: number;
}

function parsed(key: string): ParsedKey {
  const answer = ssh2.utils.parseKey(key);
  if (answer instanceof Error) throw answer;
  return answer;
}

/** ssh2 1.17.0 writes about one private key in 300 with wrong padding and cannot read it back, so it is tried first. */
export function makeKeyPair(): { readonly private: string; readonly public: string } {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519');
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Public key only, and only the one made for this demo. */
function authenticate(context: AuthContext, user: string, allowed: ParsedKey): void {
  const isOurs =
    context.method === 'publickey' && context.username === user && isSame(context.key.data, allowed.getPublicSSH());
  if (!isOurs) {
    context.reject(['publickey']);
    return;
  }
  // Without a signature the client only asks whether this key would do.
  if (context.signature === undefined || context.blob === undefined) context.accept();
  else if (allowed.verify(context.blob, context.signature, context.hashAlgo)) context.accept();
  else context.reject(['publickey']);
}

const signalNumbers: Record<string, NodeJS.Signals> = {
  TERM: 'SIGTERM',
  KILL: 'SIGKILL',
  INT: 'SIGINT',
  HUP: 'SIGHUP',
};

/** A command runs in a process group of its own, so that what it started ends with it. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group has ended by itself.
  }
}

function runCommand(command: string, channel: ServerChannel, running: Set<ChildProcess>): ChildProcess {
  const child = spawn('/bin/sh', ['-c', command], { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  channel.pipe(child.stdin);
  child.stdin.on('error', () => undefined);
  child.stdout.pipe(channel, { end: false });
  child.stderr.pipe(channel.stderr, { end: false });
  child.on('error', () => {
    channel.exit(127);
    channel.end();
  });
  child.on('exit', () => running.delete(child));
  child.on('close', (code, signal) => {
    if (signal === null) channel.exit(code ?? 255);
    else channel.exit(signal.replace(/^SIG/, ''));
    channel.end();
  });
  return child;
}

function serve(connection: Connection, user: string, allowed: ParsedKey, running: Set<ChildProcess>): void {
  const mine = new Set<ChildProcess>();
  connection.on('authentication', (context) => {
    authenticate(context, user, allowed);
  });
  connection.on('session', (acceptSession) => {
    const session = acceptSession();
    let child: ChildProcess | undefined;
    session.on('exec', (accept, _reject, info) => {
      child = runCommand(info.command, accept(), running);
      const started = child;
      mine.add(started);
      started.on('exit', () => mine.delete(started));
    });
    session.on('signal', (accept, _reject, info) => {
      const signal = signalNumbers[info.name.replace(/^SIG/, '')];
      if (child !== undefined && signal !== undefined) killGroup(child, signal);
      (accept as (() => void) | undefined)?.();
    });
  });
  connection.on('error', () => {
    connection.end();
  });
  connection.on('close', () => {
    for (const child of mine) killGroup(child, 'SIGKILL');
  });
}

export async function startDemoBox(options: DemoBoxOptions): Promise<DemoBox> {
  const hostKey = makeKeyPair();
  const userKey = makeKeyPair();
  const user = userInfo().username;
  const identityFile = join(options.folder, 'demo_ed25519');
  mkdirSync(options.folder, { recursive: true });
  writeFileSync(identityFile, userKey.private, { mode: 0o600 });
  const allowed = parsed(userKey.public);
  const running = new Set<ChildProcess>();
  const connections = new Set<Connection>();
  const server = new ssh2.Server({ hostKeys: [hostKey.private] }, (connection) => {
    connections.add(connection);
    connection.on('close', () => connections.delete(connection));
    serve(connection, user, allowed, running);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no address');
  const [type, key] = hostKey.public.split(' ');
  return {
    port: address.port,
    user,
    knownHostsLine: `[127.0.0.1]:${address.port} ${type ?? ''} ${key ?? ''}`,
    identityFile,
    close: async () => {
      for (const child of running) killGroup(child, 'SIGKILL');
      for (const connection of connections) connection.end();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
