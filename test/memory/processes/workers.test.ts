/** Workers whose owner died, their twins whose owner lives, and the owners themselves. */
import { describe, expect, it } from 'vitest';
import type { BoxSpec, ProcSpec } from '../box.ts';
import { classes, GiB, killed, tell } from './tell.ts';

const python = '/usr/bin/python3.11';
const spawned = [
  '/usr/bin/python3',
  '-c',
  'from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)',
  '--multiprocessing-fork',
];
const tracker = ['/usr/bin/python3', '-c', 'from multiprocessing.resource_tracker import main;main(4)'];
const shell: ProcSpec = {
  pid: 3900,
  ppid: 900,
  comm: 'bash',
  argv: ['-bash'],
  exe: '/usr/bin/bash',
  uid: 1001,
  tty: 34816,
  foreground: 3900,
};

const loaders = (n: number, change: Partial<ProcSpec> = {}): ProcSpec[] =>
  Array.from({ length: n }, (_, i) => ({
    pid: 6000 + i,
    ppid: 1,
    comm: 'pt_data_worker',
    argv: ['python', 'train.py', '--epochs', '9'],
    exe: python,
    session: 5999,
    anonKiB: 2 * GiB,
    ...change,
  }));

describe('orphaned workers', () => {
  it('below other orphaned workers are counted and planned once', () => {
    const job = { cgroup: '0::/slurm/uid_1001/job_5/step_0', exe: python, argv: ['python3', 'train.py'] };
    const story = tell({
      slurm: '',
      processes: [
        { ...job, pid: 6100, ppid: 1, session: 6090, anonKiB: GiB },
        // In a session of its own whose leader is gone: an orphan by itself, and below one.
        { ...loaders(1)[0]!, ...job, pid: 6050, ppid: 6100, session: 6040, anonKiB: 2 * GiB, comm: 'pt_data_worker' },
      ],
    });
    expect(killed(story).sort()).toEqual([6050, 6100]);
    expect(story.findings.filter((f) => f.action === 'kill').reduce((sum, f) => sum + f.kiB, 0)).toBe(3 * GiB);
  });

  it('whose program alone could not be read are not judged by the name they give themselves', () => {
    const [seen, unseen] = loaders(2);
    const story = tell({ processes: [seen!, { ...unseen!, without: ['links'] }] });
    expect(killed(story)).toEqual([6000]);
  });

  it('are one finding, largest first, trackers last to go', () => {
    const story = tell({
      processes: [
        ...loaders(12),
        { pid: 6100, ppid: 1, comm: 'python3', argv: tracker, exe: python, session: 5999, anonKiB: 8000 },
      ],
    });
    expect(classes(story)).toEqual(['orphaned_workers']);
    expect(story.findings[0]?.evidence[0]).toMatch(
      /^13 processes left by a dead job \(data loader worker, resource tracker\), started .*owner ana$/,
    );
    expect(killed(story)).toHaveLength(13);
    expect(killed(story).at(-1)).toBe(6100);
  });

  it('share memory by fork: without smaps_rollup only one share is certain', () => {
    const [step] = tell({ processes: loaders(8) }).steps;
    expect(step?.expectedFreeKiB.low).toBe(Math.floor(2 * GiB * 0.95));
    expect(step?.expectedFreeKiB.high).toBeGreaterThan(16 * GiB);
    const rollup = { pssAnonKiB: GiB, privateKiB: GiB / 2 };
    const [read] = tell({ processes: loaders(8, { rollup }) }).steps;
    expect(read?.expectedFreeKiB.low).toBe(Math.floor(4 * GiB * 0.95));
    expect(read?.expectedFreeKiB.high).toBeLessThan(8.3 * GiB);
  });

  it('take the compilers they started with them', () => {
    const story = tell({
      processes: [
        {
          pid: 6000,
          ppid: 1,
          comm: 'python3',
          argv: ['python3', '/x/torch/_inductor/compile_worker/__main__.py', '--workers=8'],
          exe: python,
          session: 5999,
          anonKiB: GiB,
        },
        {
          pid: 6001,
          ppid: 6000,
          comm: 'ptxas',
          argv: ['ptxas'],
          exe: '/usr/local/cuda/bin/ptxas',
          session: 5999,
          anonKiB: GiB,
        },
      ],
    });
    expect(killed(story).sort()).toEqual([6000, 6001]);
  });

  const engines = (ppid: number, change: Partial<ProcSpec> = {}): ProcSpec[] => [
    {
      pid: 7001,
      ppid,
      comm: 'VLLM::EngineCor',
      argv: ['VLLM::EngineCore'],
      exe: python,
      session: 3900,
      pgrp: 6990,
      tty: 34816,
      foreground: 3900,
      anonKiB: 9 * GiB,
      ...change,
    },
    {
      pid: 7002,
      ppid: 7001,
      comm: 'VLLM::Worker_TP',
      argv: ['VLLM::Worker_TP0'],
      exe: python,
      session: 3900,
      pgrp: 6990,
      tty: 34816,
      foreground: 3900,
      anonKiB: 9 * GiB,
      ...change,
    },
  ];

  it('are found under the shell that launched their server, and that shell is never touched', () => {
    const story = tell({
      processes: [shell, ...engines(3900)],
      gpuApps: '7001, 100998, VLLM::EngineCore\n7002, 101044, x\n',
    });
    expect(killed(story).sort()).toEqual([7001, 7002]);
    expect(story.findings[0]?.evidence.join('\n')).toContain('202042 MiB of GPU memory (not RAM)');
  });

  it('are no orphans while their server lives', () => {
    const server: ProcSpec = {
      pid: 6990,
      ppid: 3900,
      comm: 'vllm',
      argv: ['/usr/bin/python3', '/usr/bin/vllm', 'serve', 'm'],
      exe: python,
      session: 3900,
      pgrp: 6990,
      tty: 34816,
      foreground: 6990,
      anonKiB: GiB,
    };
    expect(killed(tell({ processes: [shell, server, ...engines(6990, { foreground: 6990 })] }))).toEqual([]);
  });

  it('are told from schedulers that a healthy server lets go to init', () => {
    const scheduler = (pid: number): ProcSpec => ({
      pid,
      ppid: 1,
      comm: 'sglang::schedul',
      argv: ['sglang::scheduler_DP0_TP0'],
      exe: python,
      session: 7100,
      anonKiB: 4 * GiB,
    });
    const launcher: ProcSpec = {
      pid: 7100,
      ppid: 1,
      comm: 'python3',
      argv: ['python3', '-m', 'sglang.launch_server'],
      exe: python,
      anonKiB: GiB,
      ticks: 9,
    };
    expect(killed(tell({ processes: [scheduler(7101), scheduler(7102)] })).sort()).toEqual([7101, 7102]);
    expect(killed(tell({ processes: [launcher, scheduler(7101), scheduler(7102)] }))).toEqual([]);
  });

  const still: [string, Partial<ProcSpec>, BoxSpec?][] = [
    ['use CPU on two signs only', { ticks: 80, comm: 'python3', argv: ['python3', 'serve.py'] }],
    ['have a living parent', { ppid: 3910, session: 3910, comm: 'python3', argv: spawned }],
    ['run in a container', { cgroup: `0::/docker/${'ab12'.repeat(16)}` }],
    [
      'run in a Slurm job in the queue',
      { cgroup: '0::/slurm/uid_1001/job_5/step_0' },
      { slurm: '5 ana RUNNING train\n' },
    ],
    ['run in a Slurm job while squeue is silent', { cgroup: '0::/slurm/uid_1001/job_5/step_0' }],
    ['are a service', { cgroup: '0::/system.slice/serving.service' }],
    ['hide their owner (no status)', { without: ['status'] }],
  ];
  it.each(still)('stay when they %s', (_, change, box = {}) => {
    const owner: ProcSpec = { pid: 3910, ppid: 3900, comm: 'python3', argv: ['python3', 'train.py'], exe: python };
    expect(killed(tell({ ...box, processes: [shell, owner, ...loaders(3, change)] }))).toEqual([]);
  });

  it('of a Slurm job that is over go, even busy ones, when three signs agree', () => {
    const job = { cgroup: '0::/slurm/uid_1001/job_5/step_0', slurm: '' };
    const story = tell({
      slurm: '',
      processes: loaders(4, { cgroup: job.cgroup, comm: 'yank', argv: ['yank'], exe: '/opt/yank', ticks: 100 }),
    });
    expect(killed(story)).toHaveLength(4);
    expect(story.findings[0]?.evidence).toContain('its Slurm job 5 is no longer in the queue');
  });

  it('are never found where processes are hidden, cut off or seen without privilege', () => {
    const processes = loaders(4);
    const hidden = tell({ processes, privileged: false, mounts: 'proc /proc proc rw,hidepid=invisible 0 0\n' });
    const cut = tell({
      processes: [...processes, ...Array.from({ length: 9 }, (_, i) => ({ pid: 8000 + i, ppid: 7900 + i }))],
    });
    const noInit = tell({ processes: [...processes, { pid: 1, ppid: 0, without: ['stat', 'status'] }] });
    for (const story of [hidden, cut, noInit]) {
      expect(story.steps).toEqual([]);
      expect(story.sighted).toBe(false);
      expect(story.partial.length).toBeGreaterThan(0);
    }
    expect(killed(tell({ processes, privileged: false }))).toEqual([]);
  });

  it('are kept when their owner asks, when they are protected and when they are young', () => {
    const processes = loaders(2);
    const key = (pid: number) => `${pid}:${(1_600_000 - 3600) * 100}`;
    expect(killed(tell({ processes }, { kept: [key(6000)] }))).toEqual([6001]);
    for (const rule of [{ exe: python }, { comm: 'pt_data_worker' }, { user: 'ana' }, { user: '1001' }]) {
      expect(killed(tell({ processes }, { protect: [rule] }))).toEqual([]);
    }
    expect(killed(tell({ processes }, { protect: [{ user: 'ana', comm: 'other' }, {}] }))).toHaveLength(2);
    expect(killed(tell({ processes }, { minAgeSeconds: { process: 7200, shm: 0, sysv: 0 } }))).toEqual([]);
  });
});

