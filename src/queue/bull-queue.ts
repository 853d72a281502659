/**
 * The queue on BullMQ, over Redis or over a Postgres pool (PGlite's included). One BullMQ queue per kind of job, because
 * concurrency and what happens after a stall are properties of a worker. Facts this rests on (BullMQ 6.7): a producer
 * whose Redis is away waits for ever unless told not to, and what it gave up on may still arrive; the processor gets the
 * abort signal only if it declares three parameters; `close` may never resolve; jobs run at least once.
 */
import {
  type ConnectionOptions,
  createPostgresBackend,
  type PgPool,
  Queue as BullQueue,
  runMigrations,
  type Telemetry,
  Worker,
} from 'bullmq';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Deps } from '../deps.ts';
import { ReclaimError } from '../errors.ts';
import type { JobDefinition, Queue, QueueDepth, RunnableJob } from './types.ts';

/** A worker renews its lock at half of this; a job whose lock ran out counts as stalled. */
const lockMs = 15_000;
const stalledCheckMs = 5_000;
const enqueueDeadlineMs = 2_000;

export type QueueConnection =
  { readonly kind: 'redis'; readonly url: string } | { readonly kind: 'sql'; readonly pool: PgPool };

/** The part of a BullMQ queue we use, whichever backend it has. */
interface Producer {
  add(name: string, data: unknown, options: object): Promise<unknown>;
  upsertJobScheduler(id: string, repeat: { every: number }, template: object): Promise<unknown>;
  getJobSchedulers(start: number, end: number, ascending: boolean): Promise<readonly { key: string }[]>;
  removeJobScheduler(id: string): Promise<boolean>;
  waitUntilReady(): Promise<unknown>;
  getJobCounts(...states: ('waiting' | 'delayed' | 'active')[]): Promise<Record<string, number>>;
  getJobs(state: 'waiting', from: number, to: number, oldestFirst: boolean): Promise<{ readonly timestamp: number }[]>;
  close(): Promise<void>;
}
interface Closable {
  close(): Promise<void>;
}

export const queueName = (job: string) => `reclaim-${job}`;
const jobIdPattern = /^(?!\d+$)[^:]+$/;

