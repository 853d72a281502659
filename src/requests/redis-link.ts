/** How the Redis store talks to its server: answers checked on the way in, failures said as `store_down`. */
import { Redis } from 'ioredis';
import type { z } from 'zod';
import { ReclaimError } from '../errors.ts';

/** Every key begins with it; the hash tag keeps them together in a cluster. */
export const p = '{reclaim}:';

export const down = (cause: unknown) => new ReclaimError('store_down', downSentence(cause), { cause });

const notSent = 'Redis does not answer, so nothing was recorded or changed. Try again in a minute.';

/** Only what Redis refused, or was never sent, is known not to be written: an answer that is late or lost says nothing. */
function downSentence(cause: unknown): string {
  if (!(cause instanceof Error)) return notSent;
  if (cause.message.includes('OOM command not allowed')) {
    return 'Redis is full (maxmemory), so nothing was recorded or changed. Give it more memory, then try again.';
  }
  const wasSent = cause.message === 'Command timed out' || cause.name === 'MaxRetriesPerRequestError';
  if (!wasSent) return notSent;
  return 'Redis did not answer in time, so it is not certain whether this was recorded. Look again in a minute; what was recorded is not done twice.';
}

export class RedisLink {
  readonly redis: Redis;

  constructor(redis: Redis) {
    this.redis = redis;
  }

  async ask<T>(schema: z.ZodType<T>, question: (redis: Redis) => Promise<unknown>): Promise<T> {
    let answer: unknown;
    try {
      answer = await question(this.redis);
    } catch (error) {
      throw down(error);
    }
    return schema.parse(answer);
  }

  /** Runs a script of redis-scripts.ts. */
  async run<T>(schema: z.ZodType<T>, script: string, ...args: readonly (string | number)[]): Promise<T> {
    return await this.ask(schema, (redis) => redis.eval(script, 1, p, ...args.map(String)));
  }
}

/** Connects within 5 s or rejects with `store_down`. */
export async function connectRedis(url: string): Promise<RedisLink> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    commandTimeout: 3_000,
    retryStrategy: (times) => Math.min(times * 100, 2_000),
  });
  // Every failed command says so itself; without a listener the event would end the process.
  redis.on('error', () => undefined);
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    throw down(error);
  }
  return new RedisLink(redis);
}
