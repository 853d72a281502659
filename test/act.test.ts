/**
 * How a run is told when the box or the road to it does not do as hoped. The happy path runs on real boxes elsewhere;
 * here the box is a script, because a lost connection at an exact line cannot be ordered from a real one.
 */
import { describe, expect, it } from 'vitest';
import { act, type ActDeps, type Order } from '../src/act.ts';
import type { Box } from '../src/box.ts';
import { ReclaimError } from '../src/errors.ts';
import type { Capture, RunReport } from '../src/memory/contract.ts';
import { defaultThinkOptions, think } from '../src/memory/think.ts';
import { makeBox, type BoxSpec, type ProcSpec } from './memory/box.ts';

const MiB = 1024;
const compiler = (pid: number, ppid: number): ProcSpec => ({
  pid,
  ppid,
  comm: 'cicc',
  argv: ['/usr/local/cuda/nvvm/bin/cicc', '--orig_src_file_name', 'flash_bwd_hdim128_bf16_sm90.cu'],
  exe: '/usr/local/cuda/nvvm/bin/cicc',
  cwd: '/tmp/pip-install-x1/flash-attn (deleted)',
  session: 5000,
  anonKiB: 900 * MiB,
  secondsOld: 7200,
});
const ninja: ProcSpec = {
  pid: 5001,
  ppid: 1,
  comm: 'ninja',
  argv: ['ninja', '-v', '-j', '64'],
  exe: '/usr/bin/ninja',
  cwd: '/tmp/pip-install-x1/flash-attn (deleted)',
  session: 5000,
  anonKiB: 20 * MiB,
  secondsOld: 7300,
};
const leftovers: ProcSpec[] = [ninja, compiler(5002, 5001), compiler(5003, 5001)];
const built = (spec: Partial<BoxSpec> = {}): Capture => makeBox({ processes: leftovers, ...spec });

/** A box that answers from captures, in order; the last one stays. */
function scripted(captures: readonly Capture[], over: Partial<Box> = {}): { box: Box; killed: number[] } {
  let at = 0;
  const killed: number[] = [];
  const box: Box = {
    host: 'gpu-box-3',
    hostKey: 'SHA256:key',
    forRun: () => box,
    journal: () => Promise.resolve({ state: 'running', lines: [] }),
    collect: () => Promise.resolve(captures[Math.min(at++, captures.length - 1)]!),
    kill: (order) => {
      killed.push(...order.targets.map((t) => t.pid));
      return Promise.resolve(
        order.targets.map(({ pid, startTime }) => ({ pid, startTime, result: 'exited' as const })),
      );
    },
    removeFiles: () => Promise.resolve([]),
    ipcrm: () => Promise.resolve([]),
    sync: () => Promise.resolve({ state: 'done' }),
    dropCaches: () => Promise.resolve({ state: 'done' }),
    close: () => Promise.resolve(),
    ...over,
  };
  return { box, killed };
}

function orderFor(capture: Capture, over: Partial<Order> = {}): Order {
  const { diagnosis, identities, bootId } = think(capture, defaultThinkOptions);
  const kill = diagnosis.plan?.steps.filter((step) => step.action === 'kill') ?? [];
  return {
    run: 'run1',
    request: 'req1',
    plan: { digest: diagnosis.plan?.digest ?? '', steps: kill },
    identities,
    bootId,
    hostKey: 'SHA256:key',
    options: defaultThinkOptions,
    graceMs: 1000,
    dryRun: false,
    ...over,
  };
}

const deps = (over: Partial<ActDeps> = {}): ActDeps => ({
  clock: { now: () => 0, sleep: () => Promise.resolve() },
  reopen: () => Promise.reject(new ReclaimError('ssh_timeout', 'The box does not answer.')),
  progress: () => Promise.resolve(true),
  ...over,
});

const resultsOf = (report: RunReport) =>
  Object.fromEntries(report.steps.flatMap((s) => (s.action === 'kill' ? s.targets.map((t) => [t.pid, t.result]) : [])));

