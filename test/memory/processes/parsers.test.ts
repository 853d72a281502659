/** Parsers of what a box prints, fed with what a box may print. */
import { describe, expect, it } from 'vitest';
import { parseCgroup } from '../../../src/memory/processes/cgroup.ts';
import { parseComputeApps } from '../../../src/memory/processes/gpu.ts';
import {
  parseDocker,
  parseHolders,
  parseLinks,
  parseSessions,
  parseSlurm,
} from '../../../src/memory/processes/listings.ts';
import { parseDf, parseShmFiles, parseSysv } from '../../../src/memory/processes/shared.ts';
import { parseStat } from '../../../src/memory/processes/stat.ts';
import { parseRollup, parseStatus } from '../../../src/memory/processes/status.ts';
import { parseCmdline } from '../../../src/memory/processes/table.ts';
import { statLine } from '../box.ts';
import { reportOf } from '../report-cases.ts';

const said = (text: string) => ({ answered: true, timedOut: false, text });
const silent = { answered: false, timedOut: false, text: '' };

describe('parseStat', () => {
  it.each([
    'sh',
    'a) R 1 1',
    'a) S 1\nb (x',
    ') R 1',
    '((',
    '))',
    'a b  c',
    '',
    'wandb-service(2',
    'tmux: client',
    '\u{1f600}\ufffd',
  ])('takes the name %j for what it is', (comm) => {
    const stat = parseStat(
      statLine({ pid: 77, ppid: 5, comm, session: 70, pgrp: 71, startTime: 123, tty: 34816, foreground: 71 }),
    );
    expect(stat).toMatchObject({
      pid: 77,
      comm,
      state: 'S',
      ppid: 5,
      session: 70,
      pgrp: 71,
      startTime: 123,
      foreground: 71,
    });
  });

  it('reads the cut lines of the public reports without inventing an identity', () => {
    const tmux = parseStat(reportOf('F11').input['stat'] as string);
    expect(tmux).toMatchObject({ comm: 'tmux: client', state: 'S', ppid: 4676, startTime: null, rssPages: null });
    const sleep = parseStat(reportOf('F13').input['stat'] as string);
    expect(sleep).toMatchObject({ comm: 'sleep (2) .sh', state: 'S', ppid: 75750, startTime: null });
  });

  it.each([
    '',
    'x',
    '12',
    '12 (a',
    '12 a) S 1',
    '(a) S 1',
    '-1 (a) S 1',
    '0 (a) S 1',
    '1.5 (a) S 1',
    '12 (a) ',
    '12 (a) S',
    '12 (a) S -4',
    '12 (a) SS 1',
  ])('refuses %j', (text) => {
    expect(parseStat(text)).toBeNull();
  });
});

describe('parseStatus', () => {
  it('reads by name, whatever order and whatever is missing', () => {
    const status = parseStatus('Name:\tx\\nUid:\t0\nUid:\t1001\t1002\t1001\t1001\nVmRSS:\t 30 kB\nRssAnon:\t 10 kB\n');
    expect(status).toMatchObject({ uid: 1002, rssKiB: 30, rssAnonKiB: 10, rssShmemKiB: null, swapKiB: null });
    expect(parseStatus('')).toMatchObject({ uid: null, rssAnonKiB: null, namespacePids: [] });
    expect(parseStatus('RssAnon:\t99999999999999999999 kB\nVmSwap:\t-3 kB\n')).toMatchObject({
      rssAnonKiB: null,
      swapKiB: null,
    });
    expect(parseRollup('Pss:  9 kB\nPss_Anon:  7 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 2 kB\n')).toEqual({
      pssAnonKiB: 7,
      privateKiB: 3,
    });
  });
});

describe('parseCmdline', () => {
  it.each([
    ['', []],
    ['\0\0\0', []],
    ['ninja\0-j\x0064\0', ['ninja', '-j', '64']],
    ['no nul at the end', ['no nul at the end']],
    ['a\0\0b\0', ['a', '', 'b']],
    ['nginx: master process /usr/sbin/nginx\0\0\0\0', ['nginx: master process /usr/sbin/nginx']],
  ])('reads %j', (text, argv) => {
    expect(parseCmdline(text)).toEqual(argv);
  });
});

describe('parseCgroup', () => {
  const id = 'ab12'.repeat(16);
  it.each([
    ['0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0', { kind: 'slurm', job: '77' }],
    ['9:memory:/slurm/uid_1001/job_42/step_batch\n0::/', { kind: 'slurm', job: '42' }],
    [`0::/system.slice/docker-${id}.scope`, { kind: 'container', runtime: 'docker', id }],
    [`4:memory:/docker/${id}`, { kind: 'container', runtime: 'docker', id }],
    [`0::/docker/${'cd34'.repeat(16)}/docker/${id}`, { kind: 'container', runtime: 'docker', id }],
    [`0::/machine.slice/libpod-${id}.scope/container`, { kind: 'container', runtime: 'podman', id }],
    [
      `0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-${id}.scope`,
      { kind: 'container', runtime: 'kubernetes', id },
    ],
    [`0::/kubepods/burstable/pod0a1b/${id}`, { kind: 'container', runtime: 'kubernetes', id }],
    ['0::/lxc.payload.web/system.slice/x.service', { kind: 'container', runtime: 'machine', id: 'web' }],
    ['0::/system.slice/ollama.service', { kind: 'unit', name: 'ollama.service', byUser: false }],
    [
      '0::/user.slice/user-1001.slice/user@1001.service/app.slice/train.service',
      { kind: 'unit', name: 'train.service', byUser: true },
    ],
    [
      '0::/user.slice/user-1001.slice/user@1001.service/app.slice/run-r1.scope',
      { kind: 'unit', name: 'run-r1.scope', byUser: true },
    ],
    ['0::/user.slice/user-1001.slice/session-12.scope', { kind: 'login', session: '12' }],
    ['0::/user.slice/user-1001.slice/user@1001.service/init.scope', { kind: 'none' }],
    ['0::/system.slice/ssh.service', { kind: 'none' }],
    ['0::/user.slice/user-1001.slice/user@1001.service/tmux-spawn-ab.scope', { kind: 'none' }],
    ['0::/system.slice/sshd@3-10.0.0.1:22.service', { kind: 'none' }],
    ['0::/', { kind: 'none' }],
    ['', { kind: 'none' }],
    ['garbage', { kind: 'none' }],
  ])('reads %j', (text, keeper) => {
    expect(parseCgroup(text)).toEqual(keeper);
  });
});

