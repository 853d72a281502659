/** What the box's own programs list: links, holders, sessions, users, jobs, containers. Each null when it was not told. */
import type { Capture } from '../contract.ts';
import { commandOf, integerOf, recordsOf, undeleted, type CommandText } from './text.ts';

export interface Link {
  readonly path: string;
  readonly deleted: boolean;
}
export interface Links {
  readonly exe: ReadonlyMap<number, Link>;
  readonly cwd: ReadonlyMap<number, Link>;
  readonly answered: boolean;
}

/** `PID exe TARGET` and `PID cwd TARGET`; the target is all the rest, blanks and newlines included. */
export function parseLinks(command: CommandText): Links {
  const exe = new Map<number, Link>();
  const cwd = new Map<number, Link>();
  for (const record of recordsOf(command.text)) {
    const blank = record.indexOf(' ');
    const pid = integerOf(record.slice(0, Math.max(0, blank)));
    const kind = record.startsWith('exe ', blank + 1) ? exe : record.startsWith('cwd ', blank + 1) ? cwd : null;
    const target = record.slice(blank + 5);
    if (pid !== null && kind !== null && target !== '') kind.set(pid, undeleted(target));
  }
  return { exe, cwd, answered: exe.size > 0 };
}

/** `PID TARGET`: who has devices, /dev/shm files and memfds open, or /dev/shm files mapped (no open file is needed then). */
export function parseHolders(command: CommandText): Map<number, string[]> {
  const held = new Map<number, string[]>();
  for (const record of recordsOf(command.text)) {
    const blank = record.indexOf(' ');
    const pid = integerOf(record.slice(0, Math.max(0, blank)));
    if (pid === null) continue;
    const target = record.slice(blank + 1);
    const list = held.get(pid);
    if (list === undefined) held.set(pid, [target]);
    else list.push(target);
  }
  return held;
}

/** Login session id -> its state, or `listed` where this loginctl does not print one. Columns differ by version. */
export function parseSessions(command: CommandText): Map<string, string> | null {
  if (!command.answered) return null;
  const sessions = new Map<string, string>();
  for (const line of command.text.split('\n')) {
    const words = line.trim().split(/\s+/);
    const id = words[0];
    if (id === undefined || id === '' || integerOf(words[1]) === null) continue;
    sessions.set(id, words.slice(3).find((word) => /^(active|online|opening|closing)$/.test(word)) ?? 'listed');
  }
  return sessions;
}

/** `UID NAME` -> name. Empty when the box did not tell: then people are shown by number. */
export function parseUsers(command: CommandText): Map<number, string> {
  const users = new Map<number, string>();
  for (const line of command.text.split('\n')) {
    const [, uidText, name] = /^(\d+) (\S+)$/.exec(line.trim()) ?? [];
    const uid = integerOf(uidText);
    if (uid !== null && name !== undefined && !users.has(uid)) users.set(uid, name);
  }
  return users;
}

export interface SlurmJob {
  readonly user: string;
  readonly state: string;
  readonly name: string;
}

/** `JOBID USER STATE NAME`. Null when squeue did not answer: every job then counts as alive. */
export function parseSlurm(command: CommandText): Map<string, SlurmJob> | null {
  if (!command.answered) return null;
  const jobs = new Map<string, SlurmJob>();
  for (const line of command.text.split('\n')) {
    const [, id, user, state, name] = /^\s*(\d+)(?:[_+]\S*)?\s+(\S+)\s+(\S+)\s*(.*)$/.exec(line) ?? [];
    if (id !== undefined && user !== undefined && state !== undefined) jobs.set(id, { user, state, name: name ?? '' });
  }
  return jobs;
}

/** `ID NAME` of running containers. */
export function parseDocker(command: CommandText): { readonly id: string; readonly name: string }[] {
  return command.text.split('\n').flatMap((line) => {
    const [, id, name] = /^([0-9a-f]{12,64})\s+(\S+)/.exec(line.trim()) ?? [];
    return id === undefined || name === undefined ? [] : [{ id, name }];
  });
}

export interface Listings {
  readonly links: Links;
  readonly holders: ReadonlyMap<number, readonly string[]>;
  readonly holdersKnown: boolean;
  readonly sessions: ReadonlyMap<string, string> | null;
  readonly users: ReadonlyMap<number, string>;
  readonly slurm: ReadonlyMap<string, SlurmJob> | null;
  readonly containers: readonly { readonly id: string; readonly name: string }[];
  /** Whether docker answered, be it with an empty list. */
  readonly containersKnown: boolean;
}

export function readListings(capture: Capture): Listings {
  const holders = commandOf(capture, 'fd holders');
  const docker = commandOf(capture, 'docker ps');
  return {
    links: parseLinks(commandOf(capture, 'links')),
    holders: parseHolders(holders),
    holdersKnown: holders.answered,
    sessions: parseSessions(commandOf(capture, 'sessions')),
    users: parseUsers(commandOf(capture, 'users')),
    slurm: parseSlurm(commandOf(capture, 'slurm jobs')),
    containers: parseDocker(docker),
    containersKnown: docker.answered,
  };
}
