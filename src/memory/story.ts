/**
 * The shapes inside the memory engine: what the process side tells the verdict and the plan, and what the engine as a
 * whole (think.ts) hands to its callers beside the printable diagnosis.
 */
import type { Diagnosis, Finding, RangeKiB, Step } from './contract.ts';

/** Something that must never be signalled, from policy.protect. Every named part must match exactly. */
export interface ProtectRule {
  readonly exe?: string | undefined;
  readonly comm?: string | undefined;
  readonly unit?: string | undefined;
  readonly user?: string | undefined;
}

export interface ThinkOptions {
  readonly protect: readonly ProtectRule[];
  /** Younger things are never proposed. */
  readonly minAgeSeconds: { readonly process: number; readonly shm: number; readonly sysv: number };
  /** `pid:startTime` of processes whose owners asked to keep them. */
  readonly kept: readonly string[];
}

/** What pins a process beside (boot_id, pid, starttime): a mismatch at the moment of acting takes it out of the plan. */
export interface Identity {
  readonly uid: number | null;
  readonly exe: string | null;
}

/** Key of a process in `identities`, `kept` and the like. */
export const targetKey = (target: { pid: number; startTime: number }): string => `${target.pid}:${target.startTime}`;

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
/** A step before the plan gave it its id. */
export type DraftStep = WithoutId<Step>;

/** What the process side (src/memory/processes/) makes of a capture. */
export interface ProcessStory {
  /**
   * leftover_build, orphaned_workers, stale_shm, stale_sysv_shm, tmpfs_files, pinned_shm, live_job, idle_daemon,
   * idle_owned, unkillable, zombie, and gpu_driver where a GPU context explains memory.
   */
  readonly findings: readonly Finding[];
  /** Kill steps (one per group that can be given back), then remove_files, then ipcrm, each with its prediction. */
  readonly steps: readonly DraftStep[];
  readonly identities: Readonly<Record<string, Identity>>;
  /** Sentences about what could not be seen. */
  readonly partial: readonly string[];
  /** KiB of private memory in live work. */
  readonly liveKiB: number;
  /** KiB of huge pages that processes map, of those whose status was read. */
  readonly hugetlbKiB?: number;
  /** False when so little of the processes was visible that nothing may be called lingering. */
  readonly sighted: boolean;
}

/** The whole answer of the engine. */
export interface Thought {
  readonly diagnosis: Diagnosis;
  readonly identities: Readonly<Record<string, Identity>>;
  /** Empty string when the box did not tell. Without it nothing may be killed. */
  readonly bootId: string;
  /** What `used` means in the `free` of this box: `used = total - available (procps 4.0.1 and later)`. */
  readonly freeWords?: string;
}

/** What a step of ours changed between two memory samples. */
export interface Credit {
  readonly freeKiB: number;
  readonly availableKiB: number;
  readonly byClass: Readonly<Record<string, number>>;
}

export type { RangeKiB };