describe('shared memory of orphaned workers', () => {
  const held = '/memfd:pool (deleted)';
  const engine = (pid: number, holds: string[]): ProcSpec => ({
    ...{ pid, ppid: 1, comm: 'VLLM::EngineCor', argv: ['VLLM::EngineCore'], exe: '/usr/bin/python3.11', session: 7000 },
    ...{ anonKiB: GiB, shmemKiB: 2 * GiB, holds },
  });
  const stranger: ProcSpec = {
    ...{ pid: 8000, ppid: 900, comm: 'python3', argv: ['python3', 'other.py'], tty: 34816, foreground: 8000 },
    ...{ shmemKiB: 2 * GiB, holds: [held] },
  };
  const named = { dev: 25, ino: 5, uid: 1001, bytes: 1, blocksKiB: 2 * GiB, mtime: 1, path: '/dev/shm/pool' };
  it.each<[string, BoxSpec, number]>([
    ['may come back with its last holders', { processes: [engine(7001, [held]), engine(7002, [held])] }, 2],
    ['stays while somebody else holds it', { processes: [engine(7001, [held]), stranger] }, 0],
    ['stays when it has a name', { processes: [engine(7001, ['/dev/shm/pool'])], shmFiles: [named] }, 0],
  ])('%s', (_, box, expectedGiB) => {
    const story = tell(box);
    const [step] = story.steps;
    const engines = (box.processes ?? []).filter((p) => p.comm?.startsWith('VLLM')).length;
    const anonKiB = engines * GiB;
    expect(step?.expectedAvailableKiB.low).toBeLessThanOrEqual(anonKiB);
    expect(step!.expectedAvailableKiB.high - Math.ceil(anonKiB * 1.02)).toBeLessThan(expectedGiB * GiB + 65_536);
    expect(step!.expectedAvailableKiB.high - Math.ceil(anonKiB * 1.02)).toBeGreaterThanOrEqual(expectedGiB * GiB);
    expect(
      story.findings.find((f) => f.action === 'kill')?.evidence.some((line) => line.includes('without a name')),
    ).toBe(expectedGiB > 0);
  });
});

