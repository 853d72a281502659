/** What `reclaim doctor` asks Redis: version, eviction and persistence, each of which can lose an approval. Reads only. */
import { Redis } from 'ioredis';
import { fail, ok, warn, type Row } from './doctor-rows.ts';

/** BullMQ 5 needs 6.2 for its blocking moves. */
const oldest = [6, 2] as const;

/** None for a store other than Redis; none when it cannot be reached, which the row of the store tells. */
export async function redisRows(queueUrl: string): Promise<Row[]> {
  if (!/^rediss?:/.test(queueUrl)) return [];
  const redis = new Redis(queueUrl, {
    lazyConnect: true,
    connectTimeout: 5_000,
    commandTimeout: 5_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // Each fault is answered where it is asked.
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const version = /^(?:redis|valkey)_version:(\d+)\.(\d+)\S*/m.exec(await redis.info('server'));
    return [versionRow(version), await evictionRow(redis), await persistenceRow(redis)];
  } catch {
    return [];
  } finally {
    redis.disconnect();
  }
}

function versionRow(version: RegExpExecArray | null): Row {
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])];
  const said = version?.[0].split(':')[1]?.trim() ?? 'unknown';
  const isNew = major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
  return isNew
    ? ok('Redis version', said)
    : fail('Redis version', `${said} is too old: install ${oldest.join('.')} or newer`);
}

/** Null where the server keeps its settings to itself, as hosted ones do. */
async function setting(redis: Redis, name: string): Promise<string | null> {
  try {
    const answer = await redis.config('GET', name);
    return Array.isArray(answer) && typeof answer[1] === 'string' ? answer[1] : null;
  } catch {
    return null;
  }
}

async function evictionRow(redis: Redis): Promise<Row> {
  const policy = await setting(redis, 'maxmemory-policy');
  if (policy === 'noeviction') return ok('Redis eviction', policy);
  if (policy === null) return warn('Redis eviction', 'the server does not tell: see to it that it is noeviction');
  return fail(
    'Redis eviction',
    `${policy} may throw away an approval: redis-cli config set maxmemory-policy noeviction`,
  );
}

async function persistenceRow(redis: Redis): Promise<Row> {
  const aof = await setting(redis, 'appendonly');
  if (aof === 'yes') return ok('Redis persistence', 'append-only file');
  if (aof === null) return warn('Redis persistence', 'the server does not tell: see to it that appendonly is yes');
  return warn(
    'Redis persistence',
    'a restart of Redis loses what was decided lately: redis-cli config set appendonly yes, and set it in its file',
  );
}
