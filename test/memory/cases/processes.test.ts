/** Public reports about processes, shared memory and GPUs, as whole boxes of the size they were reported from. */
import { describe, expect, it } from 'vitest';
import { think } from '../../../src/memory/think.ts';
import { defaultOptions, makeBox, takenAtSeconds, type BoxSpec, type ProcSpec } from '../box.ts';
import { caseOf } from '../cases.ts';
import { reportOf as publicReport } from '../report-cases.ts';
import { attended, checkCase, figures, GB, GiB, MB, MiB, python, reportOf, shell, type CaseRow } from './check.ts';

const cuda = '/usr/local/cuda-12.4';
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const file = (name: string, kiB: number, n = 1) =>
  range(n).map((i) => ({
    ...{ dev: 25, ino: 50 + i, uid: 1001, bytes: kiB * 1024, blocksKiB: Math.round(kiB) },
    ...{ mtime: takenAtSeconds - 90_000, path: `/dev/shm/${name.replace('#', String(i))}` },
  }));

/** `ninja` and N compilers below it, each of `kiB`; attended, or torn from a dead session. */
function flashBuild(n: number, kiB: number, torn: boolean): ProcSpec[] {
  const home = torn
    ? { session: 4000, pgrp: 4000, cwd: '/home/ana/flash-attention/build/temp.linux-x86_64' }
    : { session: 3900, pgrp: 4000, tty: 34816, foreground: 4000, ticks: 95 };
  return [
    { ...home, pid: 4100, ppid: torn ? 1 : 3900, comm: 'ninja', argv: ['ninja', '-v'], exe: '/usr/bin/ninja' },
    ...range(n).map((i) => ({
      ...home,
      ...{ pid: 4200 + i, ppid: 4100, comm: 'cicc', exe: `${cuda}/nvvm/bin/cicc`, anonKiB: Math.round(kiB) },
      argv: ['cicc', '--orig_src_file_name', `/home/ana/flash-attention/csrc/flash_attn/src/flash_bwd_${i}.cu`],
    })),
  ];
}
const zones = (cpus: number): Record<'/proc/zoneinfo', string> => ({
  '/proc/zoneinfo': `Node 0, zone Normal\n${range(cpus)
    .map((cpu) => `    cpu: ${cpu}\n              count: 0\n`)
    .join('')}`,
});
const engine = (pid: number, change: Partial<ProcSpec> = {}): ProcSpec => ({
  ...{ pid, ppid: 1, comm: 'VLLM::EngineCor', argv: ['VLLM::EngineCore'], exe: python, session: 7000 },
  ...change,
});

