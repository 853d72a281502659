/**
 * Makes whole, consistent captures from a few figures: every process of the box has its stat, status, cmdline, cgroup and
 * links in both looks, and meminfo adds up to what the processes hold.
 */
import type { Capture, CommandOutput } from '../../src/memory/contract.ts';

export interface ProcSpec {
  pid: number;
  ppid?: number;
  comm?: string;
  argv?: string[];
  /** null = the link could not be read. */
  exe?: string | null;
  cwd?: string;
  uid?: number;
  /** Session; its own pid when not said. */
  session?: number;
  /** Process group; the session when not said. */
  pgrp?: number;
  tty?: number;
  foreground?: number;
  state?: string;
  flags?: number;
  anonKiB?: number;
  fileKiB?: number;
  shmemKiB?: number;
  swapKiB?: number;
  lockedKiB?: number;
  cgroup?: string;
  secondsOld?: number;
  startTime?: number;
  /** CPU ticks used in the one second between the looks. */
  ticks?: number;
  systemTicks?: number;
  threads?: number;
  namespacePids?: number[];
  rollup?: { pssAnonKiB: number; privateKiB: number };
  holds?: string[];
  wchan?: string;
  /** Replaces what the second look saw; null = gone by then. */
  laterStat?: string | null;
  /** Leaves single files out. */
  without?: ('stat' | 'status' | 'cmdline' | 'cgroup' | 'links')[];
}

export interface BoxSpec {
  processes?: ProcSpec[];
  totalKiB?: number;
  /** Unix users beside root, ana (1001), bo (1002) and chen (1003). */
  users?: Record<number, string>;
  meminfo?: Record<string, number>;
  sessions?: string;
  slurm?: string | null;
  docker?: string | null;
  gpuApps?: string | CommandOutput;
  gpus?: string;
  shmFiles?: { dev: number; ino: number; uid: number; bytes: number; blocksKiB: number; mtime: number; path: string }[];
  df?: string;
  sysv?: string;
  privileged?: boolean;
  mounts?: string;
  windowSeconds?: number;
  /** pid 1 is this program; `systemd` when not said. */
  init?: string;
  omitCommands?: string[];
  /** Any other files of the box, over those made here. */
  files?: Record<string, string>;
  /** Any other commands and what they print, over those made here. */
  commands?: Record<string, string>;
}

export const uptimeSeconds = 1_600_000;
export const takenAt = '2026-11-30T20:54:00Z';
export const takenAtSeconds = Date.parse(takenAt) / 1000;

export function statLine(p: ProcSpec, ticksMore = 0): string {
  const session = p.session ?? p.pid;
  const start = p.startTime ?? Math.round((uptimeSeconds - (p.secondsOld ?? 3600)) * 100);
  const vsizeBytes = ((p.anonKiB ?? 0) + 900_000) * 1024;
  const rss = Math.round(((p.anonKiB ?? 0) + (p.fileKiB ?? 0) + (p.shmemKiB ?? 0)) / 4);
  const user = 100 + ticksMore - (ticksMore > 0 ? (p.systemTicks ?? 0) : 0);
  const system = 50 + (ticksMore > 0 ? (p.systemTicks ?? 0) : 0);
  return (
    `${p.pid} (${p.comm ?? 'python'}) ${p.state ?? 'S'} ${p.ppid ?? 1} ${p.pgrp ?? session} ${session} ${p.tty ?? 0} ` +
    `${p.foreground ?? -1} ${p.flags ?? 4194304} 10 0 0 0 ${user} ${system} 0 0 20 0 ${p.threads ?? 1} 0 ${start} ` +
    `${vsizeBytes} ${rss} 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n`
  );
}

function statusText(p: ProcSpec): string {
  const uid = p.uid ?? 1001;
  const name = (p.comm ?? 'python').replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  const anon = p.anonKiB ?? 1024;
  const rss = anon + (p.fileKiB ?? 0) + (p.shmemKiB ?? 0);
  const kernel = ((p.flags ?? 0) & 0x200000) !== 0;
  const memory = kernel
    ? ''
    : `VmSize:\t${anon + 900_000} kB\nVmLck:\t${p.lockedKiB ?? 0} kB\nVmPin:\t0 kB\nVmRSS:\t${rss} kB\nRssAnon:\t${anon} kB\n` +
      `RssFile:\t${p.fileKiB ?? 0} kB\nRssShmem:\t${p.shmemKiB ?? 0} kB\nVmPTE:\t${Math.ceil(rss / 512) * 4} kB\n` +
      `VmSwap:\t${p.swapKiB ?? 0} kB\nHugetlbPages:\t0 kB\n`;
  return (
    `Name:\t${name}\nUmask:\t0022\nState:\t${p.state ?? 'S'} (sleeping)\nTgid:\t${p.pid}\nPid:\t${p.pid}\nPPid:\t${p.ppid ?? 1}\n` +
    `Uid:\t${uid}\t${uid}\t${uid}\t${uid}\nNSpid:\t${[p.pid, ...(p.namespacePids ?? [])].join('\t')}\n${memory}Threads:\t${p.threads ?? 1}\n`
  );
}

