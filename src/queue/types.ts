/** What a job is and what the rest of the program may ask of the queue. BullMQ itself stays inside src/queue. */
import type { z } from 'zod';
import type { Deps } from '../deps.ts';

/** What a worker needs to know of a job, whatever its payload. */
export interface RunnableJob {
  readonly name: string;
  readonly options: {
    /** How often it may be tried. A job that changes a box has exactly 1. */
    readonly attempts: number;
    /** True for jobs that change a box: never retried, never run again after a stall. */
    readonly mutating: boolean;
    /** Jobs of this kind that one worker process runs side by side. */
    readonly concurrency: number;
    readonly timeoutMs: number;
  };
  /** Checks the payload as it came from the queue, then runs it. */
  handle(data: unknown, deps: Deps, signal: AbortSignal): Promise<void>;
}

/** One job per file in jobs/, made by defineJob. `Payload` is checked both when it is added and when it is run. */
export interface JobDefinition<Payload> extends RunnableJob {
  readonly payload: z.ZodType<Payload>;
}

/** What is in the queue of one kind of job at this moment. */
export interface QueueDepth {
  readonly job: string;
  readonly waiting: number;
  readonly delayed: number;
  readonly active: number;
  /** When the oldest waiting one was put up, in milliseconds since the epoch; null when none waits. */
  readonly oldestWaitingAt: number | null;
}

export interface Queue {
  /**
   * Adds a job once: a second add under the same `id` while the first is known changes nothing. Rejects with
   * `queue_down` within 2 s when the queue does not answer; the job may still arrive then, so the id must be fixed.
   */
  enqueue<Payload>(
    job: JobDefinition<Payload>,
    payload: Payload,
    options: { id: string; delayMs?: number },
  ): Promise<void>;
  /** Starts working on these jobs with these dependencies. */
  work(jobs: readonly RunnableJob[], deps: Deps): Promise<void>;
  /** Adds `job` every `everyMs`, one schedule per id across all processes. */
  schedule<Payload>(
    job: JobDefinition<Payload>,
    payload: Payload,
    options: { id: string; everyMs: number },
  ): Promise<void>;
  /** How much waits, by kind of job, over all processes. Rejects with `queue_down`. */
  depths(): Promise<QueueDepth[]>;
  /** Removes the schedules of `job` whose id says so. */
  unschedule(job: RunnableJob, which: (id: string) => boolean): Promise<void>;
  ping(): Promise<void>;
  /** Stops intake, waits for running jobs up to `deadlineMs`, then lets go. */
  close(deadlineMs: number): Promise<void>;
}
