/** /proc/PID/stat. Its second field is chosen by whoever runs the process and may hold blanks, brackets and newlines. */
import { integerBetween, integerOf } from './text.ts';

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
  const state = text.charAt(close + 2);
  if (pid === null || pid < 1 || text.charAt(close + 3) !== ' ' || !/[A-Za-z]/.test(state)) return null;
  const field4 = close + 4;
  const ppid = integerAt(text, field4);
  if (ppid === null) return null;
  const field8 = skipFields(text, field4, 4);
  const field14 = skipFields(text, field8, 6);
  const field22 = skipFields(text, field14, 8);
  return {
    pid,
    comm: text.slice(open + 1, close),
    state,
    ppid,
    pgrp: integerAt(text, skipFields(text, field4, 1)),
    session: integerAt(text, skipFields(text, field4, 2)),
    tty: integerAt(text, skipFields(text, field4, 3)),
    foreground: text.startsWith('-1 ', field8) ? -1 : integerAt(text, field8),
    flags: integerAt(text, skipFields(text, field8, 1)),
    userTicks: integerAt(text, field14),
    systemTicks: integerAt(text, skipFields(text, field14, 1)),
    startTime: integerAt(text, field22),
    rssPages: integerAt(text, skipFields(text, field22, 2)),
  };
}

// By position instead of by split: ten thousand of these lines are read per look, and the pieces would be its garbage.

/** Where the field `count` fields after the one at `from` begins; past the end when there are not so many. */
function skipFields(text: string, from: number, count: number): number {
  let at = from;
  for (let n = 0; n < count; n++) {
    const blank = text.indexOf(' ', at);
    if (blank === -1) return text.length;
    at = blank + 1;
  }
  return at;
}

function integerAt(text: string, from: number): number | null {
  const blank = text.indexOf(' ', from);
  return integerBetween(text, from, blank === -1 ? text.length : blank);
}
