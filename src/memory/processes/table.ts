/**
 * One row per process, joined over both looks by (pid, starttime): what exited or was replaced between them is gone, what
 * came up between them is there but was not seen well enough to judge.
 */
import type { Capture } from '../contract.ts';
import { parseCgroup, type Keeper } from './cgroup.ts';
import { perProcess, statsOf, type ProcessFiles } from './files.ts';
import { readListings, type Link, type Listings } from './listings.ts';
import type { Stat } from './stat.ts';
import { parseRollup, parseStatus, type Rollup, type Status } from './status.ts';
import { commandOf, integerOf, textOf } from './text.ts';
import { unreadShare } from './unread.ts';
import { privateSum } from './words.ts';
import { sum } from './predict.ts';

/** USER_HZ: 100 on every Linux that runs GPUs. */
export const ticksPerSecond = 100;

/** Where a figure of private memory comes from; `rss` is an upper bound from kernels that tell nothing better. */
export type MemorySource = 'smaps_rollup' | 'RssAnon' | 'rss' | 'unknown';

export interface Proc {
  readonly pid: number;
  /** -1 when the stat line was cut. */
  readonly startTime: number;
  readonly ppid: number;
  readonly pgrp: number | null;
  readonly session: number | null;
  readonly tty: number;
  readonly foreground: number;
  /** As last seen. */
  readonly state: string;
  /** As first seen, when there were two looks. */
  readonly stateBefore: string | null;
  readonly comm: string;
  readonly argv: readonly string[];
  /** The same as the kernel has it, NULs and all. */
  readonly commandLine: string;
  readonly exe: Link | null;
  readonly cwd: Link | null;
  readonly uid: number | null;
  readonly user: string | null;
  readonly keeper: Keeper;
  readonly status: Status | null;
  /** Share of one CPU it used between the looks; null when there was one look. */
  readonly cpuShare: number | null;
  /** Of that share, the part spent inside the kernel, 0..1. */
  readonly systemPart: number;
  readonly ageSeconds: number | null;
  readonly privateKiB: number;
  readonly source: MemorySource;
  /** What no other process maps, where smaps_rollup told; else null. */
  readonly unsharedKiB: number | null;
  readonly shmemKiB: number;
  readonly swapKiB: number;
  readonly kernel: boolean;
  readonly zombie: boolean;
  /** The collector, its parents and what it started. */
  readonly own: boolean;
  /** Identity, owner, memory, keeper and program are all known. Whatever is not seen counts as alive. */
  readonly seen: boolean;
  readonly held: readonly string[];
  /** Text of wchan and stack, where the collector read them. */
  readonly wait: string;
}

export interface ProcessTable {
  readonly all: readonly Proc[];
  readonly byPid: ReadonlyMap<number, Proc>;
  readonly children: ReadonlyMap<number, readonly Proc[]>;
  /** Nearest first; ends at pid 1, at a parent nobody saw, or where the chain bites its tail. */
  ancestorsOf(proc: Proc): Proc[];
  /** Processes whose parent is not in the table: more than a few mean the list is cut. */
  readonly danglingParents: number;
  readonly listings: Listings;
  readonly twoLooks: boolean;
}

/** The words of a command line, also where the process rewrote it into one string (`nvcc -c x.cu` as a title). */
export function wordsOf(argv: readonly string[]): readonly string[] {
  const [only] = argv;
  return argv.length === 1 && only?.includes(' ') === true ? only.slice(0, 4096).split(/ +/) : argv;
}

/** NUL-separated; a process may rewrite it without any NUL, pad it, or leave empty arguments in the middle. */
export function parseCmdline(text: string): string[] {
  const bare = text.replace(/\0+$/, '');
  return bare === '' ? [] : bare.split('\0');
}

