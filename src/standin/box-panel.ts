/** The memory of this machine for the page's side panel: what `free -h` says, and the figures behind its bar. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface BoxReading {
  /** `free -h` as printed, or undefined where there is no such program. */
  readonly free?: string;
  readonly totalKiB: number;
  readonly usedKiB: number;
  readonly cacheKiB: number;
  readonly freeKiB: number;
  readonly availableKiB: number;
}

/** Undefined on a machine without /proc/meminfo. */
export async function readBox(): Promise<BoxReading | undefined> {
  const [text, free] = await Promise.all([
    readFile('/proc/meminfo', 'utf8').catch(() => ''),
    run('free', ['-h'], { env: { ...process.env, LC_ALL: 'C' }, timeout: 2_000 }).then(
      (r) => r.stdout,
      () => undefined,
    ),
  ]);
  const kiB = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  const totalKiB = kiB('MemTotal');
  if (totalKiB === 0) return undefined;
  const freeKiB = kiB('MemFree');
  const availableKiB = kiB('MemAvailable');
  const cacheKiB = kiB('Buffers') + kiB('Cached') + kiB('SReclaimable');
  // procps 4 reports as used what is not available; `free` beside the bar then says the same.
  const usedKiB = Math.max(0, totalKiB - availableKiB);
  return { ...(free === undefined ? {} : { free }), totalKiB, usedKiB, cacheKiB, freeKiB, availableKiB };
}