const down = (cause: unknown) =>
  new ReclaimError('queue_down', 'The queue does not answer. What was asked is recorded and starts when it is back.', {
    cause,
  });

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${ms} ms`));
    }, ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

class Bull implements Queue {
  readonly #connection: QueueConnection;
  readonly #log: Logger;
  readonly #jobs: readonly string[];
  readonly #traced: { telemetry?: Telemetry };
  readonly #producers = new Map<string, Producer>();
  readonly #workers: Closable[] = [];
  readonly #redises: Redis[] = [];
  #producerRedis: Redis | null = null;

  constructor(connection: QueueConnection, log: Logger, jobs: readonly string[], telemetry: Telemetry | undefined) {
    this.#connection = connection;
    this.#log = log;
    this.#jobs = jobs;
    this.#traced = telemetry === undefined ? {} : { telemetry };
  }

  #redis(url: string, options: object): Redis {
    const redis = new Redis(url, options);
    // Every queue listens to it, and BullMQ adds to this number as it does, so 0 would not mean "any" for long.
    redis.setMaxListeners(100);
    redis.on('error', (error) => {
      this.#log.debug({ err: error }, 'queue connection');
    });
    this.#redises.push(redis);
    return redis;
  }

  /** Fails at once while Redis is away, instead of keeping what it was told for later. */
  #producing(url: string): Redis {
    this.#producerRedis ??= this.#redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1 });
    return this.#producerRedis;
  }

  /** Without a queue for offline commands, not even the first command may come before the connection stands. */
  async #reachable(): Promise<void> {
    if (this.#connection.kind !== 'redis') return;
    const redis = this.#producing(this.#connection.url);
    if (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve));
  }

  async #producer(job: string): Promise<Producer> {
    await this.#reachable();
    const known = this.#producers.get(job);
    if (known !== undefined) return known;
    const onError = (error: Error) => {
      this.#log.warn({ err: error, job }, 'queue error');
    };
    let made: Producer;
    if (this.#connection.kind === 'redis') {
      const connection: ConnectionOptions = this.#producing(this.#connection.url);
      const queue = new BullQueue(queueName(job), { ...this.#traced, connection, skipWaitingForReady: true });
      queue.on('error', onError);
      made = queue;
    } else {
      const queue = new BullQueue(
        queueName(job),
        { ...this.#traced, connection: this.#connection.pool },
        createPostgresBackend,
      );
      queue.on('error', onError);
      made = queue;
    }
    this.#producers.set(job, made);
    return made;
  }

  async enqueue<Payload>(
    job: JobDefinition<Payload>,
    payload: Payload,
    { id, delayMs = 0 }: { id: string; delayMs?: number },
  ): Promise<void> {
    if (!jobIdPattern.test(id)) throw new Error(`job id ${id}: no colons, and not only digits`);
    const data = job.payload.parse(payload);
    const options = { ...this.#jobOptions(job), jobId: id, delay: delayMs };
    try {
      await within(
        enqueueDeadlineMs,
        this.#producer(job.name).then((queue) => queue.add(job.name, data, options)),
      );
    } catch (error) {
      throw down(error);
    }
  }

  /** Nothing is kept: an id is free again once its job ended, and what happened is in our own store. */
  #jobOptions(job: RunnableJob): object {
    return {
      attempts: job.options.attempts,
      backoff: { type: 'exponential', delay: 1_000 },
      removeOnComplete: true,
      removeOnFail: true,
    };
  }

  async unschedule(job: RunnableJob, which: (id: string) => boolean): Promise<void> {
    try {
      const queue = await within(enqueueDeadlineMs, this.#producer(job.name));
      const known = await within(enqueueDeadlineMs, queue.getJobSchedulers(0, -1, true));
      for (const { key } of known) {
        if (which(key)) await within(enqueueDeadlineMs, queue.removeJobScheduler(key));
      }
    } catch (error) {
      throw down(error);
    }
  }

  async schedule<Payload>(
    job: JobDefinition<Payload>,
    payload: Payload,
    { id, everyMs }: { id: string; everyMs: number },
  ): Promise<void> {
    const template = { name: job.name, data: job.payload.parse(payload), opts: this.#jobOptions(job) };
    try {
      await within(
        enqueueDeadlineMs,
        this.#producer(job.name).then((queue) => queue.upsertJobScheduler(id, { every: everyMs }, template)),
      );
    } catch (error) {
      throw down(error);
    }
  }

  async work(jobs: readonly RunnableJob[], deps: Deps): Promise<void> {
    for (const job of jobs) await this.#workOn(job, deps);
  }

  async #workOn(job: RunnableJob, deps: Deps): Promise<void> {
    const log = this.#log.child({ job: job.name });
    // All three parameters must be declared: BullMQ counts them before it hands over the signal.
    const processor = async (
      bullJob: { data: unknown },
      _token: string | undefined,
      signal: AbortSignal | undefined,
    ) => {
      const timeout = AbortSignal.timeout(job.options.timeoutMs);
      await job.handle(bullJob.data, deps, signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
    };
    const options = {
      concurrency: job.options.concurrency,
      ...this.#traced,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: job.options.mutating ? 0 : 1,
    };
    const name = queueName(job.name);
    // Over SQL a worker on tables that are not there yet would spin and freeze the process.
    await (await this.#producer(job.name)).waitUntilReady();
    const worker =
      this.#connection.kind === 'redis'
        ? new Worker(name, processor, {
            ...options,
            connection: this.#redis(this.#connection.url, { maxRetriesPerRequest: null }),
          })
        : new Worker(name, processor, { ...options, connection: this.#connection.pool }, createPostgresBackend);
    worker.on('error', (error) => {
      log.warn({ err: error }, 'worker error');
    });
    worker.on('failed', (failed, error) => {
      log.error({ err: error, id: failed?.id }, 'job failed');
    });
    worker.on('lockRenewalFailed', (ids: string[]) => {
      for (const id of ids) worker.cancelJob(id, 'the lock of this job was lost');
    });
    await worker.waitUntilReady();
    this.#workers.push(worker);
  }

  async depths(): Promise<QueueDepth[]> {
    const of = async (job: string): Promise<QueueDepth> => {
      const queue = await this.#producer(job);
      const { waiting = 0, delayed = 0, active = 0 } = await queue.getJobCounts('waiting', 'delayed', 'active');
      const [oldest] = waiting === 0 ? [] : await queue.getJobs('waiting', 0, 0, true);
      return { job, waiting, delayed, active, oldestWaitingAt: oldest?.timestamp ?? null };
    };
    try {
      return await within(enqueueDeadlineMs, Promise.all(this.#jobs.map(of)));
    } catch (error) {
      throw down(error);
    }
  }

  async ping(): Promise<void> {
    try {
      if (this.#connection.kind === 'sql') await within(enqueueDeadlineMs, this.#connection.pool.query('SELECT 1'));
      else {
        const redis = this.#producing(this.#connection.url);
        await within(
          enqueueDeadlineMs,
          this.#reachable().then(() => redis.ping()),
        );
      }
    } catch (error) {
      throw down(error);
    }
  }

  async close(deadlineMs: number): Promise<void> {
    const closing = async (parts: Iterable<Closable>) => {
      await Promise.allSettled([...parts].map((part) => part.close()));
    };
    const letGo = (error: unknown) => {
      this.#log.warn({ err: error }, 'the queue did not close in time; letting go');
    };
    await within(deadlineMs, closing(this.#workers)).catch(letGo);
    await within(Math.min(deadlineMs, 1_000), closing(this.#producers.values())).catch(letGo);
    for (const redis of this.#redises) redis.disconnect();
  }
}

/**
 * Over SQL the tables of BullMQ are brought up first. The pool's search_path must be the schema `bullmq`. `jobs` are the
 * names `depths` tells of.
 */
export async function openBullQueue(
  connection: QueueConnection,
  log: Logger,
  jobs: readonly string[] = [],
  telemetry?: Telemetry,
): Promise<Queue> {
  if (connection.kind === 'sql') {
    const client = await connection.pool.connect();
    try {
      await runMigrations(client);
    } finally {
      client.release();
    }
  }
  return new Bull(connection, log, jobs, telemetry);
}
