/** collect: everything of the capture contract, from this very machine, whatever its processes are called. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureSchema, type Blob, type Capture } from '../../src/memory/contract.ts';
import { readHostProgram } from '../../src/ssh/host-program.ts';
import { bootId, Crowd, realBox, shells } from './real-box.ts';

const crowd = new Crowd();
afterAll(() => {
  crowd.end();
});

const plain = (blob: Blob | undefined): string => (typeof blob === 'string' ? blob : '');
const text = (capture: Capture, path: string) => plain(capture.files[path]);
const stdout = (capture: Capture, name: string) => plain(capture.commands[name]!.stdout);

const contractCommands = [
  'free -k',
  'nvidia-smi compute-apps',
  'nvidia-smi gpus',
  'df tmpfs',
  'shm files',
  'fd holders',
  'links',
  'sessions',
  'slurm jobs',
  'docker ps',
  'users',
  'dmesg oom',
];

describe.each(shells)('collect under %s', (shell) => {
  it('answers with a whole capture', async () => {
    const sleeper = await crowd.named('sleeper');
    const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0.5 });
    expect(captureSchema.safeParse(capture).success).toBe(true);
    expect(Object.keys(capture.commands)).toEqual(expect.arrayContaining(contractCommands));
    expect(text(capture, '/proc/meminfo')).toMatch(/^MemTotal: +\d+ kB\n/);
    expect(text(capture, '/proc/sys/kernel/random/boot_id').trim()).toBe(bootId);
    expect(stdout(capture, 'free -k')).toMatch(/^Mem:/m);
    for (const file of ['stat', 'status', 'cmdline', 'cgroup']) {
      expect(text(capture, `/proc/${sleeper.pid}/${file}`)).not.toBe('');
    }
    expect(capture.later[`/proc/${sleeper.pid}/stat`]).toContain(`${sleeper.pid} (sleeper) S`);
    expect(capture.windowSeconds).toBeGreaterThanOrEqual(0.5);
    expect(stdout(capture, 'links').split('\0')).toContain(`${sleeper.pid} exe ${python()}`);
    expect(stdout(capture, 'users')).toMatch(/^0 root$/m);
    expect(capture.commands['nvidia-smi gpus']!.status).toBe(127);
  });

  it('names its own chain up to pid 1, so that it is not taken for work', async () => {
    const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
    expect(capture.collectorPids).toContain(process.pid);
    expect(capture.collectorPids.at(-1)).toBe(1);
    expect(capture.later).toEqual({});
  });

  it('keeps names and arguments as they are: newlines, forged frames, no UTF-8', async () => {
    const odd = await crowd.named('x) R 0\n1 (y', `import sys`);
    const args = await crowd.start('/usr/bin/python3', [
      '-c',
      "print('up',flush=True)\nimport sys\nsys.stdin.read()",
      'a\nend 0\n',
      '',
      'ü',
    ]);
    const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
    expect(text(capture, `/proc/${odd.pid}/stat`)).toMatch(/^\d+ \(x\) R 0\n1 \(y\) S /);
    expect(text(capture, '/proc/1/stat')).not.toContain('(y)');
    expect(text(capture, `/proc/${args.pid}/cmdline`).split('\0').slice(3)).toEqual(['a\nend 0\n', '', 'ü', '']);
    const raw = await crowd.named('r', "open('/proc/self/comm','wb').write(b'\\xff\\xfe')");
    const again = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
    const stat = again.files[`/proc/${raw.pid}/stat`];
    expect(typeof stat === 'object' && Buffer.from(stat.base64, 'base64').includes(Buffer.from([0xff, 0xfe]))).toBe(
      true,
    );
  });

  it('lists shared memory with who holds it, open or only mapped', async () => {
    const path = `/dev/shm/reclaim-test ${process.pid}`;
    writeFileSync(path, Buffer.alloc(2 << 20));
    const { dev, ino, uid } = statSync(path);
    const fd = openSync(path, 'r');
    try {
      const mapper = await crowd.named(
        'mapper',
        `import mmap,os\nf=os.open(${JSON.stringify(path)},os.O_RDWR)\nm=mmap.mmap(f,1<<20)\nm[:]=b'x'*(1<<20)\nos.close(f)`,
      );
      const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
      const files = stdout(capture, 'shm files').split('\0');
      expect(files.find((f) => f.endsWith(path))).toMatch(
        new RegExp(`^${dev}:${ino} ${uid} ${2 << 20} 2048 \\d{10} ${path}$`),
      );
      const holders = stdout(capture, 'fd holders').split('\0');
      expect(holders).toContain(`${process.pid} ${path}`);
      expect(holders).toContain(`${mapper.pid} ${path}`);
    } finally {
      closeSync(fd);
      rmSync(path);
    }
  });

  it('reads only the cheap figures when asked for memory', async () => {
    const capture = await realBox(shell).collect({ scope: 'memory' });
    expect(Object.keys(capture.files)).toEqual(
      expect.arrayContaining(['/proc/meminfo', '/proc/vmstat', '/proc/zoneinfo', '/proc/sys/kernel/random/boot_id']),
    );
    expect(Object.keys(capture.files).filter((path) => /\/\d+\//.test(path))).toEqual([]);
    expect(Object.keys(capture.commands)).toEqual(['free -k', 'df tmpfs']);
    expect(capture.commands['df tmpfs']!.status).toBe(0);
  });
});

// All at once: they only wait.
describe('collect', () => {
  it.concurrent.each(shells)(
    'does not wait for an nvidia-smi that hangs, and says so, under %s',
    { timeout: 60_000 },
    async (shell) => {
      // In a mount namespace of its own, where /usr/local/bin holds nothing but a hanging nvidia-smi.
      const around = `exec unshare -m sh -c 'mount -t tmpfs none /usr/local/bin && printf "#!/bin/sh\\ntrap \\"\\" TERM\\nwhile :; do sleep 1; done\\n" >/usr/local/bin/nvidia-smi && chmod 755 /usr/local/bin/nvidia-smi && exec "$@"' sh "$@"`;
      const startedAt = performance.now();
      const capture = await realBox(shell, around).collect({ scope: 'full', windowSeconds: 0 });
      expect(performance.now() - startedAt).toBeLessThan(25_000);
      expect(capture.commands['nvidia-smi compute-apps']).toEqual({ status: null, stdout: '', timedOut: true });
      expect(capture.commands.users!.status).toBe(0);
    },
  );
});

/** What /proc/PID/exe of the system's python3 points at. */
const python = () => realpathSync('/usr/bin/python3');

