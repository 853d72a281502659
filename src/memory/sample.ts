/** One measurement of the memory of a box, cheap enough to take between steps, and when it may be taken. */
import { account, type MemoryClass } from './accounting.ts';
import type { Capture, Memory, Step } from './contract.ts';
import { commandText } from './blob.ts';
import { readFacts } from './facts.ts';
import { inferFormula, memoryBy, parseFreeOutput, type FreeFormula } from './free.ts';
import { field } from './meminfo.ts';

export interface MemorySample {
  /** The figures of `free`. */
  readonly memory: Memory;
  /**
   * MemFree and MemAvailable, each with the pages parked on per-CPU lists added: after a kill of 2 GiB some 400 MiB wait
   * there for half a minute, in no field of meminfo.
   */
  readonly freeKiB: number;
  readonly availableKiB: number;
  /** Sums to MemTotal; holds the whole size of the ARC's unnamed part as `zfs_arc`. */
  readonly classes: Readonly<Partial<Record<MemoryClass, number>>>;
  /** How often page cache was dropped since boot, by whomever; null where the kernel does not count it. */
  readonly cacheDrops: number | null;
}

/**
 * Null when the capture holds no usable meminfo. `formula` keeps one meaning of `used` through a run; without it the
 * box's own is inferred where the capture has `free -k`.
 */
export function memorySample(capture: Capture, formula?: FreeFormula): MemorySample | null {
  const facts = readFacts(capture);
  const { meminfo, lowWatermarkKiB, perCpuFreeKiB } = facts;
  if (field(meminfo, 'MemTotal') === 0) return null;
  const printed = parseFreeOutput(commandText(capture, 'free -k') ?? '');
  const used = formula ?? inferFormula(printed, meminfo, lowWatermarkKiB).formula;
  const memory = memoryBy(used, meminfo, lowWatermarkKiB);
  const classes: Partial<Record<MemoryClass, number>> = {};
  for (const entry of account(facts).classes) classes[entry.class] = entry.kiB;
  return {
    memory,
    freeKiB: memory.freeKiB + perCpuFreeKiB,
    availableKiB: memory.availableKiB + perCpuFreeKiB,
    classes,
    cacheDrops: facts.vmstat.get('drop_pagecache') ?? null,
  };
}

/**
 * Said of a step in which caches were dropped more often than the step itself did (a cron job in the same minute): then
 * the figures do not tell whose change it was. Null otherwise.
 */
export function droppedByOthers(before: MemorySample, after: MemorySample, step: Step): string | null {
  if (before.cacheDrops === null || after.cacheDrops === null) return null;
  const ours = step.action === 'drop_caches' && step.targets.some(({ level }) => level !== 2) ? 1 : 0;
  if (after.cacheDrops - before.cacheDrops <= ours) return null;
  return 'Somebody else dropped caches on this box during the step, so the change in free and cache may be theirs.';
}

/** A memory that moved less than this over three readings has come to rest. */
const restKiB = 64 * 1024;

/** Whether the newest three samples, a second apart, agree: an exit of hundreds of GiB takes its time. */
export function settled(samples: readonly MemorySample[]): boolean {
  const newest = samples.slice(-3).map((sample) => sample.freeKiB);
  return newest.length === 3 && Math.max(...newest) - Math.min(...newest) < restKiB;
}