describe('notebook kernels', () => {
  const kernel: ProcSpec = {
    pid: 7500,
    ppid: 1,
    comm: 'python3',
    argv: ['python3', '-m', 'ipykernel_launcher', '-f', '/x/kernel-1.json'],
    exe: python,
    anonKiB: 20 * GiB,
  };
  it('without any notebook server, idle and adopted, are left over', () => {
    expect(killed(tell({ processes: [kernel] }))).toEqual([7500]);
  });
  it('with a server are their owner’s to close, and the server is not proposed at all', () => {
    const server: ProcSpec = {
      pid: 7400,
      ppid: 1,
      comm: 'jupyter-lab',
      argv: ['python3', '/usr/bin/jupyter-lab'],
      exe: python,
      anonKiB: GiB,
    };
    const story = tell({ processes: [server, { ...kernel, ppid: 7400 }] });
    expect(story.steps).toEqual([]);
    expect(story.findings.map((f) => [f.class, f.action])).toEqual([['idle_owned', 'ask_owner']]);
  });
  it('at work are live', () => {
    expect(classes(tell({ processes: [{ ...kernel, ticks: 99 }] }))).toEqual(['live_job']);
  });
});

describe('processes no signal ends', () => {
  it('in D at both looks are not promised', () => {
    const stuck = loaders(1, { state: 'D', wchan: 'rpc_wait_bit_killable_x'.replace('rpc_wait', 'nvidia_close') });
    const story = tell({ processes: stuck });
    expect(story.findings.map((f) => [f.class, f.action, f.reclaimableKiB.high])).toEqual([
      ['unkillable', 'tell_admin', 0],
    ]);
  });
  it('R inside the GPU driver are told by their wait, not by the letter', () => {
    const spin: ProcSpec = {
      pid: 7700,
      ppid: 1,
      comm: 'VLLM::EngineCor',
      argv: ['VLLM::EngineCore'],
      exe: python,
      session: 7699,
      state: 'R',
      ticks: 100,
      systemTicks: 100,
      anonKiB: GiB,
      wchan: 'uvm_spin_loop+0xb4/0x100 [nvidia_uvm]',
    };
    expect(classes(tell({ processes: [spin] }))).toEqual(['unkillable']);
  });
  it('that only wait for a page are not called stuck', () => {
    expect(classes(tell({ processes: loaders(2, { state: 'D', wchan: 'folio_wait_bit_common' }) }))).toEqual([
      'orphaned_workers',
    ]);
  });
  it('zombies hold nothing and are never a target', () => {
    const zombie: ProcSpec = {
      pid: 7800,
      ppid: 3900,
      comm: 'wandb-service(2',
      argv: [],
      exe: null,
      state: 'Z',
      anonKiB: 0,
      session: 7799,
    };
    const story = tell({ processes: [shell, zombie] });
    expect(story.findings.map((f) => [f.class, f.kiB, f.action])).toEqual([['zombie', 0, 'none']]);
    expect(story.steps).toEqual([]);
  });
});

