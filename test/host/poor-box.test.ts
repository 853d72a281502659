/** Boxes that lack most tools, or where some hang: still collected from, with what was lost said. */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { captureSchema, type Blob, type Capture } from '../../src/memory/contract.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { bootId, Crowd, isAlive, realBox, shells, targetOf } from './real-box.ts';

const crowd = new Crowd();
const dir = mkdtempSync(join(tmpdir(), 'reclaim-poor-'));
afterAll(() => {
  crowd.end();
  rmSync(dir, { recursive: true });
});

/** A folder of tools as busybox brings them, without those named. */
function busyboxTools(name: string, without: readonly string[]): string {
  const tools = join(dir, name);
  mkdirSync(tools);
  copyFileSync('/usr/bin/busybox', join(tools, 'busybox'));
  copyFileSync('/usr/bin/dash', join(tools, 'dash'));
  const applets = execFileSync('/usr/bin/busybox', ['--list'], { encoding: 'utf8' }).trim().split('\n');
  for (const applet of applets) {
    if (!without.includes(applet) && applet !== 'busybox') symlinkSync('busybox', join(tools, applet));
  }
  return tools;
}

/** Everything in the search path gone but these tools, seen by the program alone. */
function only(tools: string): string {
  const empty = join(dir, 'empty');
  mkdirSync(empty, { recursive: true });
  const hide = ['/usr/local/bin', '/usr/local/sbin', '/usr/sbin'].map((path) => `mount --bind ${empty} ${path} && `);
  return `exec unshare -m sh -c '${hide.join('')}mount --bind ${tools} /usr/bin && exec "$@"' sh "$@"`;
}

/** Programs that never answer, and take no TERM, in the place of real ones. */
function hanging(...paths: string[]): string {
  const script = join(dir, 'hangs');
  writeFileSync(script, '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n');
  chmodSync(script, 0o755);
  const binds = paths.map((path) => `mount --bind ${script} ${path} && `).join('');
  return `exec unshare -m sh -c '${binds}exec "$@"' sh "$@"`;
}

const plain = (blob: Blob | undefined): string => (typeof blob === 'string' ? blob : '');
const file = (capture: Capture, path: string) => plain(capture.files[path]);
const stdout = (capture: Capture, name: string) => plain(capture.commands[name]?.stdout);

const bare = busyboxTools('bare', ['timeout', 'flock', 'gzip', 'free', 'dmesg']);

