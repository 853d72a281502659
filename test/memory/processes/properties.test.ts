/** Whatever a box says: the answer keeps the contract, and no plan holds what must not be touched. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { captureSchema, findingSchema, stepSchema } from '../../../src/memory/contract.ts';
import { tellProcessStory } from '../../../src/memory/processes/story.ts';
import { isProtectedName } from '../../../src/memory/processes/names.ts';
import { defaultOptions, makeBox, statLine, type ProcSpec } from '../box.ts';
import { killed } from './tell.ts';

const names = [
  'cicc',
  'ninja',
  'nvcc',
  'python3',
  'sshd',
  'bash',
  'vim',
  'slurmd',
  'tmux: server',
  'pt_data_worker',
  'java',
  'a) R 1 1',
  'b\n9 (c',
];
const pid = fc.integer({ min: 3, max: 40 });
const procs: fc.Arbitrary<ProcSpec[]> = fc.uniqueArray(
  fc.record(
    {
      pid,
      ppid: fc.oneof({ weight: 2, arbitrary: fc.constant(1) }, pid),
      comm: fc.oneof(fc.constantFrom('cicc', 'ninja'), fc.constantFrom(...names)),
      argv: fc.array(
        fc.constantFrom(
          'cicc',
          'ninja',
          'python3',
          '-c',
          'from multiprocessing.spawn import x',
          'train.py',
          '-m',
          'pip',
          'install',
        ),
        { maxLength: 4 },
      ),
      exe: fc.constantFrom<(string | null)[]>(
        '/usr/bin/node',
        '/usr/bin/python3.11',
        '/x/cicc',
        '/usr/bin/vim',
        '/usr/bin/bash',
        null,
      ),
      session: pid,
      pgrp: pid,
      tty: fc.constantFrom(0, 34816),
      foreground: fc.oneof(fc.constant(-1), pid),
      state: fc.constantFrom('S', 'R', 'D', 'Z', 'T'),
      flags: fc.constantFrom(4194304, 0x200000),
      anonKiB: fc.integer({ min: 0, max: 5_000_000 }),
      ticks: fc.constantFrom(0, 0, 50),
      cgroup: fc.constantFrom(
        '0::/',
        '0::/system.slice/x.service',
        '0::/slurm/job_5/step_0',
        '0::/user.slice/user-1001.slice/session-3.scope',
        `0::/docker/${'ab'.repeat(32)}`,
      ),
      without: fc
        .subarray(['stat', 'status', 'cmdline', 'cgroup', 'links'] as const)
        .map((w) => (w.length > 2 ? [] : [...w])),
    },
    { requiredKeys: ['pid', 'comm'] },
  ),
  { selector: (p) => p.pid, maxLength: 25 },
);

describe('any box', () => {
  it('never has a protected, unseen or live process in its plan', () => {
    let plans = 0;
    fc.assert(
      fc.property(procs, fc.constantFrom(null, '', '5 ana RUNNING x\n'), (processes, slurm) => {
        const story = tellProcessStory(makeBox({ processes, slurm }), defaultOptions);
        // The schemas refuse a range whose low end is above its high one.
        for (const finding of story.findings) findingSchema.parse(finding);
        for (const step of story.steps) stepSchema.parse({ id: 'x', ...step });
        for (const target of killed(story)) {
          plans++;
          const p = processes.find((one) => one.pid === target);
          expect(p).toBeDefined();
          if (p === undefined) return;
          expect(isProtectedName(p.comm ?? '')).toBe(false);
          expect(p.state).not.toBe('Z');
          expect(p.state).not.toBe('T');
          expect((p.flags ?? 0) & 0x200000).toBe(0);
          expect(p.cgroup ?? '').not.toMatch(/x\.service|docker/);
          expect(p.without ?? []).not.toContain('status');
          expect(p.without ?? []).not.toContain('links');
          expect(p.exe).not.toBeNull();
          if ((p.cgroup ?? '').includes('job_5')) expect(slurm).toBe('');
          if (p.tty === 34816) expect(p.foreground === (p.pgrp ?? p.session ?? p.pid)).toBe(false);
          expect(p.exe === '/usr/bin/vim' || (p.exe === '/usr/bin/bash' && p.tty === 34816 && p.comm === 'bash')).toBe(
            false,
          );
        }
        expect(new Set(killed(story)).size).toBe(killed(story).length);
      }),
      { numRuns: 800 },
    );
    expect(plans).toBeGreaterThan(60);
  });

  it('of any bytes gets an answer that keeps the contract', () => {
    const bytes = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.uint8Array({ maxLength: 100 }).map((b) => ({ base64: Buffer.from(b).toString('base64') })),
    );
    const path = fc.oneof(
      fc.constantFrom(
        '/proc/meminfo',
        '/proc/uptime',
        '/proc/mounts',
        '/proc/sysvipc/shm',
        '/proc/pressure/memory',
        '/proc//stat',
        '/proc/__proto__/stat',
      ),
      fc
        .tuple(
          fc.integer({ min: 0, max: 9 }),
          fc.constantFrom('stat', 'status', 'cmdline', 'cgroup', 'smaps_rollup', 'wchan', 'stack'),
        )
        .map(([n, f]) => `/proc/${n}/${f}`),
    );
    const command = fc.constantFrom(
      'links',
      'fd holders',
      'shm files',
      'sessions',
      'users',
      'slurm jobs',
      'docker ps',
      'df tmpfs',
      'nvidia-smi compute-apps',
      'page size',
    );
    const files = fc.dictionary(
      path,
      fc.oneof(
        bytes,
        fc.integer({ min: 1, max: 9 }).map((n) => statLine({ pid: n, comm: 'cicc' })),
      ),
    );
    const commands = fc.dictionary(
      command,
      fc.record({ status: fc.constantFrom(0, 1, 127, null), stdout: bytes, timedOut: fc.boolean() }),
    );
    fc.assert(
      fc.property(files, files, commands, fc.boolean(), fc.string(), (first, later, said, privileged, takenAt) => {
        const capture = captureSchema.parse({
          capture: 1,
          host: 'h',
          takenAt,
          privileged,
          windowSeconds: 1,
          collectorPids: [3, 1],
          files: first,
          later,
          commands: said,
        });
        const story = tellProcessStory(capture, defaultOptions);
        for (const finding of story.findings) findingSchema.parse(finding);
        for (const step of story.steps) stepSchema.parse({ id: 'x', ...step });
        expect(Number.isInteger(story.liveKiB)).toBe(true);
        expect(JSON.stringify(story)).not.toMatch(/NaN|undefined/);
      }),
      { numRuns: 300 },
    );
  });

  it('drops a pid that is another process at the second look', () => {
    const orphan: ProcSpec = { pid: 6000, ppid: 1, comm: 'cicc', exe: '/x/cicc', session: 5999, anonKiB: 900_000 };
    expect(killed(tellProcessStory(makeBox({ processes: [orphan] }), defaultOptions))).toEqual([6000]);
    for (const laterStat of [null, statLine({ ...orphan, startTime: 159_999_990 })]) {
      expect(killed(tellProcessStory(makeBox({ processes: [{ ...orphan, laterStat }] }), defaultOptions))).toEqual([]);
    }
  });

  it('of 5,000 processes is told in a fraction of a second of CPU time, even on a crowded machine', () => {
    const processes = Array.from({ length: 5000 }, (_, i): ProcSpec => ({
      pid: 10_000 + i,
      ppid: i % 7 === 0 ? 1 : 10_000 + i - (i % 7),
      comm: i % 3 ? 'python3' : 'cicc',
      argv: ['/usr/bin/python3', 'train.py', `--file=src/f${i}.cu`],
      exe: i % 3 ? '/usr/bin/python3.11' : '/x/cicc',
      session: 7000,
      anonKiB: 4000,
    }));
    const capture = makeBox({ processes });
    tellProcessStory(capture, defaultOptions);
    const times = Array.from({ length: 5 }, () => {
      const { user, system } = process.cpuUsage();
      tellProcessStory(capture, defaultOptions);
      const after = process.cpuUsage();
      return (after.user + after.system - user - system) / 1000;
    });
    expect(Math.min(...times)).toBeLessThan(400);
  });
});