describe('listings', () => {
  it('joins links with blanks, newlines and (deleted) in them', () => {
    const links = parseLinks(
      said('7 exe /opt/my app/x (deleted)\x007 cwd /tmp/a\n8 exe /bin/su\0x exe /a\x009 exe \x0010 exe /cut'),
    );
    expect(links.exe.get(7)).toEqual({ path: '/opt/my app/x', deleted: true });
    expect(links.cwd.get(7)).toEqual({ path: '/tmp/a\n8 exe /bin/su', deleted: false });
    expect([...links.exe.keys()]).toEqual([7]);
  });
  it('lists holders', () => {
    expect(parseHolders(said('7 /dev/nvidia0\x007 /dev/shm/a b\x00-1 /x\0'))).toEqual(
      new Map([[7, ['/dev/nvidia0', '/dev/shm/a b']]]),
    );
  });
  it('reads sessions of old and new loginctl, and knows silence from none', () => {
    expect(parseSessions(said('  2 1001 ana  -  pts/0 closing no -\n 3 1002 bo seat0 tty1\n'))).toEqual(
      new Map([
        ['2', 'closing'],
        ['3', 'listed'],
      ]),
    );
    expect(parseSessions(said(''))).toEqual(new Map());
    expect(parseSessions(silent)).toBeNull();
  });
  it('reads squeue lines with blanks in the name', () => {
    expect(parseSlurm(said('77 ana RUNNING my job\n78_3 bo COMPLETING x\nslurm_load_jobs error\n'))).toEqual(
      new Map([
        ['77', { user: 'ana', state: 'RUNNING', name: 'my job' }],
        ['78', { user: 'bo', state: 'COMPLETING', name: 'x' }],
      ]),
    );
    expect(parseSlurm(silent)).toBeNull();
  });
  it('reads docker ps', () => {
    expect(parseDocker(said('abcdef012345 web\nnot an id x\n'))).toEqual([{ id: 'abcdef012345', name: 'web' }]);
  });
});

describe('parseComputeApps', () => {
  it.each<[string, [number, number | null][]]>([
    [
      '[Not Supported], 100, x\n2036, [N/A], /opt/python3, extra, commas\n1, 19135, /sbin/init\n-5, 12, y\n\n',
      [
        [2036, null],
        [1, 19135],
      ],
    ],
    ['12, 100 MiB, a\n12, 50, a\n', [[12, 150]]],
    ['No devices were found\n', []],
    ['31794, 5371, Unknown Error\n', [[31794, 5371]]],
    ['99999999999999999999, 1, x\n0, 1, y\n 7 ,\n', [[7, null]]],
  ])('reads %j', (text, rows) => {
    expect([...parseComputeApps(text).byPid]).toEqual(rows);
  });
});

describe('shared memory', () => {
  it('reads records whose path holds anything but NUL, and drops what it could not pin', () => {
    const text =
      '25:7 1001 10 4 1700000000 /dev/shm/a b\n25:8 0 1 1 1 /etc\x0019:x 0 1 1 1 /dev/shm/x\x0025:9 0 5 8 1700000000.25 /dev/shm/c\x0025:1 0 1 1 1 /cut';
    expect(parseShmFiles(text).map((f) => [f.ino, f.kiB, f.mtime, f.path])).toEqual([
      [7, 4, 1_700_000_000, '/dev/shm/a b\n25:8 0 1 1 1 /etc'],
      [9, 8, 1_700_000_000, '/dev/shm/c'],
    ]);
  });
  it('reads SysV segments by the heading of this kernel', () => {
    const text =
      '       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n' +
      '         0         65  1600            1073741824  4242  4243      0  1001  1001  1001  1001 1700000000 1700000005 1690000000             536870912                     0\n bad line\n';
    expect(parseSysv(text)).toEqual([
      {
        shmid: 65,
        bytes: 1_073_741_824,
        creatorPid: 4242,
        lastPid: 4243,
        attached: 0,
        uid: 1001,
        touched: 1_700_000_005,
        condemned: true,
        rssKiB: 524_288,
      },
    ]);
    expect(parseSysv('')).toEqual([]);
  });
  it('reads df, mounts with blanks and dashes for percent included', () => {
    expect(
      parseDf(
        'Filesystem 1K-blocks Used Available Use% Mounted on\ntmpfs 100 40 60 40% /dev/shm\nshm 64 0 64 - /var/lib/a b/shm\ndf: /x: Permission denied\n',
      ),
    ).toEqual([
      { mount: '/dev/shm', usedKiB: 40 },
      { mount: '/var/lib/a b/shm', usedKiB: 0 },
    ]);
  });
});
