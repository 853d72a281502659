/**
 * What the readings of a box say, pure: whether it is short of memory, whether it recovered, and since when. Never judged
 * by `free` or `used`: what counts is what is available, who waits for memory, and what the kernel had to do about it.
 */
import { commandText } from '../../memory/blob.ts';
import type { Capture } from '../../memory/contract.ts';
import { field, parseMeminfo } from '../../memory/meminfo.ts';
import { sizeText } from '../../memory/sizes.ts';
import { pageSizeKiB, parseVmstat } from '../../memory/vmstat.ts';
import { shareOf } from '../incident/state.ts';
import type { Sample } from './sample.ts';

/** alerts.watch, in per cent and milliseconds. */
export interface WatchSettings {
  readonly everyMs: number;
  readonly availableBelow: number;
  readonly recoverAbove: number;
  /** So many readings in a row. */
  readonly for: number;
}

export interface Judgement {
  /** Why the box is short of memory, in a few words; null when it is not. */
  readonly alarm: string | null;
  /** All is well again, for as many readings. Never together with an alarm; between the two limits neither holds. */
  readonly recovered: boolean;
}

/** Every task waited for memory for this share of the last minute: work stands still. */
const stalledPercent = 10;
const calmPercent = 5;
/** Swapping in and out at this pace at once is thrashing, not putting aside what nobody uses. */
const swapKiBPerSecond = 20 * 1024;
const shmFullShare = 0.95;
const shmCalmShare = 0.9;
/** A full /dev/shm of less than this is some container's, not the box's. */
const shmWorthKiB = 256 * 1024;

const textOf = (capture: Capture, path: string): string => {
  const blob = capture.files[path];
  return typeof blob === 'string' ? blob : '';
};

/** Null when the capture has no usable meminfo. */
export function sampleOf(capture: Capture, atMs: number): Sample | null {
  const meminfo = parseMeminfo(textOf(capture, '/proc/meminfo'));
  const totalKiB = field(meminfo, 'MemTotal');
  // Kernels without MemAvailable cannot be judged by it, and anything else would be a guess.
  if (totalKiB === 0 || meminfo.get('MemAvailable') === undefined) return null;
  const vmstat = parseVmstat(textOf(capture, '/proc/vmstat'));
  const full = /^full\b.*\bavg60=(\d+(?:\.\d+)?)/m.exec(textOf(capture, '/proc/pressure/memory'))?.[1];
  return {
    at: atMs,
    totalKiB,
    availableKiB: Math.min(totalKiB, field(meminfo, 'MemAvailable')),
    swapUsedKiB: Math.max(0, field(meminfo, 'SwapTotal') - field(meminfo, 'SwapFree')),
    oomKills: vmstat.get('oom_kill') ?? 0,
    swapInPages: vmstat.get('pswpin') ?? 0,
    swapOutPages: vmstat.get('pswpout') ?? 0,
    pageKiB: pageSizeKiB(meminfo, vmstat),
    stalledPercent: full === undefined ? null : Number(full),
    shm: shmOf(commandText(capture, 'df tmpfs') ?? ''),
  };
}

function shmOf(df: string): Sample['shm'] {
  const [, total, used] = /^\S+\s+(\d+)\s+(\d+)\s+\d+\s+\S+\s+\/dev\/shm$/m.exec(df) ?? [];
  return total === undefined || used === undefined ? null : { totalKiB: Number(total), usedKiB: Number(used) };
}

const shmFull = ({ shm }: Sample): boolean =>
  shm !== null && shm.totalKiB >= shmWorthKiB && shm.usedKiB >= shm.totalKiB * shmFullShare;

/** KiB per second, of the slower of the two directions; 0 over a restart of the box. */
function thrashing(before: Sample, after: Sample): number {
  const seconds = (after.at - before.at) / 1000;
  const pages = Math.min(after.swapInPages - before.swapInPages, after.swapOutPages - before.swapOutPages);
  return seconds <= 0 || pages <= 0 ? 0 : (pages * after.pageKiB) / seconds;
}

