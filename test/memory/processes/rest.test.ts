/** How the work of others is named, and what is said of small change. */
import { describe, expect, it } from 'vitest';
import { shortCommand } from '../../../src/memory/render-findings.ts';
import type { ProcSpec } from '../box.ts';
import { GiB, tell } from './tell.ts';

const firstLine = (processes: ProcSpec[]): string | undefined => tell({ processes }).findings[0]?.evidence[0];

describe('the name of a group', () => {
  const sealed: ProcSpec = {
    pid: 700,
    ppid: 1,
    comm: 'memfd:sealed-91',
    exe: '/memfd:sealed-91173221a7ea (deleted)',
    argv: ['/opt/agent/binary_backend', '--uid', '0'],
    anonKiB: 4096,
    ticks: 50,
  };
  it('is what was started, for a program that runs from memory', () => {
    expect(firstLine([{ ...sealed, anonKiB: 2 * GiB }])).toMatch(/^binary_backend: 1 process/);
  });

  it('is what holds the memory, where the top of the tree holds little', () => {
    const below: ProcSpec[] = [
      { pid: 701, ppid: 700, comm: 'chromium', exe: '/usr/lib/chromium', argv: ['chromium'], anonKiB: GiB, ticks: 9 },
      { pid: 702, ppid: 700, comm: 'esbuild', exe: '/usr/bin/esbuild', argv: ['esbuild'], anonKiB: 9000, ticks: 0 },
    ];
    expect(firstLine([sealed, ...below])).toMatch(/^chromium, esbuild under binary_backend: 3 processes/);
  });

  it('is never empty, and an owner that was not read is not called unknown', () => {
    const crowd = Array.from({ length: 300 }, (_, i): ProcSpec => ({
      pid: 2000 + i,
      ppid: i === 0 ? 1 : 2000,
      comm: 'sleep',
      argv: ['sleep', '60'],
      session: 2000,
      anonKiB: 1024,
      without: ['status', 'cmdline', 'cgroup', 'links'],
      laterStat: null,
    }));
    const [finding] = tell({ processes: crowd }).findings;
    expect(finding?.evidence[0]).toMatch(/^sleep: 300 processes, .*, owner not read$/);
    expect(finding?.class).toBe('live_job');
  });
});

describe('a crowd whose details were not read', () => {
  it('holds no more than the anonymous memory that the others leave, however often its rss counts libc', () => {
    const crowd = Array.from({ length: 5000 }, (_, i): ProcSpec => ({
      pid: 2000 + i,
      ppid: i === 0 ? 1 : 2000,
      comm: 'sleep',
      argv: ['sleep', '60'],
      session: 2000,
      anonKiB: 100,
      fileKiB: 1500,
      without: ['status', 'cmdline', 'cgroup', 'links'],
      laterStat: null,
    }));
    const job: ProcSpec = { pid: 800, comm: 'train', anonKiB: 3 * GiB, ticks: 90 };
    const { findings } = tell({ processes: [job, ...crowd], meminfo: { AnonPages: 3 * GiB + 600_000 } });
    const kiBOf = (word: RegExp) => findings.find((f) => word.test(f.evidence[0] ?? ''))?.kiB ?? 0;
    expect(kiBOf(/^train/)).toBe(3 * GiB);
    expect(kiBOf(/^sleep: 5000/)).toBeGreaterThan(500_000);
    expect(kiBOf(/^sleep: 5000/)).toBeLessThanOrEqual(600_000);
  });
});

describe('a command in one line', () => {
  it.each([
    ['ninja -v -j 64', 40, 'ninja -v -j 64'],
    ['/usr/local/cuda/bin/ptxas -v x.ptx', 20, 'ptxas -v x.ptx'],
    ['/opt/cicc --c++17 --orig_src_file_name a/b/flash_bwd.cu -arch', 24, 'cicc --c++17 --or… -arch'],
    ['/opt/nvcc --threads 4 -O3 -c csrc/src/flash_bwd.cu', 36, 'nvcc --threads 4 -O3 -… flash_bwd.cu'],
  ])('%s in %i columns', (command, room, shown) => {
    expect(shortCommand(command, room)).toBe(shown);
    expect(Array.from(shown).length).toBeLessThanOrEqual(room);
  });
});
