/**
 * The public reports of kinds A to F that say something about processes and shared memory, as small boxes. Cases that
 * are about figures alone (D, E, most of F) or about ssh and chat live with the modules they speak of.
 */
import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../src/memory/contract.ts';
import { redactCommand } from '../../src/memory/redact.ts';
import { parseStat } from '../../src/memory/processes/stat.ts';
import { parseCmdline } from '../../src/memory/processes/table.ts';
import { think } from '../../src/memory/think.ts';
import { defaultOptions, makeBox, takenAtSeconds, type BoxSpec, type ProcSpec } from './box.ts';
import { classes, GiB, killed, tell } from './processes/tell.ts';
import { reportOf, reports } from './report-cases.ts';

const python = '/usr/bin/python3.11';
const cuda = '/usr/local/cuda';
const shell: ProcSpec = {
  pid: 3900,
  ppid: 900,
  comm: 'bash',
  argv: ['-bash'],
  uid: 1001,
  tty: 34816,
  foreground: 3900,
};

/**
 * Words of the reports that the contract has as classes (idle_daemon, unkillable, orphan) are held to in `first`. Files and
 * segments nobody uses are `lingering` by the contract, since they can be given back, where the reports say not_a_process.
 * Live work on a box with enough available is nothing_to_reclaim: nobody is short.
 *
 * What a case must come to: the class of its largest finding, and exactly which pids may be signalled. */
interface Row {
  verdict: Verdict;
  box: BoxSpec;
  first: string | null;
  kill: number[] | 'first' | 'none';
  /** Where we read the report otherwise than its note does. */
  because?: string;
}

const build = (change: Partial<ProcSpec>, root: Partial<ProcSpec> = {}): ProcSpec[] => {
  const all = { session: 3900, pgrp: 4000, anonKiB: 4 * GiB, ...change };
  return [
    { ...all, pid: 4001, ppid: 4000, comm: 'ninja', argv: ['ninja', '-v', '-j', '48'], ...root },
    {
      ...all,
      pid: 4002,
      ppid: 4001,
      comm: 'nvcc',
      argv: ['nvcc', '-c', 'a.cu'],
      exe: `${cuda}/bin/nvcc`,
      anonKiB: 224,
    },
    { ...all, pid: 4003, ppid: 4002, comm: 'cicc', argv: ['cicc'], exe: `${cuda}/nvvm/bin/cicc` },
    { ...all, pid: 4004, ppid: 4002, comm: 'cudafe++', argv: ['cudafe++'], exe: `${cuda}/bin/cudafe++` },
  ];
};
const atPrompt = { tty: 34816, foreground: 4000 };
const pip: ProcSpec = {
  pid: 4000,
  ppid: 3900,
  comm: 'pip',
  argv: ['/usr/bin/python3', '/usr/bin/pip', 'install', 'flash-attn'],
  exe: python,
  session: 3900,
  pgrp: 4000,
  ...atPrompt,
  ticks: 3,
};
const sglang = (pid: number, change: Partial<ProcSpec> = {}): ProcSpec => ({
  pid,
  ppid: 1,
  comm: 'sglang::schedul',
  argv: ['sglang::scheduler_DP0_TP0_EP0'],
  exe: python,
  session: 2505000,
  anonKiB: 4 * GiB,
  cgroup: '0::/slurm/uid_1001/job_9/step_0',
  ...change,
});
const shm = (name: string, kiB: number, n = 1) =>
  Array.from({ length: n }, (_, i) => ({
    dev: 25,
    ino: 50 + i,
    uid: 1001,
    bytes: kiB * 1024,
    blocksKiB: kiB,
    mtime: takenAtSeconds - 90_000,
    path: `/dev/shm/${name.replace('#', String(i))}`,
  }));

