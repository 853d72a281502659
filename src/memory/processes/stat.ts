/** /proc/PID/stat. Its second field is chosen by whoever runs the process and may hold blanks, brackets and newlines. */
import { integerOf } from './text.ts';

export interface Stat {
  readonly pid: number;
  readonly comm: string;
  /** One letter: R S D Z T t I X ... */
  readonly state: string;
  readonly ppid: number;
  readonly pgrp: number | null;
  readonly session: number | null;
  readonly tty: number | null;
  /** The foreground process group of its terminal, -1 without one. */
  readonly foreground: number | null;
  readonly flags: number | null;
  readonly userTicks: number | null;
  readonly systemTicks: number | null;
  /** Field 22, clock ticks since boot. Null when the line was cut: such a process has no identity and is never touched. */
  readonly startTime: number | null;
  readonly rssPages: number | null;
}

/**
 * Reads one line. The name ends at the LAST `)`: every later field is a number, while the name may itself look like the
 * rest of a line (`a) R 1 1`). Null when not even pid, name, state and parent are there.
 */
export function parseStat(text: string): Stat | null {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 1 || close < open) return null;
  const pid = integerOf(text.slice(0, open).trim());
  const field = text.slice(close + 2).split(' ', 23);
  const state = field[0] ?? '';
  const ppid = integerOf(field[1]);
  if (pid === null || pid < 1 || ppid === null || !/^[A-Za-z]$/.test(state)) return null;
  const foreground = field[5] === '-1' ? -1 : integerOf(field[5]);
  return {
    pid,
    comm: text.slice(open + 1, close),
    state,
    ppid,
    pgrp: integerOf(field[2]),
    session: integerOf(field[3]),
    tty: integerOf(field[4]),
    foreground,
    flags: integerOf(field[6]),
    userTicks: integerOf(field[11]),
    systemTicks: integerOf(field[12]),
    startTime: integerOf(field[19]),
    rssPages: integerOf(field[21]),
  };
}
