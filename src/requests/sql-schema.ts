/** The tables of the SQL store, the same on Postgres and PGlite, and their version. */
import type { PgQueryable } from 'bullmq';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';
import { chainStart } from './chain.ts';
import { openStates } from './state.ts';
import { totalsOf } from './totals.ts';
import { eventSchema, requestSchema } from './types.ts';

/** Serialises processes that start at the same moment; any number that others do not use will do. */
const migrationLock = 726_354_621;

/** 1: requests, events, deliveries, wishes, holds. */
const version1 = `
  CREATE TABLE reclaim.requests (
    id text PRIMARY KEY,
    version integer NOT NULL,
    state text NOT NULL,
    host text NOT NULL,
    created_ms bigint NOT NULL,
    record text NOT NULL
  );
  CREATE UNIQUE INDEX one_open_request_per_host ON reclaim.requests (host)
    WHERE state IN (${openStates.map((s) => `'${s}'`).join(', ')});
  CREATE INDEX requests_by_time ON reclaim.requests (created_ms DESC, id);

  CREATE TABLE reclaim.chain (one integer PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash text NOT NULL);
  INSERT INTO reclaim.chain VALUES (1, 0, '${chainStart}');
  CREATE TABLE reclaim.events (seq bigint PRIMARY KEY, request text NOT NULL, host text NOT NULL, event text NOT NULL);
  CREATE INDEX events_by_request ON reclaim.events (request, seq);
  CREATE INDEX events_by_host ON reclaim.events (host, seq);
  CREATE FUNCTION reclaim.append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
  CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON reclaim.events
    FOR EACH ROW EXECUTE FUNCTION reclaim.append_only();

  CREATE TABLE reclaim.deliveries (
    key text PRIMARY KEY,
    ord bigserial,
    channel text NOT NULL,
    request_id text NOT NULL,
    view text NOT NULL,
    revision integer NOT NULL,
    delivered_revision integer NOT NULL,
    message_ts text,
    attempts integer NOT NULL,
    not_before_ms bigint,
    claimed_by text,
    claimed_until_ms bigint,
    given_up text,
    since_ms bigint NOT NULL
  );
  CREATE INDEX deliveries_waiting ON reclaim.deliveries (since_ms, ord)
    WHERE revision > delivered_revision AND given_up IS NULL;

  CREATE TABLE reclaim.wishes (
    host text, boot_id text, target text, kept_by text NOT NULL, kept_at text NOT NULL,
    PRIMARY KEY (host, boot_id, target)
  );
  CREATE TABLE reclaim.holds (name text PRIMARY KEY, holder text NOT NULL, until_ms bigint NOT NULL);
`;

/** 2: totals, processes, a name for the deployment, and a door for removing what is too old. */
const version2 = `
  CREATE TABLE reclaim.totals (name text PRIMARY KEY, count bigint NOT NULL);
  CREATE TABLE reclaim.processes (instance text PRIMARY KEY, until_ms bigint NOT NULL, process text NOT NULL);
  ALTER TABLE reclaim.meta ADD COLUMN deployment text;
  UPDATE reclaim.meta SET deployment = substr(md5(random()::text || clock_timestamp()::text), 1, 16);
  CREATE OR REPLACE FUNCTION reclaim.append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' AND current_setting('reclaim.trimming', true) = 'on' THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'the audit log is append-only';
  END $$;
`;

/** 3: topics with the rows of sweeps, and the readings of the watcher. */
const version3 = `
  CREATE TABLE IF NOT EXISTS reclaim.topics (
    id text PRIMARY KEY, kind text NOT NULL, version integer NOT NULL, slot text UNIQUE,
    created_ms bigint NOT NULL, updated_ms bigint NOT NULL, topic text NOT NULL
  );
  CREATE TABLE IF NOT EXISTS reclaim.rows (
    topic text, host text, body text NOT NULL, PRIMARY KEY (topic, host)
  );
  CREATE TABLE IF NOT EXISTS reclaim.samples (
    host text, at_ms bigint, sample text NOT NULL, PRIMARY KEY (host, at_ms)
  );
`;

/** For a store that did not count yet. */
async function countAll(client: PgQueryable): Promise<void> {
  const records = z.array(z.object({ record: z.string() }));
  const events = z.array(z.object({ event: z.string() }));
  const found = await client.query<unknown>('SELECT record FROM reclaim.requests');
  const logged = await client.query<unknown>('SELECT event FROM reclaim.events');
  const totals = totalsOf(
    records.parse(found.rows).map((row) => requestSchema.parse(JSON.parse(row.record))),
    events.parse(logged.rows).map((row) => eventSchema.parse(JSON.parse(row.event))),
  );
  for (const [name, count] of Object.entries(totals)) {
    await client.query('INSERT INTO reclaim.totals VALUES ($1, $2)', [name, count]);
  }
}

/** Step n brings version n to n + 1. */
const upgrades: readonly ((client: PgQueryable) => Promise<void>)[] = [
  async (client) => {
    await client.query(version1);
  },
  async (client) => {
    await client.query(version2);
    await countAll(client);
  },
  async (client) => {
    await client.query(version3);
  },
];
export const sqlSchemaVersion = upgrades.length;

/** Brings the tables up inside the caller's transaction; refuses (`store_schema`) what a newer release has written. */
export async function migrate(client: PgQueryable): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [migrationLock]);
  await client.query('CREATE SCHEMA IF NOT EXISTS reclaim');
  await client.query(
    'CREATE TABLE IF NOT EXISTS reclaim.meta (one integer PRIMARY KEY CHECK (one = 1), version integer)',
  );
  await client.query('INSERT INTO reclaim.meta VALUES (1, 0) ON CONFLICT DO NOTHING');
  const { rows } = await client.query<unknown>('SELECT version FROM reclaim.meta');
  const found = z.array(z.object({ version: z.number() })).parse(rows)[0]?.version ?? 0;
  if (found > sqlSchemaVersion) throw new ReclaimError('store_schema', schemaSentence(found, sqlSchemaVersion));
  for (const upgrade of upgrades.slice(found)) await upgrade(client);
  await client.query('UPDATE reclaim.meta SET version = $1 WHERE version <> $1', [sqlSchemaVersion]);
}

export const schemaSentence = (found: number | string, known: number | string): string =>
  `The store was written by a newer release of Reclaim (schema ${found}, this one knows ${known}). Nothing was touched. Start the newer release, or point QUEUE_URL elsewhere.`;
