/** Shared memory nobody uses, and all that only looks unused. */
import { describe, expect, it } from 'vitest';
import { takenAtSeconds, type BoxSpec, type ProcSpec } from '../box.ts';
import { classes, GiB, tell } from './tell.ts';

const file = (path: string, change: Partial<NonNullable<BoxSpec['shmFiles']>[number]> = {}) => ({
  dev: 25,
  ino: 7,
  uid: 1001,
  bytes: 18 * GiB * 1024,
  blocksKiB: 18 * GiB,
  mtime: takenAtSeconds - 86_400,
  path: `/dev/shm/${path}`,
  ...change,
});
const python: ProcSpec = {
  pid: 5000,
  ppid: 900,
  comm: 'python3',
  argv: ['python3', 'serve.py'],
  tty: 34816,
  foreground: 5000,
  anonKiB: 1000,
};

describe('files in /dev/shm', () => {
  it('that nothing holds are one removal of exact inodes per owner, by blocks', () => {
    const shmFiles = [
      ...Array.from({ length: 5 }, (_, i) => file(`sgl_shm_mm_${4000 + i}_ab12cd`, { ino: 100 + i, blocksKiB: GiB })),
      file('psm_1a2b3c4d', { uid: 1002, ino: 9, blocksKiB: GiB }),
    ];
    const story = tell({ shmFiles });
    expect(classes(story)).toEqual(['stale_shm', 'stale_shm']);
    expect(story.findings[0]?.evidence[0]).toBe('5 files in /dev/shm that nothing uses, 5 GiB, owner ana');
    expect(story.findings[0]?.evidence[1]).toContain('5 x sgl_shm_mm_*');
    expect(story.steps[0]).toMatchObject({
      action: 'remove_files',
      expectedAvailableKiB: { low: 5 * GiB, high: 5 * GiB },
    });
    expect(story.steps[0]?.targets[0]).toEqual({
      path: '/dev/shm/sgl_shm_mm_4000_ab12cd',
      dev: 25,
      ino: 100,
      kiB: GiB,
    });
  });

  const used: [string, BoxSpec][] = [
    ['is open somewhere', { shmFiles: [file('x')], processes: [{ ...python, holds: ['/dev/shm/x'] }] }],
    ['is young', { shmFiles: [file('x', { mtime: takenAtSeconds - 60 })] }],
    ['comes from the future', { shmFiles: [file('x', { mtime: takenAtSeconds + 60 })] }],
    [
      'carries the pid of a living creator',
      { shmFiles: [file('torch_5000_1', { mtime: takenAtSeconds - 400 })], processes: [python] },
    ],
    [
      'belongs to somebody at work on a GPU',
      { shmFiles: [file('nccl-AbCdEf')], processes: [{ ...python, holds: ['/dev/nvidia0'] }] },
    ],
    ['is a semaphore', { shmFiles: [file('sem.loky-4000-abc')] }],
    ['could be open where nobody looked', { shmFiles: [file('x')], omitCommands: ['fd holders'] }],
    ['was seen without privilege', { shmFiles: [file('x')], privileged: false }],
  ];
  it.each(used)('stays when it %s', (_, spec) => {
    const story = tell(spec);
    expect(story.steps).toEqual([]);
    expect(classes(story)).toContain('tmpfs_files');
  });

  it('goes when the pid in its name now belongs to somebody younger', () => {
    expect(
      classes(
        tell({
          shmFiles: [file('joblib_memmaping_pool_5000_1', { mtime: takenAtSeconds - 90_000 })],
          processes: [python],
        }),
      ),
    ).toContain('stale_shm');
  });

  it('of no blocks are not counted and not offered', () => {
    const story = tell({ shmFiles: [file('nccl-onFp46', { bytes: 0, blocksKiB: 0 })] });
    expect(story.findings).toEqual([]);
    expect(story.steps).toEqual([]);
  });

  it('that are deleted but open belong to the pids that hold them', () => {
    const df = 'Filesystem 1K-blocks Used Available Use% Mounted on\ntmpfs 99999999 9000000 1 9% /dev/shm\n';
    const story = tell({ df, processes: [{ ...python, holds: ['/dev/shm/S5kyZK (deleted)'] }] });
    expect(story.findings[0]).toMatchObject({ class: 'tmpfs_files', kiB: 9_000_000, action: 'ask_owner' });
    expect(story.findings[0]?.evidence[1]).toContain('pid 5000 (python3)');
  });

  it('partly swapped out promise only what is surely in RAM', () => {
    const [step] = tell({ shmFiles: [file('x')], meminfo: { SwapTotal: 10 * GiB, SwapFree: 6 * GiB } }).steps;
    expect(step?.expectedFreeKiB).toEqual({ low: 14 * GiB, high: 18 * GiB });
  });
});

