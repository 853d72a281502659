/** Leftover builds: the case that started the project, and the builds that only look like it. */
import { describe, expect, it } from 'vitest';
import { findingSchema, stepSchema } from '../../../src/memory/contract.ts';
import { tellProcessStory } from '../../../src/memory/processes/story.ts';
import { defaultOptions, makeBox, type BoxSpec, type ProcSpec } from '../box.ts';

const GiB = 1024 * 1024;
const cuda = '/usr/local/cuda-12.4';

export function tell(spec: BoxSpec) {
  const story = tellProcessStory(makeBox(spec), defaultOptions);
  for (const finding of story.findings) findingSchema.parse(finding);
  for (const step of story.steps) stepSchema.parse({ id: 'x', ...step });
  return story;
}
const killed = (story: ReturnType<typeof tell>): number[] =>
  story.steps.flatMap((step) => (step.action === 'kill' ? step.targets.map((t) => t.pid) : []));

/** ninja and N nvcc with cicc below, all of a session (4000) that has ended. */
function tornBuild(n: number, change: Partial<ProcSpec> = {}): ProcSpec[] {
  const cwd = '/home/ana/flash-attention/build/temp.linux-x86_64-cpython-311';
  const base = { uid: 1001, session: 4000, pgrp: 4000, cwd, secondsOld: 66_000, ...change };
  const tree: ProcSpec[] = [
    {
      ...base,
      pid: 4100,
      ppid: 1,
      comm: 'ninja',
      argv: ['ninja', '-v', '-j', '64'],
      exe: '/usr/bin/ninja',
      anonKiB: 20_000,
    },
  ];
  for (let i = 0; i < n; i++) {
    const source = `/home/ana/flash-attention/csrc/flash_attn/src/flash_bwd_hdim${i}_bf16_sm80.cu`;
    tree.push(
      {
        ...base,
        pid: 4200 + i,
        ppid: 4100,
        comm: 'nvcc',
        argv: [`${cuda}/bin/nvcc`, '-c', source],
        exe: `${cuda}/bin/nvcc`,
        anonKiB: 3000,
      },
      {
        ...base,
        pid: 4300 + i,
        ppid: 4200 + i,
        comm: 'cicc',
        argv: [`${cuda}/nvvm/bin/cicc`, '--orig_src_file_name', source],
        exe: `${cuda}/nvvm/bin/cicc`,
        anonKiB: 4 * GiB,
      },
    );
  }
  return tree;
}