const rows: Record<string, Row> = {
  A02: {
    verdict: 'real_usage',
    box: { totalKiB: 121 * GiB, processes: [shell, pip, ...build({ ...atPrompt, ticks: 95, anonKiB: 36 * GiB })] },
    first: 'live_job',
    kill: 'none',
  },
  A04: {
    verdict: 'real_usage',
    box: { totalKiB: 131_774_669, processes: [shell, pip, ...build({ ...atPrompt, ticks: 95, anonKiB: 41 * GiB })] },
    first: 'live_job',
    kill: 'none',
  },
  A06: {
    verdict: 'lingering',
    box: {
      processes: build({ session: 3800, pgrp: 3800 })
        .slice(2)
        .map((p) => ({ ...p, ppid: 1 })),
    },
    first: 'leftover_build',
    kill: [4003, 4004],
  },
  A07: {
    verdict: 'lingering',
    box: { processes: [shell, ...build({ tty: 34816, foreground: 3900, ticks: 95 }, { ppid: 1 })] },
    first: 'leftover_build',
    kill: 'first',
  },
  A08: {
    verdict: 'real_usage',
    box: {
      totalKiB: 16 * GiB,
      processes: [shell, { ...pip, secondsOld: 10_800 }, ...build({ ...atPrompt, secondsOld: 10_800 })],
    },
    first: 'live_job',
    kill: 'none',
    because: 'a terminal and a parent are signs of life, so it is live rather than unknown; age alone proves nothing',
  },
  A11: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 2064,
          ppid: 1,
          comm: 'java',
          argv: ['bazel(directory)', '--max_idle_secs=10800'],
          exe: '/usr/lib/jvm/bin/java',
          anonKiB: 2 * GiB,
          ticks: 47,
        },
      ],
    },
    first: 'live_job',
    kill: 'none',
  },
  A12: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 2064,
          ppid: 1,
          comm: 'java',
          argv: ['bazel(workspace)', '--max_idle_secs=10800'],
          exe: '/usr/lib/jvm/bin/java',
          anonKiB: 963 * 1024,
        },
      ],
    },
    first: 'idle_daemon',
    kill: 'none',
    because: 'an idle server is its owner’s to stop: only the positive list is ever proposed',
  },
  A13: {
    verdict: 'nothing_to_reclaim',
    box: {
      totalKiB: 127 * GiB,
      processes: [{ pid: 3014102, ppid: 1, comm: 'sccache', argv: ['sccache'], anonKiB: 2_936_012, ticks: 101 }],
    },
    first: 'live_job',
    kill: 'none',
  },
  A17: {
    verdict: 'lingering',
    box: {
      processes: [
        {
          pid: 5000,
          ppid: 1,
          comm: 'python3',
          argv: ['python3', '-m', 'torch._inductor.compile_worker'],
          exe: python,
          session: 4990,
          anonKiB: GiB,
        },
        {
          pid: 5001,
          ppid: 5000,
          comm: 'ptxas',
          argv: ['ptxas'],
          exe: `${cuda}/bin/ptxas`,
          session: 4990,
          anonKiB: GiB,
        },
      ],
    },
    first: 'orphaned_workers',
    kill: [5000, 5001],
  },
  A18: {
    verdict: 'real_usage',
    box: {
      totalKiB: 16 * GiB,
      processes: build(
        { cgroup: `0::/system.slice/docker-${'ab'.repeat(32)}.scope`, session: 3800, pgrp: 3800 },
        { ppid: 1 },
      ),
    },
    first: 'live_job',
    kill: 'none',
  },
  B01: {
    verdict: 'lingering',
    box: {
      slurm: '',
      processes: [sglang(2505781), sglang(2505782), sglang(2505783), sglang(2505784)],
      gpuApps: '2505781, 100998, x\n2505782, 101044, x\n2505783, 101044, x\n2505784, 100804, x\n',
    },
    first: 'orphaned_workers',
    kill: [2505781, 2505782, 2505783, 2505784],
  },
  B02: {
    verdict: 'lingering',
    box: {
      processes: [
        { ...shell, pid: 21913, foreground: 21913 },
        {
          pid: 21960,
          ppid: 21913,
          comm: 'VLLM::EngineCor',
          argv: ['VLLM::EngineCore'],
          exe: python,
          session: 21913,
          pgrp: 21950,
          tty: 34816,
          foreground: 21913,
          anonKiB: 9 * GiB,
        },
      ],
    },
    first: 'orphaned_workers',
    kill: [21960],
  },
  B03: {
    verdict: 'lingering',
    box: {
      processes: [
        {
          pid: 396079,
          ppid: 1,
          uid: 0,
          comm: 'VLLM::EngineCor',
          argv: ['VLLM::EngineCore'],
          exe: python,
          session: 396000,
          anonKiB: GiB,
          holds: ['/dev/kfd'],
        },
      ],
    },
    first: 'orphaned_workers',
    kill: [396079],
  },
  B05: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 77637,
          ppid: 1,
          comm: 'VLLM::EngineCor',
          argv: ['VLLM::EngineCore'],
          exe: python,
          session: 77000,
          state: 'R',
          ticks: 100,
          systemTicks: 100,
          anonKiB: GiB,
          wchan: (reportOf('B05').input['stack'] as string[]).join('\n'),
        },
      ],
    },
    first: 'unkillable',
    kill: 'none',
  },
  B08: {
    verdict: 'lingering',
    box: {
      processes: [
        { pid: 31794, ppid: 1, comm: 'python', argv: [], exe: null, state: 'Z', anonKiB: 0 },
        {
          pid: 31800,
          ppid: 31794,
          comm: 'python3',
          argv: ['python3', '-c', 'from multiprocessing.forkserver import main; main(7)'],
          exe: python,
          session: 31700,
          anonKiB: GiB,
        },
      ],
      gpuApps: '31794, 5371, Unknown Error\n',
    },
    first: 'orphaned_workers',
    kill: [31800],
  },
  B10: {
    verdict: 'lingering',
    box: {
      processes: [
        shell,
        ...[1, 2].map((n) => ({
          pid: 241734 + n,
          ppid: 1,
          comm: 'ray::RolloutWor',
          argv: ['ray::RolloutWorker'],
          exe: python,
          session: 3900,
          pgrp: 241000,
          tty: 34816,
          foreground: 3900,
          anonKiB: GiB,
          shmemKiB: 2 * GiB,
        })),
      ],
    },
    first: 'orphaned_workers',
    kill: [241735, 241736],
  },
  B11: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 75242,
          ppid: 1,
          comm: 'raylet',
          argv: ['/x/ray/raylet/raylet'],
          exe: '/x/ray/raylet/raylet',
          session: 75000,
          anonKiB: 7 * GiB,
        },
      ],
    },
    first: 'idle_owned',
    kill: 'none',
    because: 'its head may be another machine, which this box cannot see: what cannot be seen counts as alive',
  },
  B13: {
    verdict: 'lingering',
    box: {
      processes: [
        {
          pid: 8691,
          ppid: 1,
          comm: 'python3',
          argv: ['/usr/bin/python3', '-B', '-c', 'from multiprocessing.forkserver import main; main(77, 85, [])'],
          exe: python,
          session: 8600,
          anonKiB: 41_156,
        },
        ...[1, 2].map((n) => ({
          pid: 8700 + n,
          ppid: 8691,
          comm: 'python3',
          argv: ['/usr/bin/python3', '-B', '-c', 'from multiprocessing.forkserver import main; main(77, 85, [])'],
          exe: python,
          session: 8600,
          anonKiB: 5 * GiB,
        })),
      ],
    },
    first: 'orphaned_workers',
    kill: [8691, 8701, 8702],
  },
  B15: {
    verdict: 'lingering',
    box: {
      processes: [
        { pid: 2100, ppid: 1, comm: 'systemd', argv: ['/lib/systemd/systemd', '--user'], exe: '/lib/systemd/systemd' },
        {
          pid: 9000,
          ppid: 2100,
          comm: 'python',
          argv: ['python', '-m', 'ipykernel_launcher', '-f', '/x/kernel-123.json'],
          exe: python,
          anonKiB: 9 * GiB,
        },
      ],
    },
    first: 'orphaned_workers',
    kill: [9000],
  },
  B16: {
    verdict: 'real_usage',
    box: {
      totalKiB: 8 * GiB,
      slurm: null,
      processes: [
        sglang(7101, { session: 7100, cgroup: '0::/' }),
        {
          pid: 7100,
          ppid: 1,
          comm: 'python3',
          argv: ['python3', '-m', 'sglang.launch_server'],
          exe: python,
          anonKiB: GiB,
          ticks: 5,
        },
      ],
    },
    first: 'live_job',
    kill: 'none',
  },
  B17: {
    verdict: 'nothing_to_reclaim',
    box: {
      totalKiB: 126 * GiB,
      processes: [
        { ...shell, tty: 34824 },
        {
          pid: 2559215,
          ppid: 3900,
          comm: 'python',
          argv: ['python', '-m', 'nmt.train'],
          exe: python,
          session: 3900,
          pgrp: 2559215,
          tty: 34824,
          foreground: 2559215,
          state: 'D',
          ticks: 94,
          anonKiB: 32_577_444,
        },
      ],
    },
    first: 'live_job',
    kill: 'none',
    because: 'at the time of the look it had its terminal and used CPU; what came after is another look',
  },
  B18: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 40335,
          ppid: 3900,
          comm: 'nvidia-smi',
          argv: ['nvidia-smi'],
          state: 'D',
          wchan: 'nvidia_close [nvidia]',
        },
      ],
      gpuApps: { timedOut: true, stdout: '' },
    },
    first: 'unkillable',
    kill: 'none',
  },
  B21: {
    verdict: 'nothing_to_reclaim',
    box: {
      totalKiB: 15 * GiB,
      processes: [
        {
          pid: 182076,
          ppid: 1,
          comm: 'ollama',
          argv: ['/usr/local/bin/ollama', 'runner', '--ollama-engine'],
          uid: 998,
          cgroup: '0::/system.slice/ollama.service',
          anonKiB: 2_400_000,
          fileKiB: 7_600_000,
          ticks: 100,
        },
      ],
    },
    first: 'live_job',
    kill: 'none',
  },
  B22: {
    verdict: 'real_usage',
    box: {
      totalKiB: 256 * GiB,
      processes: [
        {
          pid: 800,
          ppid: 1,
          comm: 'jupyter-noteboo',
          argv: ['python3', '/usr/bin/jupyter-notebook'],
          exe: python,
          anonKiB: 196 * GiB,
        },
        {
          pid: 801,
          ppid: 800,
          comm: 'python3',
          argv: ['python3', '-m', 'ipykernel_launcher'],
          exe: python,
          anonKiB: GiB,
        },
      ],
    },
    first: 'idle_owned',
    kill: 'none',
    because: 'kernels with a living server are their owner’s to close',
  },
  B26: {
    verdict: 'real_usage',
    box: {
      totalKiB: 14 * GiB,
      init: 'bash',
      processes: [
        {
          pid: 530020,
          ppid: 81,
          comm: 'python3',
          argv: ['python3', '-m', 'vllm_omni.entrypoints.cli.main', 'serve'],
          exe: python,
          uid: 0,
          session: 81,
          tty: 34817,
          foreground: 530020,
          pgrp: 530020,
          ticks: 25,
          anonKiB: GiB,
        },
        { pid: 81, ppid: 1, comm: 'bash', argv: ['bash'], uid: 0, tty: 34817, foreground: 530020 },
        {
          pid: 530284,
          ppid: 530020,
          comm: 'VLLM::StageEngi',
          argv: ['VLLM::StageEngineCoreProc_DP0'],
          exe: python,
          uid: 0,
          session: 81,
          pgrp: 530020,
          tty: 34817,
          foreground: 530020,
          anonKiB: 9 * GiB,
        },
      ],
    },
    first: 'live_job',
    kill: 'none',
  },
  C01: {
    verdict: 'lingering',
    box: { shmFiles: shm('deepspeed_allreduce_buffer_#', 265_216, 9) },
    first: 'stale_shm',
    kill: 'none',
  },
  C02: {
    verdict: 'lingering',
    box: { shmFiles: shm('sgl_shm_mm_30#11_ab12cd34', 22_154, 852) },
    first: 'stale_shm',
    kill: 'none',
  },
  C03: { verdict: 'nothing_to_reclaim', box: { shmFiles: shm('nccl-onFp46', 0) }, first: null, kill: 'none' },
  C04: {
    verdict: 'lingering',
    box: { shmFiles: shm('vllm_offload_2510ed76-7d9e-4474-a959-ed83bc66582c.mmap', 16_777_216) },
    first: 'stale_shm',
    kill: 'none',
  },
  C05: {
    verdict: 'nothing_to_reclaim',
    box: {
      shmFiles: shm('nccl-AbCdEf', GiB),
      processes: [
        { pid: 5000, ppid: 900, comm: 'python3', argv: ['python3', 'x.py'], exe: python, holds: ['/dev/nvidia0'] },
      ],
    },
    first: 'tmpfs_files',
    kill: 'none',
  },
  C07: {
    verdict: 'nothing_to_reclaim',
    box: {
      df: 'x\ntmpfs 99999999 9000000 1 9% /dev/shm\n',
      processes: [
        {
          pid: 5000,
          ppid: 900,
          comm: 'python3',
          argv: ['python3', 'x.py'],
          exe: python,
          holds: ['/dev/shm/S5kyZK (deleted)'],
        },
      ],
    },
    first: 'tmpfs_files',
    kill: 'none',
  },
  C09: {
    verdict: 'lingering',
    box: {
      shmFiles: shm('joblib_memmaping_pool_64060_189405392/64060-190150864.npy', 13_528_188),
      processes: [
        { pid: 64060, ppid: 900, comm: 'python3', argv: ['python3', 'other.py'], exe: python, secondsOld: 60 },
      ],
    },
    first: 'stale_shm',
    kill: 'none',
  },
  C14: {
    verdict: 'lingering',
    box: {
      sysv: `0 629964859 700 4294967296 4242 4243 0 1001 1001 1001 1001 1 1 ${takenAtSeconds - 9000} 4294967296 0\n`,
    },
    first: 'stale_sysv_shm',
    kill: 'none',
  },
  D17: {
    verdict: 'nothing_to_reclaim',
    box: {
      processes: [
        {
          pid: 4190,
          ppid: 1,
          uid: 116,
          comm: 'postgres',
          argv: ['postgres: postgres postgres [local] UPDATE'],
          exe: '/usr/lib/postgresql/15/bin/postgres',
          anonKiB: 900_000,
        },
      ],
    },
    first: 'idle_daemon',
    kill: 'none',
  },
  D20: {
    verdict: 'real_usage',
    box: {
      totalKiB: 125 * GiB,
      processes: Array.from({ length: 12 }, (_, i) => ({
        ...{
          pid: 300 + i,
          ppid: 1,
          uid: 167,
          comm: 'ceph-osd',
          argv: ['/usr/bin/ceph-osd'],
          anonKiB: 9 * GiB,
          ticks: 30,
        },
      })),
    },
    first: 'live_job',
    kill: 'none',
  },
  E08: {
    verdict: 'nothing_to_reclaim',
    box: { processes: [{ pid: 2770, ppid: 1991, uid: 0, comm: 'sync', argv: ['sync'], state: 'D', anonKiB: 100 }] },
    first: null,
    kill: 'none',
  },
};

