/**
 * Runs an approved request, once. The claim approved -> running comes first and is what makes it single-use; from then on
 * this worker has to keep its lease, and stops before the next effect when it lost it. What it did not see the end of is
 * `unknown`, and is never done a second time.
 */
import { z } from 'zod';
import { act } from '../src/act.ts';
import type { Deps } from '../src/deps.ts';
import { asReclaimError, ReclaimError } from '../src/errors.ts';
import { thinkOptions } from '../src/look.ts';
import type { RunReport } from '../src/memory/contract.ts';
import { defineJob } from '../src/queue/define-job.ts';
import { leaseMs, leaseRenewMs } from '../src/requests/state.ts';
import type { RequestService } from '../src/requests/service.ts';
import type { RequestRecord } from '../src/requests/types.ts';

export const runJob = defineJob({
  name: 'run',
  payload: z.object({ requestId: z.string() }),
  options: { attempts: 1, mutating: true, concurrency: 8, timeoutMs: 30 * 60_000 },
  async run({ requestId }, deps, signal) {
    await runApproved(requestId, deps, signal);
  },
});

/** All a run needs; the command line runs what it was allowed to by the same code as a worker. */
export interface RunDeps extends Pick<Deps, 'config' | 'clock' | 'log' | 'instance' | 'openBox' | 'store'> {
  readonly requests: Pick<RequestService, 'claim' | 'progress' | 'finish' | 'abandon'>;
}

/** False when the request is not this process's to run: somebody else has it, or it may not run (any more). */
export async function runApproved(requestId: string, deps: RunDeps, signal: AbortSignal): Promise<boolean> {
  const record = await deps.requests.claim(requestId, deps.instance);
  if (record?.run === undefined) return false;
  await new Run(deps, record, record.run.id, signal).toItsEnd();
  return true;
}

/** Long enough for a worker that lost its store for a moment to still write down what it did. */
const finishTries = 20;
const finishPauseMs = 1_000;

class Run {
  readonly #deps: RunDeps;
  readonly #record: RequestRecord;
  readonly #id: string;
  readonly #lock: string;
  /** Aborts when the lease is lost, or when the queue takes the job away. */
  readonly #lost = new AbortController();
  readonly #signal: AbortSignal;
  #renewedAt: number;

  constructor(deps: RunDeps, record: RequestRecord, id: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#record = record;
    this.#id = id;
    this.#lock = `host:${record.host}`;
    this.#signal = AbortSignal.any([signal, this.#lost.signal]);
    this.#renewedAt = deps.clock.now();
  }

  async toItsEnd(): Promise<void> {
    const { store, requests, log } = this.#deps;
    if (!(await store.hold(this.#lock, this.#id, leaseMs))) {
      const why = `Another run works on ${this.#record.host} right now. Nothing was done. Ask again when it has ended.`;
      await requests.abandon(this.#record.id, this.#id, 'superseded', 'host_busy', why);
      return;
    }
    const renewing = setInterval(() => {
      void this.#renew(null, null);
    }, leaseRenewMs);
    try {
      const report = await this.#act();
      await this.#persist(() => requests.finish(this.#record.id, this.#id, report));
    } catch (thrown) {
      const error = asReclaimError(thrown);
      log.warn({ err: thrown, request: this.#record.id }, 'the run did not start');
      const to = this.#lost.signal.aborted ? 'unknown' : 'failed';
      await this.#persist(() => requests.abandon(this.#record.id, this.#id, to, error.code, error.userText));
    } finally {
      clearInterval(renewing);
      await store.release(this.#lock, this.#id).catch(() => undefined);
    }
  }

  async #act(): Promise<RunReport> {
    const { config, store, openBox, clock } = this.#deps;
    const { host, plan, bootId, hostKey } = this.#record;
    if (plan === null || bootId === undefined || hostKey === undefined) {
      throw new ReclaimError('internal', 'The request has no plan to run. Nothing was done.');
    }
    const kept = (await store.kept(host, bootId)).map((wish) => wish.target);
    const open = () => openBox(host, { signal: this.#signal });
    const box = await open();
    try {
      return await act(
        box,
        {
          run: this.#id,
          request: this.#record.id,
          plan,
          identities: this.#record.identities,
          bootId,
          hostKey,
          options: thinkOptions(config.policy, kept),
          graceMs: config.policy.grace,
          dryRun: false,
        },
        { clock, reopen: open, progress: (report, doing) => this.#renew(doing, report) },
      );
    } finally {
      await box.close();
    }
  }

  /** False once the right to act is lost: the lease was taken, or the store stayed silent for as long as it lasts. */
  async #renew(doing: string | null, report: RunReport | null): Promise<boolean> {
    const { store, requests, clock, log } = this.#deps;
    if (this.#signal.aborted) return false;
    const startedAt = clock.now();
    try {
      const held =
        (await store.hold(this.#lock, this.#id, leaseMs)) &&
        (await requests.progress(this.#record.id, this.#id, doing, report));
      if (held) {
        this.#renewedAt = startedAt;
        return true;
      }
    } catch (error) {
      log.warn({ err: error, request: this.#record.id }, 'could not renew the lease');
      if (clock.now() - this.#renewedAt < leaseMs - leaseRenewMs) return true;
    }
    this.#lost.abort(
      new ReclaimError('outcome_unknown', 'The right to act on this box was lost, so the run stopped there.'),
    );
    return false;
  }

  /** What was done must be written down, also through a short outage of the store. */
  async #persist(write: () => Promise<unknown>): Promise<void> {
    for (let n = 1; ; n += 1) {
      try {
        await write();
        return;
      } catch (error) {
        if (n >= finishTries || !asReclaimError(error).retryable) throw error;
        await this.#deps.clock.sleep(finishPauseMs);
      }
    }
  }
}
