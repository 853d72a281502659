/** The kernel's own account of its OOM kills (dmesg), oldest kernels to newest. */
import { escapeText } from './redact.ts';

export interface OomProcess {
  readonly pid: number;
  readonly comm: string;
  readonly rssKiB: number;
}

export interface OomKill {
  /** Who was killed; its size where the kernel says it. */
  readonly victim: OomProcess;
  /** A kill for the limit of a container or job, not for the box. */
  readonly limited: boolean;
  /** The table of tasks printed with it: everyone at that moment, where the log still holds it. */
  readonly tasks: readonly OomProcess[];
}

const taskRow = /\[ *(\d{1,10})\] +\d+ +\d+ +\d+ +(\d{1,12}) +(?:\d+ +){2,7}(-?\d+) +(.{1,64})$/;
const killed =
  /(Memory cgroup out of memory|Out of memory)?[^:]*:? ?Kill(?:ed)? process (\d{1,10}),? (?:UID \d+,? )?\((.{1,64}?)\)/;

/** Lines that are about something else, cut or faked are skipped. */
export function parseOomKills(text: string, pageKiB: number): OomKill[] {
  const kills: OomKill[] = [];
  let tasks: OomProcess[] = [];
  for (const line of text.split('\n')) {
    if (line.length > 2000) continue;
    if (line.includes('invoked oom-killer')) tasks = [];
    const row = taskRow.exec(line);
    if (row !== null) {
      tasks.push({ pid: Number(row[1]), comm: name(row[4]), rssKiB: Number(row[2]) * pageKiB });
      continue;
    }
    const match = killed.exec(line);
    if (match === null) continue;
    const victim = { pid: Number(match[2]), comm: name(match[3]), rssKiB: victimRss(line) };
    const previous = kills.at(-1);
    // Older kernels say it twice: "Kill process … or sacrifice child", then "Killed process … anon-rss".
    if (previous?.victim.pid === victim.pid) {
      kills[kills.length - 1] = { ...previous, victim: victim.rssKiB > 0 ? victim : previous.victim };
    } else {
      kills.push({ victim, limited: line.includes('Memory cgroup out of memory'), tasks });
      tasks = [];
    }
  }
  return kills;
}

const name = (text: string | undefined): string => escapeText((text ?? '').trim(), 40);

function victimRss(line: string): number {
  return [...line.matchAll(/\b(?:anon|file|shmem)-rss:(\d{1,12})kB/g)].reduce((sum, m) => sum + Number(m[1]), 0);
}