describe('public reports about processes and shared memory', () => {
  it.each(Object.entries(rows))('%s', (id, { box, verdict, first, kill }) => {
    reportOf(id);
    const story = tell(box);
    expect(classes(story)[0] ?? null).toBe(first);
    if (kill === 'none') expect(killed(story)).toEqual([]);
    else if (kill === 'first') expect(killed(story)[0]).toBe(4001);
    else expect([...killed(story)].sort((a, b) => a - b)).toEqual(kill);
    const { diagnosis } = think(makeBox(box), defaultOptions);
    expect({ verdict: diagnosis.verdict, headline: diagnosis.headline }).toMatchObject({ verdict });
    const planned = new Set(killed(story));
    const heldKiB = (box.processes ?? []).reduce((sum, p) => sum + (planned.has(p.pid) ? (p.anonKiB ?? 1024) : 0), 0);
    const promised = story.findings.filter((f) => f.action === 'kill').reduce((sum, f) => sum + f.kiB, 0);
    expect(promised).toBe(heldKiB);
    const files = diagnosis.plan?.steps.filter((step) => step.action === 'remove_files') ?? [];
    expect(files.flatMap((step) => step.targets)).toHaveLength(first === 'stale_shm' ? (box.shmFiles?.length ?? 0) : 0);
  });

  it('A07: everything captured below ninja goes after it, and nothing else', () => {
    expect(killed(tell(rows['A07']!.box)).sort()).toEqual([4001, 4002, 4003, 4004]);
  });

  it('A09 and A10: build hooks are one process, one line, and a driver of their build', () => {
    const argv = reportOf('A09').input['child_argv'] as string[];
    expect(parseCmdline(argv.map((arg) => `${arg}\0`).join(''))).toHaveLength(3);
    expect(redactCommand(argv)).not.toContain('\n');
    for (const hook of [
      argv,
      ...['argv_legacy', 'argv_pep517'].map((name) => reportOf('A10').input[name] as string[]),
    ]) {
      const processes: ProcSpec[] = [
        {
          pid: 4100,
          ppid: 1,
          comm: 'python',
          argv: hook,
          exe: python,
          session: 4000,
          anonKiB: GiB,
          cwd: '/tmp/pip-install-k3v/flash-attn_0123456789abcdef0123456789abcdef',
        },
      ];
      const legacy = hook.some((arg) => arg.startsWith('<'));
      if (legacy)
        hook[3] =
          'exec(compile(\'import setuptools; __file__="/tmp/pip-install-k3v/flash-attn/setup.py"\', "", "exec"))';
      const story = tell({ processes });
      expect(classes(story)).toEqual(['leftover_build']);
      expect(story.findings[0]?.evidence[0]).toContain('of flash-attn');
    }
  });

  it('F14 and F17: a name cut at 15 bytes and a title without NULs are read as what they are', () => {
    for (const comm of reportOf('F14').input['comms'] as string[]) {
      expect(parseStat(`5 (${comm}) S 1 5 5 0 -1`)?.comm).toBe(comm);
    }
    for (const title of reportOf('F17').input['cmdline_bytes'] as string[]) {
      expect(parseCmdline(title.replace('\\x00', '\0'))).toHaveLength(1);
    }
  });

  it('F19: a forged line in an argument stays one line', () => {
    expect(redactCommand(['sh', '-c', 'x\n1234 root 0 init'])).toBe('sh -c x\\n1234 root 0 init');
  });

  it('every row names a case that is there, and says why where it differs', () => {
    const ids = new Set(reports.map((report) => report.id));
    expect(Object.keys(rows).filter((id) => !ids.has(id))).toEqual([]);
  });
});
