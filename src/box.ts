/**
 * One machine, reached for the length of one job. The same host program (host/reclaim-host.sh) answers whether it runs
 * over ssh or on this machine, so every caller sees one interface and every error is a ReclaimError.
 */
import type { Capture, DropTarget, FileTarget, KillTarget, ShmTarget, TargetResult } from './memory/contract.ts';
import type { ProtectRule } from './memory/story.ts';

export type Privilege = 'sudo' | 'root' | 'none' | 'helper';

export interface CollectOptions {
  /** `memory` reads only the cheap figures (meminfo, vmstat, zoneinfo, pressure, arcstats): for measuring between steps. */
  readonly scope: 'full' | 'memory';
  /** Seconds between the two looks at /proc/PID/stat and meminfo; 0 = one look. */
  readonly windowSeconds?: number;
}

export interface KillOrder {
  /** The boot the plan was made in; another boot id on the box refuses every target. */
  readonly bootId: string;
  readonly graceMs: number;
  /** Extra names (exe path, comm, unit or user) that must never be signalled, from policy.protect. */
  readonly protect: readonly ProtectRule[];
  /** In the order to signal: parents that respawn come first. uid and exe are re-checked where given. */
  readonly targets: readonly (KillTarget & { readonly uid?: number; readonly exe?: string })[];
}

export type ResultOf<T> = T & { readonly result: TargetResult; readonly reason?: string };

/** What sync and drop_caches answer: done, or skipped/failed with the reason in a sentence. */
export interface StepAnswer {
  readonly state: 'done' | 'skipped' | 'failed';
  readonly reason?: string;
}

/** One line of the journal a run leaves on a box: what was begun, signalled, and how each target ended. */
export interface JournalLine {
  /** Hundredths of a second since that machine's boot. */
  readonly at: number;
  readonly words: readonly string[];
}

export interface RunJournal {
  /**
   * `running`: a run is at work there now, perhaps this one. `ended`: none is. `sealed`: none is, and this run can never
   * begin anything there again, so that what its journal does not tell was not done.
   */
  readonly state: 'running' | 'ended' | 'sealed';
  readonly lines: readonly JournalLine[];
}

export interface Box {
  readonly host: string;
  /** `SHA256:…` of the key the box proved to hold, or `local` for this machine. Part of what is approved. */
  readonly hostKey: string;
  /** The same box over the same connection, with its effects written to the journal of this run (letters, digits, dashes). */
  forRun(run: string): Box;
  /** What a run did here, as this box has it written down. `seal` closes that run for good where no run is at work. */
  journal(run: string, options?: { readonly seal?: boolean }): Promise<RunJournal>;
  collect(options: CollectOptions): Promise<Capture>;
  /** Sends TERM once, waits for real exit, KILLs survivors. Reports progress as targets end. */
  kill(order: KillOrder, onResult?: (result: ResultOf<KillTarget>) => void): Promise<ResultOf<KillTarget>[]>;
  removeFiles(targets: readonly FileTarget[], minAgeSeconds: number): Promise<ResultOf<FileTarget>[]>;
  ipcrm(targets: readonly ShmTarget[], minAgeSeconds: number): Promise<ResultOf<ShmTarget>[]>;
  sync(): Promise<StepAnswer>;
  dropCaches(level: DropTarget['level']): Promise<StepAnswer>;
  close(): Promise<void>;
}

/** Opens the box a host name of reclaim.yaml stands for. `signal` ends the work early. */
export type OpenBox = (host: string, options?: { signal?: AbortSignal }) => Promise<Box>;