const builds: Record<string, CaseRow> = {
  A03: {
    box: {
      totalKiB: 880 * GB,
      processes: flashBuild(168, 5 * GB, true),
      files: zones(96),
    },
    verdict: 'lingering',
    has: { leftover_build: 840 * GB },
    plan: ['kill 169 targets', 'drop_caches 1'],
    says: [
      '168 compiler processes of one build of flash-attn',
      'owner ana',
      'MAX_JOBS=24 with the usual NVCC_THREADS=4',
    ],
    because: 'before the restart: one group with count, sum and owner',
  },
  'A03, after the reboot': {
    box: { totalKiB: 880 * GB, files: { '/proc/uptime': '720.00 60000.00\n' } },
    verdict: 'nothing_to_reclaim',
    plan: [],
    says: ['The box was started 12 min ago; what filled it before that is gone'],
  },
  A15: {
    box: {
      totalKiB: 16 * GiB,
      commands: {
        'dmesg oom': [
          ...['[1.0] cicc invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0'],
          ...(publicReport('A15').input['oom_table'] as string[]).map((row) => `[1.1] ${row}`),
          '[1.1] [   8124]     0  8124  2000000  1572864   151552        0             0 cicc',
          `[1.2] ${String(publicReport('A15').input['oom_victim'])}`,
        ].join('\n'),
      },
    },
    verdict: 'nothing_to_reclaim',
    plan: ['drop_caches 1'],
    says: [
      'nautilus 1×',
      'The victim was not the culprit: nautilus held 29 MiB, while 1 × cicc held 6 GiB.',
      'The largest compiler seen on this box was cicc with 6 GiB',
    ],
    because: 'the weight is in a cicc that its excerpt does not show',
  },
  A16: {
    box: {
      totalKiB: 32 * GiB,
      processes: [
        shell,
        attended({ pid: 4000, comm: 'cargo', argv: ['cargo', 'test', '--all-features'], exe: '/usr/bin/cargo' }),
        ...range(4).map((i) =>
          attended({
            pid: 4010 + i,
            ppid: 4000,
            comm: 'rustc',
            exe: '/usr/bin/rustc',
            argv: ['rustc'],
            anonKiB: 2 * GiB,
          }),
        ),
        ...range(4).map((i) =>
          attended({ pid: 4020 + i, ppid: 4010 + i, comm: 'ld', exe: '/usr/bin/ld', argv: ['ld'], anonKiB: 3 * GiB }),
        ),
      ],
    },
    verdict: 'real_usage',
    has: { live_job: 20 * GiB },
    plan: [],
    says: ['of one build'],
  },
  'flashattn-2079': {
    box: {
      totalKiB: 700 * GB,
      processes: [shell, ...flashBuild(192, (616 / 192) * GB, false)],
      files: zones(192),
    },
    verdict: 'real_usage',
    has: { live_job: 616 * GB },
    plan: [],
    says: ['The largest compiler seen on this box was cicc with 3 GiB', 'Each flash-attention job runs NVCC_THREADS'],
  },
  'flashattn-2493': {
    box: { totalKiB: 880 * GB, processes: [shell, ...flashBuild(168, 5 * GB, false)], files: zones(96) },
    verdict: 'real_usage',
    has: { live_job: 840 * GB },
    plan: [],
    says: [/= 1\d\d compilers at once, and the box has 96 CPUs/, 'MAX_JOBS=24 with the usual NVCC_THREADS=4'],
  },
  'flashattn-391': {
    box: {
      totalKiB: 376 * GiB,
      processes: [shell, ...flashBuild(72, 0.8 * GiB, false)],
      files: {
        ...zones(72),
        ...figures({
          ...{ total: 376 * GiB, anon: 60 * GiB, file: 103 * GiB, shmem: 12 * GiB, available: 298 * GiB },
          swap: [29 * GiB, 24 * GiB],
        }),
      },
    },
    verdict: 'nothing_to_reclaim',
    has: { live_job: 57.6 * GiB, swap: 24 * GiB },
    plan: ['drop_caches 1'],
    says: ['MAX_JOBS=18 with the usual NVCC_THREADS=4'],
    because: 'at the look 298 of 376 GiB were available; the build had been over its peak',
  },
  'flashattn-1581': {
    box: { totalKiB: 480 * GB, processes: [shell, ...flashBuild(52, 5 * GB, false)] },
    verdict: 'nothing_to_reclaim',
    has: { live_job: 260 * GB },
    plan: [],
    because: 'the size of the box is ours; a GH200 has 480 GB, so 260 GB left it enough',
  },
  'flashattn-2051': {
    box: { totalKiB: 128 * GB, processes: [shell, ...flashBuild(16, 5 * GB, true)] },
    verdict: 'lingering',
    has: { leftover_build: 80 * GB },
    plan: ['kill 17 targets', 'drop_caches 1'],
    says: [/16 compilers|17 processes|end 17 processes/, /MAX_JOBS=\d/],
    because: 'its box was 4 jobs of 4 threads; the size of the box is not told',
  },
  'flashattn-382': {
    box: { totalKiB: 39 * GB, processes: [shell, ...flashBuild(7, 5 * GB, false)] },
    verdict: 'real_usage',
    has: { live_job: 35 * GB },
    plan: [],
    says: ['MAX_JOBS=1 with the usual NVCC_THREADS=4'],
  },
};