/** Private memory in KiB, never from VIRT. Shared copy-on-write pages count in parts where smaps_rollup was read. */
function privateOf(
  status: Status | null,
  rollup: Rollup | null,
  stat: Stat,
  pageKiB: number,
): { kiB: number; source: MemorySource } {
  if (rollup?.pssAnonKiB != null) return { kiB: rollup.pssAnonKiB, source: 'smaps_rollup' };
  if (status?.rssAnonKiB != null) {
    const kiB = rollup?.privateKiB == null ? status.rssAnonKiB : Math.min(rollup.privateKiB, status.rssAnonKiB);
    return { kiB, source: rollup?.privateKiB == null ? 'RssAnon' : 'smaps_rollup' };
  }
  if (status?.rssKiB != null) return { kiB: status.rssKiB, source: 'rss' };
  return stat.rssPages === null ? { kiB: 0, source: 'unknown' } : { kiB: stat.rssPages * pageKiB, source: 'rss' };
}

const ticksOf = (stat: Stat) => (stat.userTicks ?? 0) + (stat.systemTicks ?? 0);

interface Look {
  readonly capture: Capture;
  readonly listings: Listings;
  readonly uptimeSeconds: number | null;
  readonly own: ReadonlySet<number>;
  readonly pageKiB: number;
  /** parseCgroup: hundreds of processes share one text. */
  keeperOf(cgroup: string): Keeper;
  /** False on a kernel without control groups: then nobody’s is missing. */
  readonly cgroupsRead: boolean;
}

function rowOf(look: Look, first: Stat | null, last: Stat, files: ProcessFiles, share = 1): Proc {
  const status = first === null || files.status === undefined ? null : parseStatus(files.status);
  const rollup = files.rollup === undefined ? null : parseRollup(files.rollup);
  const memory = privateOf(status, rollup, last, look.pageKiB);
  const exe = look.listings.links.exe.get(last.pid) ?? null;
  const window = look.capture.windowSeconds;
  const twice = first !== null && first !== last && window > 0;
  const ticks = twice ? Math.max(0, ticksOf(last) - ticksOf(first)) : 0;
  const age = look.uptimeSeconds === null ? null : look.uptimeSeconds - (last.startTime ?? 0) / ticksPerSecond;
  const uid = status?.uid ?? null;
  const kernel = last.pid === 2 || last.ppid === 2 || ((last.flags ?? 0) & 0x200000) !== 0;
  const zombie = last.state === 'Z' || last.state === 'X';
  const unshared = rollup?.privateKiB ?? null;
  return {
    pid: last.pid,
    startTime: last.startTime ?? -1,
    ppid: last.ppid,
    pgrp: last.pgrp,
    session: last.session,
    tty: last.tty ?? 0,
    foreground: last.foreground ?? -1,
    state: last.state,
    stateBefore: twice ? first.state : null,
    comm: last.comm,
    argv: kernel || zombie ? [] : parseCmdline(files.cmdline ?? ''),
    commandLine: kernel || zombie ? '' : (files.cmdline ?? ''),
    exe,
    cwd: look.listings.links.cwd.get(last.pid) ?? null,
    uid,
    user: uid === null ? null : (look.listings.users.get(uid) ?? (uid === 0 ? 'root' : null)),
    keeper: files.cgroup === undefined ? { kind: 'none' } : look.keeperOf(files.cgroup),
    status,
    cpuShare: twice ? ticks / (window * ticksPerSecond) : null,
    systemPart: ticks === 0 || !twice ? 0 : ((last.systemTicks ?? 0) - (first.systemTicks ?? 0)) / ticks,
    ageSeconds: age === null || last.startTime === null || age < 0 ? null : age,
    privateKiB: kernel || zombie ? 0 : Math.floor(memory.kiB * share),
    source: memory.source,
    unsharedKiB: unshared === null ? null : Math.min(unshared, memory.kiB),
    shmemKiB: status?.rssShmemKiB ?? 0,
    swapKiB: status?.swapKiB ?? 0,
    kernel,
    zombie,
    own: look.own.has(last.pid),
    seen:
      first !== null &&
      last.startTime !== null &&
      uid !== null &&
      memory.source !== 'unknown' &&
      (files.cgroup !== undefined || !look.cgroupsRead) &&
      // Where the links of others were read, a process without one goes by a name it chose itself.
      (exe !== null || !look.listings.links.answered),
    held: look.listings.holders.get(last.pid) ?? [],
    wait: files.wait ?? '',
  };
}