describe.each(['dash', 'busybox sh'])('a box with nothing but a few busybox tools, under %s', (shell) => {
  it('is read all the same, and what it lacks is said', { timeout: 90_000 }, async () => {
    const path = `/dev/shm/reclaim-poor-${process.pid}`;
    writeFileSync(path, Buffer.alloc(2 << 20));
    // Large enough to be looked into also on a machine with very many processes.
    const code = `f=open(${JSON.stringify(path)},'rb')\nheld=b'x'*(24<<20)`;
    const holder = await crowd.named('holder', code);
    try {
      const capture = await realBox(shell, only(bare)).collect({ scope: 'full', windowSeconds: 0 });
      expect(captureSchema.safeParse(capture).success).toBe(true);
      expect(file(capture, '/proc/meminfo')).toMatch(/^MemTotal:/);
      for (const name of ['stat', 'status', 'cmdline', 'cgroup']) {
        expect(file(capture, `/proc/${holder.pid}/${name}`)).not.toBe('');
      }
      expect(stdout(capture, 'links').split('\0')).toContain(`${holder.pid} exe /usr/bin/python3.11`);
      expect(
        stdout(capture, 'shm files')
          .split('\0')
          .some((record) => record.endsWith(` 2048 ${path}`) || record.endsWith(path)),
      ).toBe(true);
      expect(stdout(capture, 'fd holders').split('\0')).toContain(`${holder.pid} ${path}`);
      for (const name of ['nvidia-smi gpus', 'nvidia-smi compute-apps', 'sessions', 'slurm jobs', 'docker ps']) {
        expect(capture.commands[name]!.status).toBe(127);
      }
      expect(capture.commands['free -k']).toEqual({ status: 127, stdout: '' });
      expect(capture.commands['dmesg oom']!.status).toBe(127);
      expect(think(capture, defaultThinkOptions).diagnosis.partial.length).toBeGreaterThan(0);
    } finally {
      rmSync(path);
    }
  });

  it('is not acted on without flock, which is said', async () => {
    const target = await crowd.named('cicc');
    const killing = realBox(shell, only(bare)).kill({
      ...{ bootId, graceMs: 500, protect: [], targets: [targetOf(target)] },
    });
    await expect(killing).rejects.toThrow(/flock .* is not installed .*Nothing was done/);
    expect(isAlive(target)).toBe(true);
  });

  it('is acted on with flock alone: no perl, python3 or timeout', async () => {
    const tools = busyboxTools(`acting-${shell.replace(' ', '-')}`, ['timeout']);
    rmSync(join(tools, 'flock'), { force: true });
    copyFileSync('/usr/bin/flock', join(tools, 'flock'));
    chmodSync(join(tools, 'flock'), 0o755);
    const target = await crowd.named('cicc');
    const order = { bootId, graceMs: 500, protect: [], targets: [targetOf(target)] };
    expect(await realBox(shell, only(tools)).kill(order)).toMatchObject([{ result: 'exited' }]);
    expect(target.signalCode).toBe('SIGTERM');
    // Nothing of the first run holds the lock any more.
    expect(await realBox(shell, only(tools)).kill(order)).toMatchObject([{ result: 'already_gone' }]);
  });
});

// All at once: they only wait.
describe('a box that is stuck', () => {
  it.concurrent.each(shells)(
    'is read past a df and a getent that hang, under %s',
    { timeout: 60_000 },
    async (shell) => {
      const startedAt = performance.now();
      const around = hanging('/usr/bin/df', '/usr/bin/getent');
      const capture = await realBox(shell, around).collect({ scope: 'full', windowSeconds: 0 });
      expect(performance.now() - startedAt).toBeLessThan(40_000);
      expect(capture.commands['df tmpfs']).toMatchObject({ status: null, timedOut: true });
      expect(file(capture, '/proc/meminfo')).toMatch(/^MemTotal:/);
      expect(think(capture, defaultThinkOptions).diagnosis.verdict).toBeDefined();
      const cheap = await realBox(shell, around).collect({ scope: 'memory' });
      expect(cheap.commands['df tmpfs']).toMatchObject({ status: null, timedOut: true });
      expect(file(cheap, '/proc/meminfo')).toMatch(/^MemTotal:/);
    },
  );
});

describe.each(shells)('a box that is stuck, under %s', (shell) => {
  it('is read past a process that sleeps in the kernel, and where it sleeps is told', async () => {
    // A parent waits in state D until its vfork child goes on.
    const code = `import ctypes,os,sys,time
held=b'x'*(24<<20)
os.write(1,b'up')
if ctypes.CDLL(None).vfork()==0: time.sleep(25); os._exit(0)`;
    const stuck = await crowd.start('/usr/bin/python3', ['-I', '-S', '-c', code]);
    const stat = () => readFileSync(`/proc/${stuck.pid}/stat`, 'utf8');
    await expect.poll(() => / [DS] /.exec(stat())?.[0], { timeout: 15_000 }).toBe(' D ');
    const children = readFileSync(`/proc/${stuck.pid}/task/${stuck.pid}/children`, 'utf8').trim();
    try {
      const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
      expect(file(capture, `/proc/${stuck.pid}/stat`)).toContain(' D ');
      expect(file(capture, `/proc/${stuck.pid}/cmdline`)).toContain('vfork');
      expect(file(capture, `/proc/${stuck.pid}/wchan`)).not.toBe('');
      expect(file(capture, '/proc/sys/fs/dentry-state')).toMatch(/^\d+\s+\d+/);
    } finally {
      process.kill(Number(children), 'SIGKILL');
    }
  });
});
