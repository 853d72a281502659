/** The tables of the SQL store, the same on Postgres and PGlite, and their version. */
import type { PgQueryable } from 'bullmq';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';
import { chainStart } from './chain.ts';
import { openStates } from './state.ts';

export const sqlSchemaVersion = 1;
/** Serialises processes that start at the same moment; any number that others do not use will do. */
const migrationLock = 726_354_621;

const tables = `
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

/** Creates what is missing inside the caller's transaction; refuses (`store_schema`) what a newer release has written. */
export async function migrate(client: PgQueryable): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1)', [migrationLock]);
  await client.query('CREATE SCHEMA IF NOT EXISTS reclaim');
  await client.query(
    'CREATE TABLE IF NOT EXISTS reclaim.meta (one integer PRIMARY KEY CHECK (one = 1), version integer)',
  );
  const { rows } = await client.query<unknown>('SELECT version FROM reclaim.meta');
  const found = z.array(z.object({ version: z.number() })).parse(rows)[0]?.version;
  if (found === undefined) {
    await client.query(tables);
    await client.query('INSERT INTO reclaim.meta VALUES (1, $1)', [sqlSchemaVersion]);
  } else if (found !== sqlSchemaVersion) {
    throw new ReclaimError('store_schema', schemaSentence(found, sqlSchemaVersion));
  }
}

export const schemaSentence = (found: number | string, known: number | string): string =>
  `The store was written by another release of Reclaim (schema ${found}, this one knows ${known}). Nothing was touched. Start the newer release, or point QUEUE_URL elsewhere.`;
