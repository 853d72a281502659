/** Real servers on free ports and in folders of their own, ended with the test. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export function has(binary: string): boolean {
  const found = spawnSync('sh', ['-c', `command -v ${binary}`]).status === 0;
  if (!found && process.env['CI'] === 'true') throw new Error(`${binary} is missing under CI`);
  if (!found) console.warn(`LEFT OUT: tests that need ${binary}, which is not installed here`);
  return found;
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Ends the server as a crash would. */
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** redis-server with AOF in a folder of its own. */
export async function redisServer(): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const stop = async () => {
    if (child?.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  const start = async () => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--appendonly', 'yes', '--save', ''];
    const started = spawn('redis-server', [...args, '--appendfsync', 'always'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    await new Promise<void>((resolve, reject) => {
      started.once('exit', () => {
        reject(new Error('redis-server ended before it was ready'));
      });
      started.stdout.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('Ready to accept')) resolve();
      });
    });
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    stop,
    start,
    async remove() {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A Postgres cluster of its own; run as `nobody` when we are root, because Postgres refuses to run as root. */
export async function postgresServer(): Promise<{ url: string; remove(): Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-pg-'));
  const port = await freePort();
  const root = process.getuid?.() === 0;
  const uid = root ? Number(execFileSync('id', ['-u', 'nobody']).toString()) : undefined;
  const as = uid === undefined ? {} : { uid, gid: Number(execFileSync('id', ['-g', 'nobody']).toString()) };
  if (uid !== undefined) execFileSync('chown', [String(uid), dir]);
  const data = join(dir, 'data');
  execFileSync('initdb', ['-D', data, '-U', 'reclaim', '-A', 'trust', '-N'], { ...as, stdio: 'ignore', cwd: dir });
  const child = spawn('postgres', ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', dir, '-F'], {
    ...as,
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => {
      reject(new Error('postgres ended before it was ready'));
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('ready to accept connections')) resolve();
    });
  });
  return {
    url: `postgres://reclaim@127.0.0.1:${port}/postgres`,
    async remove() {
      child.kill('SIGINT');
      await once(child, 'exit');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