const orphans: Record<string, CaseRow> = {
  B04: {
    box: {
      totalKiB: 128 * GB,
      processes: [engine(7001, { pgrp: 6990, anonKiB: 9 * GiB, holds: ['/dev/nvidia0'] })],
      gpuApps: `7001, ${String(publicReport('B04').input['gpu_held_mib'])}, VLLM::EngineCore\n`,
    },
    verdict: 'lingering',
    has: { orphaned_workers: 9 * GiB },
    plan: ['kill 7001', 'drop_caches 1'],
    says: ['104277 MiB of GPU memory (not RAM)'],
  },
  B19: {
    box: {
      totalKiB: 64 * GiB,
      processes: [
        ...range(4).map((i) => ({
          ...{ pid: 6000 + i, ppid: 1, comm: 'pt_data_worker', argv: ['python', 'train.py', '-n', '4'], exe: python },
          ...{ session: 5999, anonKiB: 4 * GiB },
        })),
        { pid: 6050, ppid: 6000, comm: 'orted', argv: ['orted'], session: 5999, anonKiB: 300 * MiB },
      ],
    },
    verdict: 'lingering',
    has: { orphaned_workers: 16 * GiB },
    plan: ['kill 6000 6001 6002 6003', 'drop_caches 1'],
    because: 'orted hangs below a target and is not signalled: only what is listed is, never the tree of it',
  },
  'cbio-409': {
    box: {
      totalKiB: 96 * GB,
      slurm: '',
      processes: [21_233, 21_234, 21_235, 21_236].map((pid) => ({
        ...{ pid, ppid: 1, comm: 'yank', argv: ['yank', 'script', '--yaml=a.yaml'], exe: '/opt/yank/bin/yank' },
        ...{ session: 21_200, cgroup: '0::/slurm/uid_1001/job_9/step_0', ticks: 100, anonKiB: 316 * MiB },
        ...{ fileKiB: 90 * MiB, secondsOld: 360_000 },
      })),
    },
    verdict: 'lingering',
    has: { orphaned_workers: 4 * 316 * MiB },
    plan: ['kill 21233 21234 21235 21236', 'drop_caches 1'],
    says: ['its Slurm job 9 is no longer in the queue', 'some of them still use CPU'],
  },
  'vllm-omni-2317': {
    box: {
      totalKiB: 16 * GiB,
      docker: '',
      processes: [7001, 7002].map((pid) =>
        engine(pid, { cgroup: `0::/system.slice/docker-${'ab'.repeat(32)}.scope`, anonKiB: 6 * GiB }),
      ),
      gpuApps: '7001, 11264, x\n7002, 11264, x\n',
    },
    verdict: 'real_usage',
    has: { live_job: 12 * GiB },
    plan: [],
    says: [
      '`docker ps` does not list this container: it was removed, or belongs to another daemon',
      '22528 MiB of GPU',
    ],
    because: 'a rootless or second daemon shows nothing in docker ps either, so it is asked about and not ended',
  },
  'hyperloom-1581': {
    box: {
      totalKiB: 64 * GiB,
      processes: [
        {
          ...{ pid: 7000, ppid: 900, comm: 'python3', exe: python, session: 7000, anonKiB: GiB, ticks: 50 },
          argv: [
            'python3',
            '-m',
            'sglang.launch_server',
            ...range(400).map((n) => `--overrides.model.layer.${n}=auto`),
          ],
        },
        ...[7001, 7002].map((pid) => ({
          ...{ pid, ppid: 1, comm: 'sglang::schedul', argv: ['sglang::scheduler_TP0'], exe: python, session: 7000 },
          anonKiB: 20 * GiB,
        })),
      ],
    },
    verdict: 'real_usage',
    has: { live_job: 41 * GiB },
    lacks: ['orphaned_workers'],
    plan: [],
  },
};