describe('a box with many processes', () => {
  let made = 0;
  let many: Awaited<ReturnType<Crowd['start']>>;
  beforeAll(async () => {
    const script = 'for i in $(seq 500); do sleep 300 & done; echo up; read -r end; kill $(jobs -p)';
    many = await crowd.start('/bin/bash', ['-c', script]);
  });
  afterAll(async () => {
    const ended = once(many, 'exit');
    many.stdin!.end('\n');
    await ended;
  });

  it('reads the details of the big ones and the line of every one', { timeout: 60_000 }, async () => {
    const capture = await realBox('dash').collect({ scope: 'full', windowSeconds: 0 });
    const sleeping = Object.entries(capture.files).filter(
      ([path, f]) => /^\/proc\/\d+\/stat$/.test(path) && plain(f).includes('(sleep)'),
    );
    expect(sleeping.length).toBeGreaterThanOrEqual(500);
    // This process is big; a sleeping `sleep` is not worth a second file.
    expect(capture.files[`/proc/${process.pid}/smaps_rollup`]).toContain('Pss:');
    expect(capture.files[`/proc/${process.pid}/status`]).toContain('RssAnon:');
    expect(capture.files[sleeping[0]![0].replace('/stat', '/status')]).toBeUndefined();
  });

  /** A small process that holds the file, as none that is looked into for its own sake. */
  const holding = {
    open: (path: string) => crowd.start('/bin/sh', ['-c', 'exec 7<"$0"; echo up; exec sleep 300', path]),
    mapped: (path: string) => crowd.start('/bin/sh', ['-c', 'echo up; export LD_PRELOAD="$0"; exec sleep 300', path]),
  };
  const library = () =>
    realpathSync(/\/\S*libc\.so\S*/.exec(execFileSync('ldd', [realpathSync('/bin/sleep')], { encoding: 'utf8' }))![0]);

  // Without perl the kernel cannot be asked who holds a file, so every process is looked into.
  it.each([
    ['open', 'with perl'],
    ['mapped', 'with perl'],
    ['open', 'without perl'],
    ['mapped', 'without perl'],
  ] as const)('finds a small holder of a large file (%s, %s)', { timeout: 60_000 }, async (how, tools) => {
    const path = `/dev/shm/reclaim-test-${process.pid}-${(made += 1)}.so`;
    writeFileSync(path, Buffer.concat([readFileSync(library()), Buffer.alloc(64 << 20)]), { mode: 0o755 });
    const program = readHostProgram();
    const lame = program.replace('perl -e "$NOBODY_PERL"', 'false');
    expect(lame).not.toBe(program);
    const look = () =>
      realBox('dash', 'exec "$@"', tools === 'with perl' ? program : lame).collect({ scope: 'full', windowSeconds: 0 });
    try {
      expect(stdout(await look(), 'fd holders')).not.toContain(path);
      const holder = await holding[how](path);
      await expect.poll(() => readlinkSync(`/proc/${holder.pid}/exe`)).toMatch(/sleep|coreutils|busybox/);
      const fds = readdirSync(`/proc/${holder.pid}/fd`).map((fd) => readlinkSync(`/proc/${holder.pid}/fd/${fd}`));
      expect(fds.includes(path)).toBe(how === 'open');
      const capture = await look();
      expect(stdout(capture, 'fd holders').split('\0')).toContain(`${holder.pid} ${path}`);
      expect(capture.files[`/proc/${holder.pid}/status`]).toBeUndefined();
    } finally {
      rmSync(path);
    }
  });
});
