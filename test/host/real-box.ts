/** This machine as a box under each shell the program must run in, and processes to try it on. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { boxOver, type JournaledBox } from '../../src/ssh/host-program.ts';
import { LocalTransport } from '../../src/ssh/local.ts';

export const shells = ['dash', 'bash --posix', 'busybox sh'] as const;

export const clock: Clock = {
  now: () => Date.parse('2026-11-30T20:54:00Z'),
  sleep: () => Promise.resolve(),
};

/**
 * Lock and journal are one per box, so two test files that act on this machine side by side would find it busy: each file
 * gets a /run of its own, where the machine lets it.
 */
export const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0;
export const runFolder = mayMount ? mkdtempSync(join(tmpdir(), 'reclaim-run-')) : '/run';
if (mayMount)
  afterAll(() => {
    rmSync(runFolder, { recursive: true, force: true });
  });
const inOwnRun = (command: readonly [string, ...string[]]): readonly [string, ...string[]] =>
  mayMount ? ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /run && exec "$@"', runFolder, ...command] : command;

/** `around` is a shell command that ends by running "$@", the shell with the program (ours, or another text) on its stdin. */
export function realBox(shell: string, around = 'exec "$@"', program?: string): JournaledBox {
  const start = `set -- ${shell} -s; ${around} #`;
  const transport = new LocalTransport('this-machine', {
    privilege: 'root',
    shell: inOwnRun(['/bin/sh', '-c', start]),
  });
  return boxOver(transport, { privilege: 'root', clock, ...(program === undefined ? {} : { program }) });
}

export const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

export function startTimeOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
}

export const isAlive = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;

/** Processes of one test file; `end` ends whatever is left of them. */
export class Crowd {
  readonly #children: ChildProcess[] = [];

  /** Starts a process and waits until it says something, so that its handlers stand and its name is set. */
  async start(command: string, args: readonly string[]): Promise<ChildProcess & { pid: number; startTime: number }> {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#children.push(child);
    await new Promise((resolve, reject) => {
      child.stdout.once('data', resolve);
      child.once('error', reject);
      child.once('exit', reject);
    });
    const pid = child.pid!;
    return Object.assign(child, { pid, startTime: startTimeOf(pid) });
  }

  /** A process that does nothing, under any name of up to 15 bytes. */
  named(name: string, before = '') {
    const code = `import sys\nopen('/proc/self/comm','wb').write(bytes.fromhex(sys.argv[1]))\n${before}\nprint('up',flush=True)\nsys.stdin.read()`;
    return this.start('/usr/bin/python3', ['-I', '-S', '-c', code, Buffer.from(name).toString('hex')]);
  }

  end(): void {
    for (const child of this.#children.splice(0)) if (isAlive(child)) child.kill('SIGKILL');
  }
}

export const targetOf = ({ pid, startTime }: { pid: number; startTime: number }) => ({ pid, startTime });