const gpus: Record<string, CaseRow> = {
  'pai-5528': {
    box: {
      processes: [
        shell,
        ...(publicReport('B18').input['pids'] as number[]).map((pid) => ({
          ...{ pid, ppid: 3900, comm: 'python3', argv: ['python3', 'train.py'], exe: python, state: 'D' },
          ...{ wchan: 'uvm_va_space_destroy', anonKiB: 2 * GiB },
        })),
      ],
      gpuApps: { timedOut: true, stdout: '' },
    },
    verdict: 'nothing_to_reclaim',
    has: { unkillable: 10 * GiB },
    plan: [],
    says: ['the wait is inside the GPU driver: only a reboot helps', 'nvidia-smi did not answer in time'],
  },
  'nvidia-docker-377': {
    box: {
      processes: [
        { pid: 935, ppid: 1, uid: 0, comm: 'nvidia-smi', argv: ['/usr/bin/nvidia-smi'], state: 'D', anonKiB: 4056 },
        {
          pid: 953,
          ppid: 1,
          uid: 0,
          comm: 'nvidia-persiste',
          argv: ['nvidia-persistenced'],
          state: 'D',
          anonKiB: 1740,
        },
        {
          pid: 1368,
          ppid: 1,
          uid: 0,
          comm: 'nvidia-docker-p',
          argv: ['nvidia-docker-plugin'],
          state: 'D',
          anonKiB: 9548,
        },
      ],
      gpuApps: { timedOut: true, stdout: '' },
    },
    verdict: 'nothing_to_reclaim',
    has: { unkillable: 4056 + 9548 },
    plan: [],
    says: ['2 processes stuck in the kernel', 'no signal, not even KILL, ends them'],
    because: 'the persistence daemon is one of the protected, of which nothing is said',
  },
  'visedit-5': {
    box: { gpuApps: '4242, 10151, [Not Found]\n', gpus: '0, 10151, 81920, 100\n' },
    verdict: 'nothing_to_reclaim',
    has: { gpu_driver: 0 },
    plan: [],
    says: ['1 process with 10151 MiB of GPU memory that this box does not show (pid 4242)', 'another pid namespace'],
  },
  'verifiers-85': {
    box: { gpuApps: '', gpus: '0, 46867, 49140, 100\n' },
    verdict: 'nothing_to_reclaim',
    has: { gpu_driver: 0 },
    plan: [],
    says: [
      '46867 MiB of GPU memory is in use by no process that nvidia-smi lists (GPU 0: 46867 of 49140 MiB)',
      'no process here has a GPU device open',
    ],
  },
  'nvitop-134': {
    box: {
      processes: [
        { pid: 5100, ppid: 1, comm: 'python3', argv: ['python3', 'serve.py'], exe: python, holds: ['/dev/nvidia0'] },
      ],
      gpuApps: '56752, 33116, [Not Found]\n',
      gpus: '0, 33130, 40960, 100\n',
    },
    verdict: 'nothing_to_reclaim',
    has: { gpu_driver: 0 },
    plan: [],
    says: ['33116 MiB of GPU memory that this box does not show (pid 56752)', 'open GPU devices: pid 5100 (python3)'],
  },
};

