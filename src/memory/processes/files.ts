/** The files of each process in a capture, sorted out by pid. */
import type { Capture } from '../contract.ts';
import { parseStat, type Stat } from './stat.ts';
import { integerOf, textOf } from './text.ts';

/** What was read of one process, as text. */
export interface ProcessFiles {
  stat?: string;
  status?: string;
  cmdline?: string;
  cgroup?: string;
  rollup?: string;
  wait?: string;
}
const fileNames: Readonly<Record<string, keyof ProcessFiles>> = {
  stat: 'stat',
  status: 'status',
  cmdline: 'cmdline',
  cgroup: 'cgroup',
  smaps_rollup: 'rollup',
  wchan: 'wait',
  stack: 'wait',
};

/** Paths of the form /proc/PID/NAME; whatever else a capture holds is passed over. */
export function perProcess(files: Capture['files']): Map<number, ProcessFiles> {
  const found = new Map<number, ProcessFiles>();
  for (const path in files) {
    if (!path.startsWith('/proc/')) continue;
    const slash = path.indexOf('/', 6);
    const pid = slash === -1 ? null : integerOf(path.slice(6, slash));
    const name = slash === -1 ? '' : path.slice(slash + 1);
    if (pid === null || pid < 1 || !Object.hasOwn(fileNames, name)) continue;
    const key = fileNames[name];
    const text = textOf(files[path]);
    if (key === undefined || text === null) continue;
    let entry = found.get(pid);
    if (entry === undefined) found.set(pid, (entry = {}));
    entry[key] = key === 'wait' ? `${entry.wait ?? ''} ${text}` : text;
  }
  return found;
}

/** A line that names another pid than its path is forged or torn: dropped. */
export function statsOf(files: ReadonlyMap<number, ProcessFiles>): Map<number, Stat> {
  const stats = new Map<number, Stat>();
  for (const [pid, entry] of files) {
    const stat = entry.stat === undefined ? null : parseStat(entry.stat);
    if (stat?.pid === pid) stats.set(pid, stat);
  }
  return stats;
}