/** The collector's chain, and everything below its innermost process (cat, find, a hung nvidia-smi of ours). */
function ownPids(capture: Capture, looks: readonly ReadonlyMap<number, Stat>[]): Set<number> {
  const own = new Set(capture.collectorPids);
  const parentOf = (pid: number): number | undefined => looks.find((stats) => stats.has(pid))?.get(pid)?.ppid;
  const chainParents = new Set(capture.collectorPids.map(parentOf));
  const innermost = new Set(capture.collectorPids.filter((pid) => pid > 1 && !chainParents.has(pid)));
  for (const stats of looks) {
    for (const pid of stats.keys()) {
      let at: number | undefined = pid;
      for (let depth = 0; at !== undefined && at > 1 && depth < 64; depth++, at = parentOf(at)) {
        if (innermost.has(at)) own.add(pid);
      }
    }
  }
  return own;
}

function remembered<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    let value = known.get(text);
    if (value === undefined) known.set(text, (value = read(text)));
    return value;
  };
}

function uptimeOf(capture: Capture): number | null {
  const text = textOf(capture.files['/proc/uptime']) ?? '';
  const seconds = /^(\d{1,12}(?:\.\d+)?) /.exec(text)?.[1];
  return seconds === undefined ? null : Number(seconds);
}

export function readTable(capture: Capture): ProcessTable {
  const files = perProcess(capture.files);
  const firstLook = statsOf(files);
  const later = statsOf(perProcess(capture.later));
  const twoLooks = later.size > 0;
  const now = twoLooks ? later : firstLook;
  const look: Look = {
    capture,
    listings: readListings(capture),
    uptimeSeconds: uptimeOf(capture),
    own: ownPids(capture, twoLooks ? [now, firstLook] : [now]),
    keeperOf: remembered(parseCgroup),
    cgroupsRead: [...files.values()].some((entry) => entry.cgroup !== undefined),
    pageKiB: (integerOf(commandOf(capture, 'page size').text.trim()) ?? 4096) / 1024,
  };
  const all: Proc[] = [];
  const unread: (readonly [Stat | null, Stat])[] = [];
  for (const [pid, last] of now) {
    const before = firstLook.get(pid) ?? null;
    const same = before !== null && before.startTime === last.startTime ? before : null;
    const details = same === null ? {} : (files.get(pid) ?? {});
    if (details.status === undefined && details.rollup === undefined) unread.push([same, last]);
    else all.push(rowOf(look, same, last, details));
  }
  // On a crowded box only the first look names everybody; the second follows those that weigh something. The others are
  // there, as parents and leaders, but not seen. One that had weight and is missing now has ended.
  for (const [pid, stat] of firstLook) {
    if (!now.has(pid) && files.get(pid)?.status === undefined) unread.push([null, stat]);
  }
  const share = unreadShare(
    capture,
    privateSum(all),
    sum(unread, ([, last]) => (last.rssPages ?? 0) * look.pageKiB),
  );
  for (const [first, last] of unread) {
    all.push(rowOf(look, first, last, first === null ? {} : (files.get(last.pid) ?? {}), share));
  }
  all.sort((a, b) => a.pid - b.pid);
  return indexOf(all, look.listings, twoLooks);
}

function indexOf(all: readonly Proc[], listings: Listings, twoLooks: boolean): ProcessTable {
  const byPid = new Map<number, Proc>();
  for (const proc of all) byPid.set(proc.pid, proc);
  const children = new Map<number, Proc[]>();
  let danglingParents = 0;
  for (const proc of all) {
    if (proc.ppid > 0 && !byPid.has(proc.ppid)) danglingParents++;
    const siblings = children.get(proc.ppid);
    if (siblings === undefined) children.set(proc.ppid, [proc]);
    else siblings.push(proc);
  }
  const ancestorsOf = (proc: Proc): Proc[] => {
    const chain: Proc[] = [];
    // Pids that changed between the looks may close a ring. Hardly any chain is long enough to be worth a set.
    const longChain = 64;
    let met: Set<Proc> | null = null;
    for (let at = byPid.get(proc.ppid); at !== undefined && at !== proc; at = byPid.get(at.ppid)) {
      if (chain.length >= longChain) met ??= new Set(chain);
      if (met?.has(at) === true) return [...met];
      met?.add(at);
      chain.push(at);
    }
    return chain;
  };
  return { all, byPid, children, ancestorsOf, danglingParents, listings, twoLooks };
}
