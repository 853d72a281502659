/** One cheap reading of a box's memory, as the watcher keeps it for a day. */
import { z } from 'zod';

const count = z.number().int().nonnegative();

export const sampleSchema = z.object({
  /** Milliseconds since the epoch. */
  at: count,
  totalKiB: count,
  availableKiB: count,
  swapUsedKiB: count,
  /** Counters since boot, from /proc/vmstat; they begin anew when the box restarts. */
  oomKills: count,
  swapInPages: count,
  swapOutPages: count,
  pageKiB: count,
  /** Share of the last minute in which every task waited for memory, in per cent; null where the kernel does not say. */
  stalledPercent: z.number().nonnegative().nullable(),
  /** Null where /dev/shm is not there or was not seen. */
  shm: z.object({ totalKiB: count, usedKiB: count }).nullable(),
});
export type Sample = z.infer<typeof sampleSchema>;

/** A day of readings a minute apart. */
export const samplesKept = 1440;
export const samplesKeptMs = 86_400_000;
