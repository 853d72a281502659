/** Naming a process beyond doubt: its pid and when it started. */
import { readFileSync } from 'node:fs';

export interface ProcessName {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, in clock ticks since boot. */
  readonly startTime: number;
}

interface Stat {
  readonly state: string;
  readonly parentPid: number;
  readonly sessionId: number;
  readonly ttyNumber: number;
  readonly startTime: number;
}

/** Undefined when there is no such process. The last ')' ends the command name, which may hold brackets itself. */
export function statOf(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    state: fields[0] ?? '',
    parentPid: Number(fields[1]),
    sessionId: Number(fields[3]),
    ttyNumber: Number(fields[4]),
    startTime: Number(fields[19]),
  };
}

/** Whether exactly this process still runs; one that has ended and waits for its parent does not. */
export function isAlive({ pid, startTime }: ProcessName): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTime === startTime && stat.state !== 'Z' && stat.state !== 'X';
}

export function nameOf(pid: number): ProcessName {
  const stat = statOf(pid);
  if (stat === undefined) throw new Error(`process ${pid} has ended`);
  return { pid, startTime: stat.startTime };
}