describe('everybody else', () => {
  it.each<[string, ProcSpec, string, string]>([
    [
      'a busy bazel server',
      {
        pid: 8100,
        ppid: 1,
        comm: 'java',
        argv: ['bazel(directory)', '--max_idle_secs=10800'],
        exe: '/usr/lib/jvm/bin/java',
        anonKiB: 2 * GiB,
        ticks: 47,
      },
      'live_job',
      'ask_owner',
    ],
    [
      'an idle bazel server',
      {
        pid: 8100,
        ppid: 1,
        comm: 'java',
        argv: ['bazel(directory)', '--max_idle_secs=10800'],
        exe: '/usr/lib/jvm/bin/java',
        anonKiB: 2 * GiB,
      },
      'idle_daemon',
      'ask_owner',
    ],
    [
      'a busy sccache server',
      { pid: 8101, ppid: 1, comm: 'sccache', argv: ['/usr/bin/sccache'], anonKiB: 2 * GiB, ticks: 100 },
      'live_job',
      'ask_owner',
    ],
    [
      'a service at work',
      {
        pid: 8102,
        ppid: 1,
        comm: 'ollama',
        argv: ['/usr/local/bin/ollama', 'runner'],
        uid: 998,
        cgroup: '0::/system.slice/ollama.service',
        anonKiB: 9 * GiB,
        ticks: 100,
      },
      'live_job',
      'tell_admin',
    ],
    [
      'an idle service',
      {
        pid: 8102,
        ppid: 1,
        comm: 'ollama',
        argv: ['/usr/local/bin/ollama', 'runner'],
        uid: 998,
        cgroup: '0::/system.slice/ollama.service',
        anonKiB: 9 * GiB,
      },
      'idle_daemon',
      'tell_admin',
    ],
    [
      'an unattended training run',
      {
        pid: 8103,
        ppid: 1,
        comm: 'python3',
        argv: ['python3', 'train.py'],
        session: 8000,
        anonKiB: 9 * GiB,
        ticks: 300,
      },
      'live_job',
      'ask_owner',
    ],
    [
      'an idle program nobody attends',
      { pid: 8103, ppid: 1, comm: 'python3', argv: ['python3', 'train.py'], session: 8000, anonKiB: 9 * GiB },
      'idle_owned',
      'ask_owner',
    ],
    [
      'a storage daemon',
      { pid: 8104, ppid: 1, comm: 'ceph-osd', argv: ['/usr/bin/ceph-osd'], uid: 167, anonKiB: 9 * GiB },
      'idle_daemon',
      'tell_admin',
    ],
  ])('%s is %s', (_, proc, kind, action) => {
    const story = tell({ processes: [proc] });
    expect(story.findings.map((f) => [f.class, f.action])).toEqual([[kind, action]]);
    expect(story.steps).toEqual([]);
    expect(story.liveKiB).toBeGreaterThanOrEqual(2 * GiB);
  });
});