describe('acting on an approved plan', () => {
  it('ends exactly the approved processes and credits what they gave back', async () => {
    const before = built();
    const after = makeBox({});
    const { box, killed } = scripted([before, before, after]);
    const report = await act(box, orderFor(before), deps());
    expect(killed.sort()).toEqual([5001, 5002, 5003]);
    expect(report.outcome).toBe('succeeded');
    expect(report.steps[0]?.measured?.byClass['anonymous']).toBeGreaterThan(1800 * MiB);
  });

  it.each([
    ['E10: says that somebody else dropped caches in the same minute', 2, /Somebody else dropped caches/],
    ['says nothing of others when nobody else dropped caches', 0, /^$/],
  ])('%s', async (_title, drops, said) => {
    const counted = (n: number) => ({ files: { '/proc/vmstat': `drop_pagecache ${n}\n` } });
    const before = built(counted(7));
    const after = makeBox({ processes: [], ...counted(7 + drops) });
    const { box } = scripted([before, before, after]);
    const report = await act(box, orderFor(before), deps());
    expect(report.steps[0]?.state).toBe('done');
    expect(report.steps[0]?.reason ?? '').toMatch(said);
  });

  it('does nothing on a dry run, and says so, on the same path', async () => {
    const before = built();
    const { box, killed } = scripted([before]);
    const report = await act(box, orderFor(before, { dryRun: true }), deps());
    expect(killed).toEqual([]);
    expect(report).toMatchObject({ outcome: 'dry_run', steps: [{ state: 'not_run' }] });
  });

  it('takes what ended by itself for done, and touches only the rest', async () => {
    const now = makeBox({ processes: leftovers.slice(0, 2) });
    const { box, killed } = scripted([now, now, makeBox({})]);
    const report = await act(box, orderFor(built()), deps());
    expect(killed).not.toContain(5003);
    expect(resultsOf(report)).toMatchObject({ 5003: 'already_gone', 5002: 'exited' });
    expect(report.outcome).toBe('succeeded');
  });

  it('never signals a process that took the number of an approved one', async () => {
    const reused = { ...compiler(5003, 5001), startTime: 159_999_000 };
    const now = built({ processes: [ninja, compiler(5002, 5001), reused] });
    const { box, killed } = scripted([now, now]);
    const report = await act(box, orderFor(built()), deps());
    expect(killed).not.toContain(5003);
    expect(resultsOf(report)).toMatchObject({ 5003: 'not_same_process' });
    expect(report.outcome).toBe('partial');
  });

  it('does not touch processes that came after the approval', async () => {
    const now = built({ processes: [...leftovers, compiler(5004, 5001)] });
    const { box, killed } = scripted([now, now]);
    await act(box, orderFor(built()), deps());
    expect(killed).not.toContain(5004);
  });

  it.each<[string, Partial<Order>, RegExp]>([
    ['the box was restarted', { bootId: '00000000-0000-0000-0000-000000000000' }, /restarted/],
    ['the box shows another host key', { hostKey: 'SHA256:other' }, /host key/],
  ])('refuses as a whole when %s', async (_what, over, said) => {
    const before = built();
    const { box, killed } = scripted([before]);
    const report = await act(box, orderFor(before, over), deps());
    expect(killed).toEqual([]);
    expect(report.outcome).toBe('refused');
    expect(report.reason).toMatch(said);
  });

  it('stops before the next effect when its right to act is lost', async () => {
    const before = built();
    const { box, killed } = scripted([before]);
    const report = await act(box, orderFor(before), deps({ progress: () => Promise.resolve(false) }));
    expect(killed).toEqual([]);
    expect(report).toMatchObject({ outcome: 'failed', steps: [{ state: 'not_run' }] });
  });

  it('calls the outcome unknown when the connection broke, and tells what a fresh look sees', async () => {
    const before = built();
    const { box } = scripted([before], {
      kill: () =>
        Promise.reject(new ReclaimError('ssh_lost', 'The connection broke while processes were being ended.')),
    });
    const after = makeBox({ processes: [ninja] });
    const again = scripted([after]);
    const report = await act(box, orderFor(before), deps({ reopen: () => Promise.resolve(again.box) }));
    expect(report.outcome).toBe('unknown');
    expect(report.steps[0]).toMatchObject({ state: 'unknown' });
    expect(report.steps[0]?.reason).toMatch(/1 of 3 still there/);
    // Gone, but without a journal nobody knows by whose hand.
    expect(resultsOf(report)).toEqual({ 5001: 'still_there', 5002: undefined, 5003: undefined });
    expect(again.killed).toEqual([]);
  });

  it('claims nothing when the box cannot be reached again', async () => {
    const before = built();
    const { box } = scripted([before], {
      kill: () => Promise.reject(new ReclaimError('ssh_lost', 'The connection broke.')),
    });
    const report = await act(box, orderFor(before), deps());
    expect(report.outcome).toBe('unknown');
    expect(resultsOf(report)).toMatchObject({ 5001: undefined, 5002: undefined });
  });

  it('says which processes are still there, and why', async () => {
    const before = built();
    const { box } = scripted([before, before], {
      kill: (order) =>
        Promise.resolve(
          order.targets.map(({ pid, startTime }) =>
            pid === 5002
              ? { pid, startTime, result: 'still_there' as const, reason: 'It is stuck in the kernel (state D).' }
              : { pid, startTime, result: 'exited' as const },
          ),
        ),
    });
    const report = await act(box, orderFor(before), deps());
    expect(report.outcome).toBe('partial');
    expect(report.reason).toMatch(/stuck in the kernel/);
    expect(report.advice.join(' ')).toMatch(/remain/);
  });
});