/** The newest readings that follow on each other without a gap, oldest first. */
function streak(samples: readonly Sample[], { everyMs }: WatchSettings): Sample[] {
  const gapMs = Math.max(everyMs * 3, 10_000);
  const kept: Sample[] = [];
  for (const sample of [...samples].reverse()) {
    const later = kept.at(-1);
    if (later !== undefined && later.at - sample.at > gapMs) break;
    kept.push(sample);
  }
  return kept.reverse();
}

export function judge(samples: readonly Sample[], settings: WatchSettings): Judgement {
  const all = streak(samples, settings);
  const last = all.slice(-settings.for);
  const newest = last.at(-1);
  if (newest === undefined) return { alarm: null, recovered: false };
  const before = all.at(-2);
  if (before !== undefined && newest.oomKills > before.oomKills) {
    return {
      alarm: `The kernel ran out of memory and ended ${killed(newest.oomKills - before.oomKills)}`,
      recovered: false,
    };
  }
  if (last.length < settings.for) return { alarm: null, recovered: false };
  return { alarm: lasting(last, all, settings), recovered: calm(all, settings) };
}

const killed = (n: number): string => (n === 1 ? 'a process' : `${n} processes`);
const times = (n: number): string => (n === 1 ? '' : ` for ${n} readings`);

function lasting(last: readonly Sample[], all: readonly Sample[], settings: WatchSettings): string | null {
  const [newest] = last.slice(-1);
  if (newest === undefined) return null;
  if (last.every((s) => shareOf(s) < settings.availableBelow)) {
    const share = Math.floor(shareOf(newest) * 10) / 10;
    return `Memory is short: ${sizeText(newest.availableKiB)} of ${sizeText(newest.totalKiB)} available (${share} %), below ${settings.availableBelow} %${times(last.length)}`;
  }
  if (last.every((s) => (s.stalledPercent ?? 0) >= stalledPercent)) {
    return `Work stands still for memory ${Math.round(newest.stalledPercent ?? 0)} % of the time${times(last.length)}`;
  }
  const pairs = all.slice(-(settings.for + 1));
  if (pairs.length > settings.for && pairs.slice(1).every((s, i) => thrashing(pairs[i] ?? s, s) >= swapKiBPerSecond)) {
    return `The box swaps in and out without end${times(last.length)}`;
  }
  if (last.every(shmFull))
    return `/dev/shm is full: ${sizeText(newest.shm?.usedKiB ?? 0)} of ${sizeText(newest.shm?.totalKiB ?? 0)}${times(last.length)}`;
  return null;
}

function calm(all: readonly Sample[], settings: WatchSettings): boolean {
  const pairs = all.slice(-(settings.for + 1));
  const last = pairs.slice(-settings.for);
  if (last.length < settings.for) return false;
  const quiet = pairs.slice(1).every((s, i) => {
    const before = pairs[i] ?? s;
    return s.oomKills <= before.oomKills && thrashing(before, s) < swapKiBPerSecond / 2;
  });
  return (
    quiet &&
    last.every(
      (s) =>
        shareOf(s) > settings.recoverAbove &&
        (s.stalledPercent ?? 0) < calmPercent &&
        (s.shm === null || s.shm.totalKiB < shmWorthKiB || s.shm.usedKiB < s.shm.totalKiB * shmCalmShare),
    )
  );
}

/** Since when, in words: from the most that was available in the last hours to now. Null when it hardly changed. */
export function trendOf(samples: readonly Sample[]): string | null {
  const newest = samples.at(-1);
  if (newest === undefined) return null;
  const most = samples.reduce((a, b) => (b.availableKiB >= a.availableKiB ? b : a), newest);
  const minutes = Math.round((newest.at - most.at) / 60_000);
  if (minutes < 1 || most.availableKiB - newest.availableKiB < newest.totalKiB * 0.05) return null;
  const at = new Date(most.at).toISOString().slice(11, 16);
  return `Available fell from ${sizeText(most.availableKiB)} at ${at} UTC to ${sizeText(newest.availableKiB)} in ${minutes} min.`;
}

/** The smallest share available among them, in per cent. */
export const lowestShare = (samples: readonly Sample[]): number | null =>
  samples.length === 0 ? null : Math.min(...samples.map(shareOf));
