/** A made-up capture of a shared box with thousands of processes, consistent in itself and as long as real ones are. */
import type { Capture } from '../src/memory/contract.ts';
import { makeBox, type ProcSpec } from '../test/memory/box.ts';

const cuda = '/usr/local/cuda';
const GiB = 1024 * 1024;

/** What the host program sends of a crowd (small processes by their stat line only), or every file of everybody. */
export type CrowdedLook = 'as collected' | 'everything';

/** A tenth leftover compilers, a tenth data loaders of a live Slurm job, the rest small daemons. */
function processOf(i: number, look: CrowdedLook): ProcSpec {
  const pid = 10_000 + i;
  switch (i % 10) {
    case 0:
      return {
        pid,
        ppid: 1,
        comm: 'cicc',
        exe: `${cuda}/nvvm/bin/cicc`,
        argv: [
          `${cuda}/bin/../nvvm/bin/cicc`,
          '--c++17',
          ...Array.from({ length: 24 }, (_, n) => `--include=/tmp/pip-install-x1/flash-attn_0/csrc/include${n}`),
          `csrc/flash_attn/src/flash_bwd_hdim${i}.cu`,
        ],
        session: 9_000,
        pgrp: 9_000,
        anonKiB: 40 * 1024,
        cwd: '/tmp/pip-install-x1/flash-attn_0123456789abcdef0123456789abcdef (deleted)',
      };
    case 1:
      return {
        pid,
        ppid: 5_000,
        comm: 'pt_data_worker',
        argv: ['python3', 'train.py', '--config', 'configs/large.yaml', '--workers', '64'],
        exe: '/usr/bin/python3.11',
        uid: 1002,
        session: 4_990,
        pgrp: 5_000,
        anonKiB: 60 * 1024,
        shmemKiB: 2048,
        ticks: i % 20 === 1 ? 20 : 0,
        cgroup: '0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0',
        holds: ['/dev/nvidia0', '/dev/shm/torch_5000_1_0'],
      };
    default:
      return {
        pid,
        ppid: 1,
        comm: `daemon-${i % 40}`,
        argv: [`/usr/sbin/daemon-${i % 40}`, '--foreground', `--instance=${i}`],
        uid: 0,
        anonKiB: 900,
        fileKiB: 4096,
        cgroup: `0::/system.slice/daemon-${i % 40}.service`,
        ...(look === 'everything' ? {} : { without: ['status', 'cmdline', 'cgroup', 'links'], laterStat: null }),
      };
  }
}

/** The lines of a real status file that the engine passes over: on 128 cores they are most of it. */
const fillerHead =
  'FDSize:\t256\nGroups:\t4 24 27 30 46 100 118 1001 \nNStgid:\t1\nNSpgid:\t1\nNSsid:\t1\nKthread:\t0\n';
const fillerTail =
  'SigQ:\t0/2063015\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n' +
  'SigIgn:\t0000000001001000\nSigCgt:\t0000000180000002\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n' +
  'CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n' +
  'Seccomp_filters:\t0\nSpeculation_Store_Bypass:\tthread vulnerable\nSpeculationIndirectBranch:\tconditional enabled\n' +
  `Cpus_allowed:\t${Array(8).fill('ffffffff').join(',')}\nCpus_allowed_list:\t0-255\n` +
  `Mems_allowed:\t${Array(32).fill('00000000').join(',')}\nMems_allowed_list:\t0-7\n` +
  'voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n';

export function crowdedBox(processes: number, look: CrowdedLook): Capture {
  const job: ProcSpec = {
    pid: 5_000,
    ppid: 4_990,
    comm: 'python3',
    argv: ['python3', 'train.py', '--config', 'configs/large.yaml'],
    uid: 1002,
    session: 4_990,
    anonKiB: 80 * GiB,
    ticks: 90,
    cgroup: '0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0',
  };
  const stepd: ProcSpec = { pid: 4_990, ppid: 1, comm: 'slurmstepd', argv: ['slurmstepd: [4242.0]'], uid: 0 };
  const crowd = Array.from({ length: Math.max(0, processes - 7) }, (_, i) => processOf(i, look));
  const box = makeBox({
    processes: [stepd, job, ...crowd],
    slurm: '4242 bo RUNNING pretrain\n',
    shmFiles: [],
    totalKiB: 432 * GiB,
  });
  const files = Object.entries(box.files).map(([path, blob]): [string, Capture['files'][string]] => {
    if (!path.endsWith('/status') || typeof blob !== 'string') return [path, blob];
    return [path, `${blob.replace('NSpid:', `${fillerHead}NSpid:`)}${fillerTail}`];
  });
  return { ...box, files: Object.fromEntries(files) };
}
