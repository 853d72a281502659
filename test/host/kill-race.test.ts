/**
 * Numbers that go to another process, made to happen for real (ns_last_pid): before the plan is acted on, and between the
 * check and the signal. Under each way of signalling, with the others hidden from the program.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { KillOrder } from '../../src/box.ts';
import { readHostProgram } from '../../src/ssh/host-program.ts';
import { bootId, Crowd, isAlive, realBox, startTimeOf, targetOf } from './real-box.ts';

const crowd = new Crowd();
const innocents: ChildProcess[] = [];
const dir = mkdtempSync(join(tmpdir(), 'reclaim-race-'));
afterAll(() => {
  crowd.end();
  for (const innocent of innocents) innocent.kill('SIGKILL');
  rmSync(dir, { recursive: true });
});

const order = (targets: KillOrder['targets']): KillOrder => ({ bootId, graceMs: 1_000, protect: [], targets });

/** The ways to signal, each with what to hide (in a mount namespace of its own) so that the program has no other. */
const ways = {
  perl: [],
  python: ['/usr/bin/perl'],
  shell: ['/usr/bin/perl', '/usr/bin/python3'],
} as const satisfies Record<string, readonly string[]>;
type Way = keyof typeof ways;

function around(way: Way): string {
  const hide = ways[way].map((path) => `mount --bind /dev/null ${path} && `).join('');
  return `exec unshare -m sh -c '${hide}exec "$@"' sh "$@"`;
}
const boxBy = (way: Way, program?: string) => realBox('dash', around(way), program);

/** Gives `pid` to a new process: the kernel hands out the number after ns_last_pid. Null when another was faster. */
function reuse(pid: number): (ChildProcess & { pid: number }) | null {
  writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1));
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
  if (child.pid === pid) {
    innocents.push(child);
    return Object.assign(child, { pid });
  }
  child.kill('SIGKILL');
  return null;
}

/** Processes that were planned, are gone, and whose numbers belong to innocents now. */
async function swapped(count: number) {
  const planned = await Promise.all(Array.from({ length: count }, () => crowd.named('cc1plus')));
  for (const one of planned) one.kill('SIGKILL');
  await expect.poll(() => planned.some(isAlive), { interval: 5, timeout: 20_000 }).toBe(false);
  return planned.map(targetOf).flatMap((target) => {
    const innocent = reuse(target.pid);
    return innocent === null ? [] : [{ target, innocent }];
  });
}

describe.each(Object.keys(ways) as Way[])('signals by %s', (way) => {
  it('end what they are meant for, by TERM and by KILL', async () => {
    const meek = await crowd.named('ninja');
    const stubborn = await crowd.named('ninja', 'import signal\nsignal.signal(15, signal.SIG_IGN)');
    const box = boxBy(way);
    const results = await box.kill(order([meek, stubborn].map(targetOf)));
    expect(results.map((r) => r.result)).toEqual(['exited', 'killed']);
    const { lines } = await box.journal(box.run);
    const signals = lines.map((line) => line.words).filter((words) => words[0] === 'signal');
    expect(signals.map((words) => `${words[1]} ${words[3]}`)).toEqual([`15 ${way}`, `15 ${way}`, `9 ${way}`]);
  });

  it('never reach a process that got the number, 70 times over', { timeout: 180_000 }, async () => {
    let reused = 0;
    while (reused < 70) {
      const pairs = await swapped(Math.min(14, 70 - reused));
      // The same tick as the plan would be the same process for everybody; the process lived longer than that.
      for (const { target, innocent } of pairs) expect(startTimeOf(innocent.pid)).not.toBe(target.startTime);
      const results = await boxBy(way).kill(order(pairs.map((pair) => pair.target)));
      expect(results.map((r) => r.result)).toEqual(pairs.map(() => 'not_same_process'));
      for (const { innocent } of pairs) expect(isAlive(innocent)).toBe(true);
      reused += pairs.length;
      for (const { innocent } of pairs) innocent.kill('SIGKILL');
    }
  });

  it('that come after an exit, right behind the check, hit nothing', async () => {
    const targets = [];
    for (let n = 0; n < 10; n += 1) targets.push(await crowd.named('cicc'));
    const results = await boxBy(way, withHook('')).kill(order(targets.map(targetOf)));
    expect(results.map((r) => r.result)).toEqual(targets.map(() => 'already_gone'));
    expect(targets.map((t) => t.signalCode)).toEqual(targets.map(() => 'SIGKILL'));
  });
});

/** The program with something done in its narrowest gap: the process is checked and ends right there, before the signal. */
function withHook(more: string): string {
  const gap = '  $SIGNALLER "$sig"\n';
  const program = readHostProgram();
  expect(program.split(gap)).toHaveLength(2);
  const hook = `  kill -KILL "$on_pid"; while [ -d "/proc/$on_pid" ]; do sleep 0.01; done\n${more}`;
  return program.replace(gap, () => `${hook}${gap}`);
}

describe.each(['perl', 'python'] as const)('signals by %s', (way) => {
  it(
    'never reach a process that got the number right behind the check, 20 times over',
    { timeout: 120_000 },
    async () => {
      const file = join(dir, `innocents-${way}`);
      const swap = `  echo $((on_pid - 1)) >/proc/sys/kernel/ns_last_pid
  sleep 600 </dev/null >/dev/null 2>&1 8>&- 9>&- & echo "$on_pid $!" >>${file}\n`;
      let reused = 0;
      for (let round = 0; reused < 20 && round < 10; round += 1) {
        const targets = await Promise.all(Array.from({ length: 10 }, () => crowd.named('cicc')));
        const results = await boxBy(way, withHook(swap)).kill(order(targets.map(targetOf)));
        expect(results.map((r) => r.result)).toEqual(targets.map(() => 'already_gone'));
        const pairs = readFileSync(file, 'utf8').trim().split('\n');
        for (const [was = 0, now = 0] of pairs.map((line) => line.split(' ').map(Number))) {
          if (now === was) {
            reused += 1;
            expect(readFileSync(`/proc/${now}/stat`, 'utf8')).toMatch(/\(sleep\) [SR]/);
          }
          if (existsSync(`/proc/${now}`)) process.kill(now, 'SIGKILL');
        }
        rmSync(file);
      }
      expect(reused).toBeGreaterThanOrEqual(20);
    },
  );
});