const ground = (init: string): ProcSpec[] => [
  {
    pid: 1,
    ppid: 0,
    comm: init,
    argv: ['/sbin/init'],
    exe: `/usr/lib/systemd/${init}`,
    uid: 0,
    anonKiB: 6144,
    secondsOld: 1_599_960,
    cgroup: '0::/init.scope',
  },
  {
    pid: 2,
    ppid: 0,
    comm: 'kthreadd',
    argv: [],
    exe: null,
    uid: 0,
    flags: 0x208040,
    secondsOld: 1_599_960,
    cgroup: '0::/',
  },
  {
    pid: 900,
    comm: 'sshd',
    argv: ['/usr/sbin/sshd', '-D'],
    exe: '/usr/sbin/sshd',
    uid: 0,
    secondsOld: 1_599_000,
    cgroup: '0::/system.slice/ssh.service',
  },
  {
    pid: 1990,
    ppid: 900,
    comm: 'sshd',
    argv: ['sshd: reclaim@notty'],
    exe: '/usr/sbin/sshd',
    uid: 990,
    secondsOld: 5,
    cgroup: '0::/user.slice/user-990.slice/session-9001.scope',
  },
  {
    pid: 1991,
    ppid: 1990,
    comm: 'sh',
    argv: ['sh', '-s'],
    exe: '/usr/bin/dash',
    uid: 0,
    secondsOld: 4,
    cgroup: '0::/user.slice/user-990.slice/session-9001.scope',
  },
];
const collectorPids = [1991, 1990, 900, 1];

/** The ground processes come with every box; a spec of the same pid takes their place. */
export function makeBox(spec: BoxSpec = {}): Capture {
  const own = spec.processes ?? [];
  const taken = new Set(own.map((p) => p.pid));
  const all = [...ground(spec.init ?? 'systemd').filter((p) => !taken.has(p.pid)), ...own];
  const files: Capture['files'] = {};
  const later: Capture['later'] = {};
  const links: string[] = [];
  const holders: string[] = [];
  for (const p of all) {
    const without = new Set(p.without ?? []);
    const at = `/proc/${p.pid}`;
    if (!without.has('stat')) {
      files[`${at}/stat`] = statLine(p);
      if (p.laterStat === undefined) later[`${at}/stat`] = statLine(p, p.ticks ?? 0);
      else if (p.laterStat !== null) later[`${at}/stat`] = p.laterStat;
    }
    if (!without.has('status')) files[`${at}/status`] = statusText(p);
    if (!without.has('cmdline'))
      files[`${at}/cmdline`] = (p.argv ?? [p.comm ?? 'python']).map((arg) => `${arg}\0`).join('');
    if (!without.has('cgroup')) files[`${at}/cgroup`] = `${p.cgroup ?? '0::/system.slice/ssh.service'}\n`;
    if (p.wchan !== undefined) files[`${at}/wchan`] = p.wchan;
    if (p.rollup !== undefined) {
      files[`${at}/smaps_rollup`] =
        `00400000-7ffd [rollup]\nRss: 1 kB\nPss_Anon: ${p.rollup.pssAnonKiB} kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: ${p.rollup.privateKiB} kB\n`;
    }
    const exe = p.exe === undefined ? `/usr/bin/${(p.comm ?? 'python').replaceAll('/', '_')}` : p.exe;
    if (exe !== null && !without.has('links')) links.push(`${p.pid} exe ${exe}\0`);
    if (!without.has('links')) links.push(`${p.pid} cwd ${p.cwd ?? '/'}\0`);
    for (const target of p.holds ?? []) holders.push(`${p.pid} ${target}\0`);
  }
  files['/proc/meminfo'] = later['/proc/meminfo'] = meminfoText(spec, all);
  files['/proc/uptime'] = `${uptimeSeconds.toFixed(2)} 1000.00\n`;
  files['/proc/sys/kernel/random/boot_id'] = '741839f3-46d6-4812-aae3-8ee76a96fd12\n';
  files['/proc/mounts'] = spec.mounts ?? 'proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n';
  files['/proc/sysvipc/shm'] =
    '       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n' +
    (spec.sysv ?? '');
  Object.assign(files, spec.files);
  if (spec.files?.['/proc/meminfo'] !== undefined) later['/proc/meminfo'] = spec.files['/proc/meminfo'];
  return {
    capture: 1,
    host: 'gpu-box-3',
    takenAt,
    privileged: spec.privileged ?? true,
    windowSeconds: spec.windowSeconds ?? 1,
    collectorPids,
    files,
    later: spec.windowSeconds === 0 ? {} : later,
    commands: commandsOf(spec, links, holders),
  };
}