const shared: Record<string, CaseRow> = {
  C08: {
    box: {
      totalKiB: 16 * GiB,
      shmFiles: file('plasma_ab12', 5 * GiB),
      processes: [
        {
          ...{ pid: 5000, ppid: 900, comm: 'raylet', argv: ['raylet'], exe: '/x/ray/raylet/raylet', ticks: 5 },
          ...{ holds: ['/dev/shm/plasma_ab12'], shmemKiB: 5 * GiB, anonKiB: 6 * GiB },
        },
      ],
    },
    verdict: 'real_usage',
    has: { tmpfs_files: 5 * GiB },
    plan: [],
    says: ['held by pid 5000 (raylet)'],
  },
  'ray-2917': {
    box: { totalKiB: 16 * GiB, shmFiles: file('plasma_ab12', 5 * GiB) },
    verdict: 'lingering',
    has: { stale_shm: 5 * GiB },
    plan: ['remove_files /dev/shm/plasma_ab12', 'drop_caches 1'],
  },
  C10: {
    box: {
      files: figures({
        total: 32 * GiB,
        anon: 9 * GiB,
        shmem: 9.27 * GiB,
        file: 2 * GiB,
        missing: 3.5 * GiB,
        swap: [16 * GiB, 11.65 * GiB],
      }),
      df: `x\ntmpfs 15938355 ${Math.round(9.27 * GiB)} 6200000 61% /tmp\n`,
    },
    verdict: 'not_a_process',
    has: { tmpfs_files: 9.27 * GiB, swap: 11.65 * GiB },
    plan: [],
    says: ['files of the RAM disk at /tmp', 'stay in memory until they are deleted'],
    because: 'files of a RAM disk other than /dev/shm are their owners’: they are named and never removed by us',
  },
  C11: {
    box: {
      files: figures({
        total: 7746 * MiB,
        anon: 223 * MiB,
        shmem: 647 * MiB,
        file: 90 * MiB,
        available: 6598 * MiB,
        swap: [8165 * MiB, 24 * MiB],
      }),
      df: 'x\ntmpfs 3966000 665600 3300400 17% /mnt/ram\n',
    },
    verdict: 'nothing_to_reclaim',
    has: { tmpfs_files: 650 * MiB },
    accounts: { shared: 647 * MiB, page_cache: 90 * MiB },
    plan: [],
    because:
      '85 % of the box is available, so nobody is short; the files are listed, and no drop is offered for 90 MiB',
  },
  'earlyoom-20': {
    box: {
      files: figures({
        total: 32_359_008,
        anon: 10.5 * GiB,
        shmem: 13 * GiB,
        buffers: 228 * MiB,
        file: 2 * GiB,
        available: 6_309_220,
      }),
      df: `x\ntmpfs 16179504 ${13 * GiB} 2547760 84% /tmp\n`,
    },
    verdict: 'not_a_process',
    has: { tmpfs_files: 13 * GiB },
    plan: [],
    says: ['files in memory (tmpfs) 13 GiB', 'deleting those files does'],
  },
  'prrte-403-openmpi': {
    box: { shmFiles: file('open_mpi.000#', 4_194_312 / 1024, 8) },
    verdict: 'nothing_to_reclaim',
    has: { stale_shm: 32 * MiB },
    plan: [],
    because: '32 MiB are listed and not worth anybody’s approval',
  },
  'star-381-sysv': {
    box: {
      sysv: `0 65536 666 ${30 * 2 ** 30} 4242 4243 0 1001 1001 1001 1001 1 1 ${takenAtSeconds - 9000} ${30 * 2 ** 30} 0\n`,
      totalKiB: 128 * GiB,
    },
    verdict: 'lingering',
    has: { stale_sysv_shm: 30 * GiB },
    plan: ['ipcrm 65536', 'drop_caches 1'],
    says: ['STAR keeps its genome'],
  },
  'pytorch-1355-shm': {
    box: {
      shmFiles: file('torch_5100_1#', 883 * MiB),
      processes: [5100, 5101].map((pid) => ({
        pid,
        ppid: 3900,
        comm: 'python',
        argv: [],
        exe: null,
        state: 'Z',
        anonKiB: 0,
      })),
    },
    verdict: 'lingering',
    has: { stale_shm: 883 * MiB, zombie: 0 },
    plan: ['remove_files /dev/shm/torch_5100_10', 'drop_caches 1'],
  },
  'pytorch-17499-shm': {
    box: {
      totalKiB: 64 * GiB,
      shmFiles: file('torch_4000_#', 3 * GB, 8),
      processes: [shell, attended({ pid: 4000, anonKiB: 16 * GiB, shmemKiB: 20 * GiB, secondsOld: 100_000 })],
    },
    verdict: 'real_usage',
    has: { tmpfs_files: 24 * GB, live_job: 16 * GiB },
    plan: [],
    says: ['its name carries the pid of pid 4000 (python3), which is alive'],
  },
  'openresty-42-devzero': {
    box: {
      processes: [
        {
          ...{ pid: 3000, ppid: 1, uid: 33, comm: 'nginx', argv: ['nginx: worker process'], exe: '/usr/sbin/nginx' },
          ...{ shmemKiB: 42_044, cgroup: '0::/system.slice/nginx.service', holds: ['/dev/zero (deleted)'] },
        },
      ],
    },
    verdict: 'nothing_to_reclaim',
    lacks: ['stale_shm', 'tmpfs_files', 'orphaned_workers'],
    plan: [],
  },
  'systemd-9141-journal': {
    box: { df: 'x\ntmpfs 1000000 2508 997492 1% /run\n' },
    verdict: 'nothing_to_reclaim',
    lacks: ['tmpfs_files'],
    plan: [],
  },
  'pytorch-97432': {
    box: {
      totalKiB: 500 * GB,
      df: 'x\ntmpfs 244140625 0 244140625 0% /dev/shm\n',
      processes: [
        shell,
        attended({ pid: 4000, anonKiB: 20 * GB, shmemKiB: 100 * GB, holds: ['/dev/nvidia0'] }),
        ...range(128).map((i) =>
          attended({
            pid: 5000 + i,
            ppid: 4000,
            comm: 'pt_data_worker',
            anonKiB: Math.round(2.5 * GB),
            shmemKiB: 40 * MB,
          }),
        ),
      ].map((p) => ({ ...p, anonKiB: Math.round(p.anonKiB ?? 1024), shmemKiB: Math.round(p.shmemKiB ?? 0) })),
    },
    verdict: 'real_usage',
    has: { live_job: 340 * GB, pinned_shm: 100 * GB },
    plan: [],
    says: ['it comes back when the last process that maps it ends'],
  },
  'torchms-90': {
    box: { totalKiB: 64 * GiB, processes: [shell, attended({ pid: 4000, anonKiB: 6 * GiB, lockedKiB: 2 * GiB })] },
    verdict: 'nothing_to_reclaim',
    has: { live_job: 6 * GiB },
    plan: [],
    says: ['pid 4000 has locked 2 GiB in RAM'],
  },
  D15: {
    box: {
      files: {
        ...figures({
          total: 8 * GiB,
          anon: 7.5 * GiB,
          available: 485 * MiB,
          more: { Shmem: 32 * GiB, Cached: 2.6 * MiB },
        }),
        '/proc/mounts': 'proc /proc proc rw 0 0\nlxcfs /proc/meminfo fuse.lxcfs rw,nosuid 0 0\n',
      },
    },
    verdict: 'real_usage',
    lacks: ['pinned_shm', 'gpu_driver'],
    plan: [],
    says: ['figures of a container, mixed with those of its host (lxcfs)'],
    because: 'without its processes nothing else is known; `shared` counts for nothing',
  },
  D16: {
    box: {
      processes: [shell, attended({ pid: 4000, anonKiB: Math.round(363 * GB), lockedKiB: Math.round(363 * GB) })],
      files: figures({ total: 503 * GB, anon: 363 * GB, file: 20 * GB, mlocked: 363 * GB, available: 138 * GB }),
    },
    verdict: 'real_usage',
    has: { mlocked: 363 * GB, live_job: 363 * GB },
    plan: [],
    says: ['pid 4000 has locked 338 GiB in RAM', 'it comes back only when the program that locked it ends'],
  },
};

