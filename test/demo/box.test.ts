import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeKeyPair, startDemoBox, type DemoBox } from '../../src/demo/box.ts';

let box: DemoBox;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'demo-box-'));
  box = await startDemoBox({ folder });
});
afterEach(async () => {
  await box.close();
  rmSync(folder, { recursive: true, force: true });
});

function login(config: Partial<ssh2.ConnectConfig> = {}): Promise<ssh2.Client> {
  const known = ssh2.utils.parseKey(box.knownHostsLine.split(' ').slice(1).join(' '));
  if (known instanceof Error) throw known;
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client();
    client.on('ready', () => {
      resolve(client);
    });
    client.on('error', reject);
    client.connect({
      host: '127.0.0.1',
      port: box.port,
      username: box.user,
      privateKey: readFileSync(box.identityFile),
      hostVerifier: (key: Buffer, verify: (ok: boolean) => void) => {
        verify(key.equals(known.getPublicSSH()));
      },
      ...config,
    });
  });
}

interface Result {
  code: number | null;
  signal?: string;
  out: string;
  err: string;
}

function exec(client: ssh2.Client, command: string, stdin = ''): Promise<Result> {
  return new Promise((resolve, reject) => {
    client.exec(command, (error, channel) => {
      if (error) {
        reject(error);
        return;
      }
      const result: Result = { code: null, out: '', err: '' };
      channel.on('data', (d: Buffer) => {
        result.out += d.toString();
      });
      channel.stderr.on('data', (d: Buffer) => {
        result.err += d.toString();
      });
      channel.on('exit', (code: number | null, signal?: string) => {
        result.code = code;
        if (signal !== undefined) result.signal = signal;
      });
      channel.on('close', () => {
        resolve(result);
      });
      channel.end(stdin);
    });
  });
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]![0] !== 'Z';
  } catch {
    return false;
  }
}

describe('the ssh server of the demo', () => {
  it('runs a command for real: input, both outputs, exit code', async () => {
    const client = await login();
    expect(await exec(client, 'cat; echo oops >&2; exit 7', 'hello\n')).toEqual({
      code: 7,
      out: 'hello\n',
      err: 'oops\n',
    });
    client.end();
  });

  it('passes on the signal a command died of', async () => {
    const client = await login();
    expect(await exec(client, 'kill -9 $$')).toMatchObject({ signal: 'SIGKILL' });
    client.end();
  });

  it('lets in nobody else: a wrong key, a password, another user', async () => {
    const stranger = makeKeyPair().private;
    await expect(login({ privateKey: stranger })).rejects.toThrow('authentication methods failed');
    await expect(login({ privateKey: '', password: 'x' })).rejects.toThrow('authentication methods failed');
    await expect(login({ username: 'nobody-else' })).rejects.toThrow('authentication methods failed');
    expect(statSync(box.identityFile).mode & 0o777).toBe(0o600);
  });

  it('ends a command and its children when the connection goes', async () => {
    const client = await login();
    const pids = await new Promise<number[]>((resolve, reject) => {
      client.exec('sleep 600 & echo $$ $!; wait', (error, channel) => {
        if (error) {
          reject(error);
          return;
        }
        channel.on('data', (d: Buffer) => {
          resolve(d.toString().trim().split(' ').map(Number));
        });
      });
    });
    expect(pids.map(isThere)).toEqual([true, true]);
    client.destroy();
    const deadline = Date.now() + 5_000;
    while (pids.some(isThere) && Date.now() < deadline) await new Promise((r) => setTimeout(r, 20));
    expect(pids.map(isThere)).toEqual([false, false]);
  });
});
