import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeLeftovers, type Leftovers } from '../../src/demo/leftovers.ts';
import { isAlive, statOf, type ProcessName } from '../../src/demo/process-facts.ts';

const isLinux = process.platform === 'linux';
const made: Leftovers[] = [];
afterEach(async () => {
  for (const leftovers of made.splice(0)) await leftovers.dispose();
});

async function make(): Promise<Leftovers> {
  const leftovers = await makeLeftovers({ totalMiB: 280, cacheMiB: 8 });
  made.push(leftovers);
  return leftovers;
}

const read = (pid: number, name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8');
const anonKiB = (pid: number) => Number(/RssAnon:\s+(\d+)/.exec(read(pid, 'status'))![1]);

async function gone(names: readonly ProcessName[], withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (names.some(isAlive) && Date.now() < deadline) await new Promise((r) => setTimeout(r, 50));
  return !names.some(isAlive);
}

describe.runIf(isLinux)('the leftover build of the demo', () => {
  it('shows the names and command lines of a real build, NULs and all', async () => {
    const { processes } = await make();
    expect(new Set(processes.map((p) => p.comm))).toEqual(new Set(['uv', 'ninja', 'nvcc', 'cicc', 'ptxas', 'cc1plus']));
    for (const p of processes) {
      expect(read(p.pid, 'comm')).toBe(`${p.comm}\n`);
      expect(read(p.pid, 'cmdline')).toBe(p.argv.map((a) => `${a}\0`).join(''));
    }
  });

  it('is orphaned: parent gone, a session of its own, no terminal, its folder deleted, nothing on its inputs', async () => {
    const { processes } = await make();
    for (const p of processes) {
      const stat = statOf(p.pid)!;
      expect(stat.startTime).toBe(p.startTime);
      expect(stat.parentPid).not.toBe(process.pid);
      expect(stat.sessionId).toBe(p.pid);
      expect(stat.ttyNumber).toBe(0);
      expect(readlinkSync(`/proc/${p.pid}/cwd`)).toMatch(/\/pip-install-\w+\/flash-attn_\w+ \(deleted\)$/);
      expect([0, 1, 2].map((fd) => readlinkSync(`/proc/${p.pid}/fd/${fd}`))).toEqual(Array(3).fill('/dev/null'));
      // The process that started them has ended: whoever adopted them started before they did.
      expect(statOf(stat.parentPid)!.startTime).toBeLessThan(p.startTime);
    }
  });

  it('really holds the memory it says it holds', async () => {
    const { processes } = await make();
    for (const p of processes) {
      expect(anonKiB(p.pid)).toBeGreaterThanOrEqual(p.anonKiB * 0.98);
      expect(anonKiB(p.pid)).toBeLessThan(p.anonKiB + 8 * 1024);
    }
  });

  it('has innocent neighbours with a living parent', async () => {
    const { lookalikes } = await make();
    expect(lookalikes.map((p) => p.argv.join(' '))).toEqual(['vim flash_attn.cu', 'tail -f flash_build.log']);
    for (const p of lookalikes) {
      expect(read(p.pid, 'comm')).toBe(`${p.comm}\n`);
      expect(statOf(p.pid)!.parentPid).toBe(process.pid);
    }
  });

  it('leaves nothing behind when disposed of, and does so twice without harm', async () => {
    const leftovers = await make();
    const folder = readlinkSync(`/proc/${leftovers.lookalikes[0]!.pid}/cwd`);
    await leftovers.dispose();
    expect([...leftovers.processes, ...leftovers.lookalikes].filter(isAlive)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
    await leftovers.dispose();
  });

  it('ends by itself when the demo is killed without a chance to clean up', async () => {
    const script = `
      const { makeLeftovers } = await import('${new URL('../../src/demo/leftovers.ts', import.meta.url).href}');
      const { processes, lookalikes } = await makeLeftovers({ totalMiB: 220, cacheMiB: 1 });
      console.log(JSON.stringify([...processes, ...lookalikes].map(({ pid, startTime }) => ({ pid, startTime }))));
      setInterval(() => {}, 1000);
    `;
    const demo = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(demo.stdout), 'line')) as [string];
    const names = z.array(z.object({ pid: z.int(), startTime: z.int() })).parse(JSON.parse(line));
    const folder = readlinkSync(`/proc/${names.at(-1)!.pid}/cwd`);
    expect(names.every(isAlive)).toBe(true);
    demo.kill('SIGKILL');
    expect(await gone(names, 15_000)).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });
});