describe('public reports, as whole boxes', () => {
  it.each(Object.entries({ ...builds, ...orphans, ...gpus, ...shared }))('%s', (id, row) => {
    if (/^[A-H]\d\d/.test(id)) publicReport(id.slice(0, 3));
    else expect(caseOf(id)).toBeDefined();
    checkCase(row);
  });

  it('figures of one control group change nothing, whatever they say (D13, D14, E11, systemd-25271)', () => {
    const box: BoxSpec = { totalKiB: 78 * GiB, processes: [shell, attended({ pid: 4000, anonKiB: 2 * GiB })] };
    const groups = {
      '/sys/fs/cgroup/lxc/a/memory.current': `1800000000000\n`,
      '/sys/fs/cgroup/lxc/a/memory.stat': `anon ${0.7 * 2 ** 30}\nfile ${68.9 * 2 ** 30}\n`,
      '/sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes': '629145600\n',
      '/proc/cgroups': '#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t9\t90000\t1\n',
    };
    const { diagnosis } = think(makeBox({ ...box, files: groups }), defaultOptions);
    expect(diagnosis).toEqual(think(makeBox(box), defaultOptions).diagnosis);
    expect(diagnosis).toMatchObject({ verdict: 'nothing_to_reclaim', plan: null });
  });

  it('A15: the sizes in the table of the kernel are pages', () => {
    expect(reportOf(builds['A15']!.box)).not.toContain('cudafe++ with');
  });
});
