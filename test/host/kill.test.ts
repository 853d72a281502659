/** kill: exactly the processes named, none that merely look like them. Real processes, under every shell. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { KillOrder, ResultOf } from '../../src/box.ts';
import type { KillTarget } from '../../src/memory/contract.ts';
import { bootId, Crowd, isAlive, realBox, runFolder, shells, startTimeOf, targetOf } from './real-box.ts';

const crowd = new Crowd();
afterAll(() => {
  crowd.end();
});

const order = (targets: KillOrder['targets'], more: Partial<KillOrder> = {}): KillOrder => ({
  bootId,
  graceMs: 1000,
  protect: [],
  targets,
  ...more,
});
const words = (results: readonly ResultOf<KillTarget>[]) => results.map((r) => r.result);
const ignoresTerm = 'import signal\nsignal.signal(15, signal.SIG_IGN)';

describe.each(shells)('kill under %s', (shell) => {
  it('ends the one it is told to, by TERM, and leaves its look-alikes alone', async () => {
    const [target, twin] = [await crowd.named('cicc'), await crowd.named('cicc')];
    const results = await realBox(shell).kill(order([targetOf(target)]));
    expect(words(results)).toEqual(['exited']);
    expect(target.signalCode).toBe('SIGTERM');
    expect(isAlive(twin)).toBe(true);
  });

  it('sends KILL only after the grace, and says which it took', async () => {
    const [stubborn, meek] = [await crowd.named('ninja', ignoresTerm), await crowd.named('ninja')];
    const seen: string[] = [];
    const results = await realBox(shell).kill(order([targetOf(stubborn), targetOf(meek)]), (r) => {
      seen.push(`${r.pid === meek.pid ? 'meek' : 'stubborn'} ${r.result}`);
    });
    expect(words(results)).toEqual(['killed', 'exited']);
    expect(seen).toEqual(['meek exited', 'stubborn killed']);
    expect(stubborn.signalCode).toBe('SIGKILL');
  });

  it('does not touch a process that has the number but not the start, uid or program of the plan', async () => {
    const bystander = await crowd.named('cc1plus');
    const { pid, startTime } = bystander;
    const box = realBox(shell);
    const strangers = [
      { pid, startTime: startTime - 1 },
      { pid, startTime, uid: 12345 },
      { pid, startTime, exe: '/usr/bin/other' },
    ];
    for (const stranger of strangers) {
      expect(words(await box.kill(order([stranger])))).toEqual(['not_same_process']);
    }
    expect(isAlive(bystander)).toBe(true);
    const exe = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0]!;
    expect(exe).toBe('/usr/bin/python3');
  });

  it.each([
    ['spaces and brackets', 'a) S 1 (b'],
    ['a newline and a forged line', 'x\n1 (y) S 0 0'],
    ['bytes of a frame', '\nend 0\n'],
  ])('tells a process apart whose name holds %s', async (_, name) => {
    const odd = await crowd.named(name);
    expect(words(await realBox(shell).kill(order([targetOf(odd)])))).toEqual(['exited']);
  });

  it('refuses init, the kernel, protected programs and its own ancestors', async () => {
    const daemon = await crowd.named('slurmd');
    const own = { pid: process.pid, startTime: startTimeOf(process.pid) };
    const results = await realBox(shell).kill(order([targetOf(daemon), own]));
    expect(words(results)).toEqual(['refused', 'refused']);
    expect(results[0]!.reason).toContain('never to be killed');
    expect(results[1]!.reason).toContain('connection');
    expect(isAlive(daemon)).toBe(true);
  });

  it('keeps to policy.protect: every named part of a rule must match', async () => {
    const [kept, other] = [await crowd.named('train é'), await crowd.named('train')];
    const protect = [{ comm: 'train é', user: 'root' }, { comm: 'train', user: 'nobody' }, { unit: 'x.service' }];
    const results = await realBox(shell).kill(order([targetOf(kept), targetOf(other)], { protect }));
    expect(words(results)).toEqual(['refused', 'exited']);
    expect(results[0]!.reason).toContain('policy.protect');
  });

  it('calls a zombie and a process that is not there already gone', async () => {
    const parent = await crowd.start('/usr/bin/python3', [
      '-c',
      'import os,sys,time\np=os.fork()\nif p==0: os._exit(0)\nwhile open(f"/proc/{p}/stat").read().split()[2]!="Z": time.sleep(0.01)\nprint(p,flush=True)\nsys.stdin.read()',
    ]);
    const children = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8');
    const zombie = Number(children.trim());
    const gone = { pid: 4_000_000, startTime: 1 };
    const results = await realBox(shell).kill(order([{ pid: zombie, startTime: startTimeOf(zombie) }, gone]));
    expect(words(results)).toEqual(['already_gone', 'already_gone']);
  });

  it('refuses everything after a reboot', async () => {
    const target = await crowd.named('nvcc');
    const stale = realBox(shell).kill(order([targetOf(target)], { bootId: '00000000-0000-0000-0000-000000000000' }));
    await expect(stale).rejects.toMatchObject({ code: 'host_rebooted' });
    expect(isAlive(target)).toBe(true);
  });

  it('says that a parent started it again', async () => {
    const supervisor = await crowd.start('/bin/bash', ['-c', 'echo up; while :; do /bin/sleep 600 & wait $!; done']);
    const childOf = () =>
      Number(readFileSync(`/proc/${supervisor.pid}/task/${supervisor.pid}/children`, 'utf8').trim());
    await expect.poll(childOf).toBeGreaterThan(0);
    const first = childOf();
    await expect.poll(() => readFileSync(`/proc/${first}/comm`, 'utf8')).toBe('sleep\n');
    const results = await realBox(shell).kill(order([{ pid: first, startTime: startTimeOf(first) }]));
    expect(words(results)).toEqual(['respawned']);
    const last = childOf();
    expect(results[0]!.reason).toContain(String(last));
    supervisor.kill('SIGKILL');
    if (last > 0) process.kill(last, 'SIGKILL');
  });

  it('leaves a journal of what it signalled and how that ended', async () => {
    const target = await crowd.named('ptxas');
    const box = realBox(shell);
    await box.kill(order([targetOf(target)]));
    const { state, lines } = await realBox(shell).journal(box.run);
    expect(lines.map((line) => line.words.join(' '))).toEqual([
      `begin kill ${target.pid} ${target.startTime} - -`,
      `signal 15 ${target.pid}:${target.startTime} perl`,
      `kill exited ${target.pid} ${target.startTime}`,
      'end kill',
    ]);
    expect(state).toBe('ended');
    expect((await box.journal('no-such-run')).lines).toEqual([]);
  });

  it('closes a run for good when asked to, so that a request of it that comes late does nothing', async () => {
    const target = await crowd.named('ptxas');
    const box = realBox(shell);
    expect(await realBox(shell).journal(box.run, { seal: true })).toEqual({ state: 'sealed', lines: [] });
    await expect(box.kill(order([targetOf(target)]))).rejects.toThrow(/closed after its connection was lost/);
    await expect(box.sync()).rejects.toThrow(/closed after/);
    expect(isAlive(target)).toBe(true);
    expect(words(await realBox(shell).kill(order([targetOf(target)])))).toEqual(['exited']);
  });

  it('lets one run act at a time and names the one that is at it', async () => {
    const stubborn = await crowd.named('ninja', ignoresTerm);
    const first = realBox(shell);
    const working = first.kill(order([targetOf(stubborn)], { graceMs: 3000 }));
    await expect
      .poll(() => readFileSync(join(runFolder, 'reclaim/holder'), 'utf8'), { timeout: 10_000 })
      .toContain(first.run);
    const second = realBox(shell).sync();
    await expect(second).rejects.toMatchObject({ code: 'host_busy' });
    await expect(second).rejects.toThrow(first.run);
    expect((await realBox(shell).journal(first.run, { seal: true })).state).toBe('running');
    expect(words(await working)).toEqual(['killed']);
  });
});