function meminfoText(spec: BoxSpec, all: readonly ProcSpec[]): string {
  const total = spec.totalKiB ?? 452_984_832;
  const anon = all.reduce((n, p) => n + ((p.flags ?? 0) & 0x200000 ? 0 : (p.anonKiB ?? 1024)), 0);
  const shmem =
    (spec.shmFiles ?? []).reduce((n, f) => n + f.blocksKiB, 0) + Math.max(0, ...all.map((p) => p.shmemKiB ?? 0));
  const file = 2_000_000;
  const free = Math.max(100_000, total - anon - shmem - file - 400_000);
  const figures: Record<string, number> = {
    MemTotal: total,
    MemFree: free,
    MemAvailable: free + file - 200_000,
    Buffers: 100_000,
    Cached: file - 100_000 + shmem,
    SwapCached: 0,
    'Active(anon)': 0,
    'Inactive(anon)': anon + shmem,
    'Active(file)': file / 2,
    'Inactive(file)': file / 2,
    Unevictable: 0,
    Mlocked: 0,
    SwapTotal: 0,
    SwapFree: 0,
    Dirty: 100,
    Writeback: 0,
    AnonPages: anon,
    Mapped: 50_000,
    Shmem: shmem,
    KReclaimable: 100_000,
    Slab: 300_000,
    SReclaimable: 100_000,
    SUnreclaim: 200_000,
    KernelStack: 10_000,
    PageTables: 20_000,
    Percpu: 20_000,
    VmallocUsed: 50_000,
    ...spec.meminfo,
  };
  return Object.entries(figures)
    .map(([name, n]) => `${`${name}:`.padEnd(16)}${String(Math.round(n)).padStart(12)} kB\n`)
    .join('');
}

function commandsOf(spec: BoxSpec, links: string[], holders: string[]): Capture['commands'] {
  const said = (stdout: string | null): CommandOutput =>
    stdout === null ? { status: 127, stdout: '' } : { status: 0, stdout };
  const shm = (spec.shmFiles ?? []).map(
    (f) => `${f.dev}:${f.ino} ${f.uid} ${f.bytes} ${f.blocksKiB} ${f.mtime} ${f.path}\0`,
  );
  const users = { 0: 'root', 990: 'reclaim', 1001: 'ana', 1002: 'bo', 1003: 'chen', ...spec.users };
  const used = (spec.shmFiles ?? []).reduce((n, f) => n + f.blocksKiB, 0);
  const commands: Capture['commands'] = {
    links: said(links.join('')),
    'fd holders': said(holders.join('')),
    users: said(
      Object.entries(users)
        .map(([uid, name]) => `${uid} ${name}\n`)
        .join(''),
    ),
    sessions: said(spec.sessions ?? '   9001  990 reclaim      -     -      active  no   -\n'),
    'slurm jobs': said(spec.slurm === undefined ? null : spec.slurm),
    'docker ps': said(spec.docker === undefined ? null : spec.docker),
    'nvidia-smi compute-apps': typeof spec.gpuApps === 'object' ? spec.gpuApps : said(spec.gpuApps ?? ''),
    'nvidia-smi gpus': said(spec.gpus ?? ''),
    'shm files': said(shm.join('')),
    'df tmpfs': said(
      spec.df ??
        `Filesystem     1K-blocks     Used Available Use% Mounted on\ntmpfs 200000000 ${used} ${200_000_000 - used} 1% /dev/shm\n`,
    ),
    'dmesg oom': said(''),
    ...Object.fromEntries(Object.entries(spec.commands ?? {}).map(([name, stdout]) => [name, said(stdout)])),
  };
  return Object.fromEntries(Object.entries(commands).filter(([name]) => !(spec.omitCommands ?? []).includes(name)));
}

export const defaultOptions = { protect: [], minAgeSeconds: { process: 0, shm: 300, sysv: 300 }, kept: [] };