describe('System V segments', () => {
  const line = (cpid: number, lpid: number, nattch: number, secondsOld = 86_400) =>
    `         0         65   600            4294967296 ${cpid} ${lpid} ${nattch}  1001  1001  1001  1001 ${takenAtSeconds - secondsOld} ${takenAtSeconds - secondsOld} ${takenAtSeconds - secondsOld}            2147483648                     0\n`;
  it('with nobody attached and both pids dead are offered by what they hold, not by their size', () => {
    const [step] = tell({ sysv: line(4242, 4243, 0) }).steps;
    expect(step).toMatchObject({
      action: 'ipcrm',
      targets: [{ shmid: 65, kiB: 2 * GiB }],
      expectedFreeKiB: { low: 2 * GiB, high: 2 * GiB },
    });
  });
  it.each([
    ['somebody is attached', line(4242, 4243, 1), 'pinned_shm', /1 process is attached/],
    ['the creator lives', line(5000, 4243, 0, 400), 'pinned_shm', /pid 5000 \(.*\), which used it, is alive/],
    ['the last user lives', line(4242, 5000, 0, 400), 'pinned_shm', /pid 5000 \(.*\), which used it, is alive/],
    ['it was touched just now', line(4242, 4243, 0, 10), 'stale_sysv_shm', /10 s ago: too young to judge/],
    ['its creator is in another pid namespace', line(0, 0, 0), 'pinned_shm', /another pid namespace/],
  ])('stay when %s, and are shown with the reason', (_, sysv, name, why) => {
    const story = tell({ sysv, processes: [python] });
    expect(story.steps).toEqual([]);
    const finding = story.findings.find((f) => f.paths?.includes('shmid 65'))!;
    expect(finding).toMatchObject({ class: name, kiB: 2 * GiB, reclaimableKiB: { low: 0, high: 0 } });
    expect(finding.action).not.toBe('ipcrm');
    expect(finding.evidence.join('\n')).toMatch(why);
  });
});

describe('shared memory of drivers', () => {
  it('is pinned and live when processes map it', () => {
    const story = tell({ processes: [{ ...python, shmemKiB: 8 * GiB }] });
    expect(story.findings.find((f) => f.class === 'pinned_shm')).toMatchObject({ kiB: 8 * GiB, action: 'ask_owner' });
  });
  it('is a leak of the driver when nobody maps any', () => {
    const story = tell({ meminfo: { Shmem: 8 * GiB } });
    expect(story.findings.find((f) => f.class === 'gpu_driver')).toMatchObject({ kiB: 8 * GiB, action: 'tell_admin' });
  });
  it('names GPU contexts of pids that are not here, without adding them to RAM', () => {
    const story = tell({
      gpuApps: '31794, 5371, Unknown Error\n',
      processes: [{ ...python, holds: ['/dev/nvidia0'] }],
    });
    const finding = story.findings.find((f) => f.class === 'gpu_driver');
    expect(finding?.kiB).toBe(0);
    expect(finding?.evidence.join('\n')).toContain('open GPU devices: pid 5000 (python3)');
  });
});
