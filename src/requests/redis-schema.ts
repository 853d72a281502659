/** The version of what is written in Redis: older data is brought up, newer data is left alone. */
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import { p, type RedisLink } from './redis-link.ts';
import { holdScript, releaseScript } from './redis-scripts.ts';
import { schemaSentence } from './sql-schema.ts';
import { hashOf } from './redis-rows.ts';
import { totalsOf } from './totals.ts';
import { eventSchema, requestSchema } from './types.ts';

/** 1: requests, events, deliveries. 2: totals. */
export const redisSchemaVersion = 2;
const upgradeMs = 120_000;

/** @throws ReclaimError `store_schema` for what a newer release wrote */
export async function checkRedisSchema(link: RedisLink, clock: Clock): Promise<void> {
  await link.ask(z.unknown(), (r) => r.setnx(`${p}schema`, String(redisSchemaVersion)));
  for (;;) {
    const found = Number(await link.ask(z.string(), (r) => r.get(`${p}schema`)));
    if (found === redisSchemaVersion) return;
    if (!(found < redisSchemaVersion)) {
      throw new ReclaimError('store_schema', schemaSentence(found, redisSchemaVersion));
    }
    await upgrade(link, clock);
  }
}

/** One process upgrades, the others wait for it; one that dies in between is followed by the next after its time. */
async function upgrade(link: RedisLink, clock: Clock): Promise<void> {
  const me = `upgrade-${process.pid}-${clock.now()}`;
  const nowMs = clock.now();
  const mine = await link.run(z.number(), holdScript, 'schema', me, nowMs, nowMs + upgradeMs);
  if (mine === 0) {
    await clock.sleep(200);
    return;
  }
  const ids = await link.ask(z.array(z.string()), (r) => r.zrange(`${p}requests`, '0', '-1'));
  const records = [];
  for (const id of ids) {
    const text = await link.ask(z.string().nullable(), (r) => r.hget(`${p}request:${id}`, 'record'));
    if (text !== null) records.push(requestSchema.parse(JSON.parse(text)));
  }
  const lines = await link.ask(z.array(z.string()), (r) => r.hvals(`${p}events`));
  const events = lines.map((line) => eventSchema.parse(JSON.parse(line)));
  const key = `${p}totals`;
  const totals = hashOf(totalsOf(records, events));
  await link.ask(z.unknown(), (r) =>
    r.multi().del(key).hset(key, totals).set(`${p}schema`, String(redisSchemaVersion)).exec(),
  );
  await link.run(z.unknown(), releaseScript, 'schema', me);
}