describe('a leftover build', () => {
  it('is one finding with its package, owner, age and bytes, and ninja is the first to go', () => {
    const story = tell({ processes: tornBuild(24) });
    const [finding] = story.findings;
    expect(finding?.class).toBe('leftover_build');
    expect(finding?.evidence[0]).toBe(
      '48 compiler processes of one build of flash-attn, started 02:34 UTC, 18 h ago, owner ana, parent gone',
    );
    expect(finding?.kiB).toBe(24 * (4 * GiB + 3000) + 20_000);
    expect(finding?.processes?.[0]?.comm).toBe('cicc');
    expect(killed(story)[0]).toBe(4100);
    expect(killed(story)).toHaveLength(49);
    const [step] = story.steps;
    expect(step?.expectedFreeKiB.low).toBeGreaterThan(0.94 * finding!.kiB);
    expect(step?.expectedFreeKiB.high).toBeLessThan(1.05 * finding!.kiB);
    expect(story.identities['4300:153400000']).toEqual({ uid: 1001, exe: `${cuda}/nvvm/bin/cicc` });
  });

  it('is found when every parent died and each compiler hangs below init', () => {
    const story = tell({
      processes: tornBuild(6)
        .filter((p) => p.comm === 'cicc')
        .map((p) => ({ ...p, ppid: 1 })),
    });
    expect(story.findings.map((f) => f.class)).toEqual(['leftover_build']);
    expect(killed(story)).toHaveLength(6);
  });

  it('is found on a box without systemd, under a subreaper, carried by node, python and sh', () => {
    const orphan = { uid: 0, session: 5000, pgrp: 5000, anonKiB: 300 * 1024, cgroup: '0::/' };
    const processes: ProcSpec[] = [
      {
        pid: 3000,
        ppid: 1,
        comm: 'demo-host',
        argv: ['node', 'demo.js'],
        exe: '/usr/bin/node',
        uid: 0,
        session: 3000,
        cgroup: '0::/',
      },
      { ...orphan, pid: 5001, ppid: 1, comm: 'MainThread', argv: ['cicc', '--hold'], exe: '/usr/bin/node' },
      { ...orphan, pid: 5002, ppid: 3000, comm: 'ptxas', argv: ['ptxas'], exe: '/usr/bin/python3.11' },
      { ...orphan, pid: 5003, ppid: 3000, comm: 'sleep', argv: ['cc1plus', '1000'], exe: '/usr/bin/sleep' },
      { ...orphan, pid: 5004, ppid: 1, comm: 'ninja', argv: ['ninja', '-j', '8'], exe: '/usr/bin/dash' },
      { ...orphan, pid: 5005, ppid: 1, comm: 'vim', argv: ['vim', 'flash_attn.cu'], exe: '/usr/bin/vim' },
      { ...orphan, pid: 5006, ppid: 1, comm: 'tail', argv: ['tail', '-f', 'build.log', 'nvcc'], exe: '/usr/bin/tail' },
      {
        ...orphan,
        pid: 5007,
        ppid: 1,
        comm: 'python3',
        argv: ['python3', 'serve.py', '--note', 'cicc'],
        exe: '/usr/bin/python3.11',
      },
    ];
    const story = tell({
      processes,
      init: 'process_api',
      sessions: '',
      omitCommands: ['sessions', 'users', 'slurm jobs', 'docker ps'],
    });
    expect(killed(story).sort()).toEqual([5001, 5002, 5003, 5004]);
  });

  const alive: [string, Partial<ProcSpec>, BoxSpec?][] = [
    ['has its shell above it', { ppid: 3999, session: 3999 }],
    ['sits in a terminal its group still owns', { tty: 34816, pgrp: 3999, session: 3999 }],
    [
      'runs in a container',
      { cgroup: `0::/system.slice/docker-${'ab12'.repeat(16)}.scope` },
      { docker: `${'ab12'.repeat(16)} builder\n` },
    ],
    [
      'runs in a Slurm job that is in the queue',
      { cgroup: '0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0' },
      { slurm: '77 ana RUNNING build\n' },
    ],
    [
      'runs in a Slurm job while squeue is silent',
      { cgroup: '0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0' },
      { slurm: null },
    ],
    ['is a service', { cgroup: '0::/system.slice/nightly-build.service' }],
    ['was stopped with ctrl-Z', { state: 'T' }],
  ];
  it.each(alive)('is not one that %s', (_, change, box = {}) => {
    const shell: ProcSpec = {
      pid: 3999,
      ppid: 900,
      comm: 'bash',
      argv: ['-bash'],
      uid: 1001,
      tty: 34816,
      foreground: 3999,
    };
    const tree = tornBuild(4, change).map((p) =>
      p.comm === 'ninja' ? { ...p, ppid: change.ppid ?? 1 } : { ...p, ppid: p.pid < 4300 ? 4100 : p.pid - 100 },
    );
    const story = tell({ ...box, processes: [shell, ...tree] });
    expect(killed(story)).toEqual([]);
    expect(story.findings.map((f) => [f.class, f.action])).toContainEqual(['live_job', 'ask_owner']);
    expect(story.liveKiB).toBeGreaterThan(16 * GiB);
  });

  it('is not one that somebody started with nohup and that gets on', () => {
    const tree = tornBuild(4, { ticks: 90 }).map((p) => ({ ...p, pgrp: 4100, cwd: '/home/ana/src/llvm/build' }));
    expect(killed(tell({ processes: tree }))).toEqual([]);
    expect(killed(tell({ processes: tree.map((p) => ({ ...p, ticks: 0 })) }))).toHaveLength(9);
  });

  it('is found when every process leads a session of its own, the idle uv and ninja beside their compilers included', () => {
    const cwd = '/tmp/demo-x (deleted)';
    const own = { ppid: 1, uid: 0, cgroup: '0::/', cwd, anonKiB: 100 * 1024, exe: '/usr/bin/node' };
    const processes: ProcSpec[] = [
      { ...own, pid: 5101, comm: 'uv', argv: ['uv', 'pip', 'install', 'flash-attn'] },
      { ...own, pid: 5102, comm: 'ninja', argv: ['ninja', '-v'] },
      { ...own, pid: 5103, comm: 'cicc', argv: ['cicc', 'flash_bwd_hdim64.cu'] },
      // A rewritten title: one string, and a name cut at 15 bytes.
      { ...own, pid: 5104, comm: 'ptxas -v -o x.c', argv: ['ptxas -v -o x.cubin flash_fwd_hdim64.ptx'] },
    ];
    for (const folder of [cwd, '/tmp/demo-x', '/']) {
      const story = tell({ processes: processes.map((p) => ({ ...p, cwd: folder })) });
      expect([...killed(story)].sort()).toEqual([5101, 5102, 5103, 5104]);
    }
    // The folder made for this build ties them together, whatever session each of them leads.
    expect(tell({ processes }).findings).toHaveLength(1);
    expect(tell({ processes }).findings[0]?.processes).toHaveLength(4);
    // Alone, an idle uv below init may wait for its download.
    expect(killed(tell({ processes: processes.slice(0, 2).map((p) => ({ ...p, cwd: '/' })) }))).toEqual([]);
  });

  it('in two folders of one owner is two builds, until a dead session ties them together', () => {
    const torn = (pid: number, session: number, package_: string): ProcSpec => ({
      ...{ pid, session, pgrp: session, ppid: 1, comm: 'cicc', argv: ['cicc'], exe: `${cuda}/nvvm/bin/cicc` },
      ...{ anonKiB: GiB, cwd: `/tmp/pip-install-x/${package_}/csrc/${pid}` },
    });
    const two = [torn(5101, 5101, 'xformers'), torn(5102, 5102, 'xformers'), torn(5103, 5103, 'vllm')];
    expect(tell({ processes: two }).findings.map((f) => f.processes?.length)).toEqual([2, 1]);
    expect(tell({ processes: two.map((p) => ({ ...p, session: 5000 })) }).findings).toHaveLength(1);
  });

  it('is found on a crowded box, where small processes show in the first look alone', () => {
    const crowd: ProcSpec[] = Array.from({ length: 500 }, (_, i) => ({
      pid: 20_000 + i,
      ppid: 900,
      comm: i === 0 ? 'cudafe++' : 'sleep',
      laterStat: null,
      without: ['status', 'cmdline', 'cgroup', 'links'],
    }));
    const story = tell({ processes: [...tornBuild(3), ...crowd] });
    expect(story.sighted).toBe(true);
    expect(killed(story)).toHaveLength(7);
    // A session leader too small to be followed is still there.
    const leader: ProcSpec = {
      pid: 4000,
      ppid: 900,
      comm: 'bash',
      laterStat: null,
      without: ['status', 'cmdline', 'cgroup', 'links'],
    };
    const attended = tornBuild(3, { tty: 34816 });
    expect(killed(tell({ processes: [...attended, leader, ...crowd] }))).toEqual([]);
  });
});
