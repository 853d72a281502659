/**
 * A `pg.Pool` in front of PGlite: one Postgres inside this process, one session, so one statement or transaction at a
 * time. It is what lets store and queue run the same SQL with nothing installed. Facts it rests on: PGlite answers in
 * microtasks, so every query yields to the event loop first; eight-byte integers come as text, as with node-postgres;
 * notifications reach every client of this process.
 */
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite, types } from '@electric-sql/pglite';
import { dataDir as readyMade } from '@electric-sql/pglite-prepopulatedfs';
import type { PgPool, PgPoolClient, PgQueryResult } from 'bullmq';

/** Lets one owner in at a time; the owner may come in again, and stays inside while its transaction is open. */
class Turnstile {
  #owner: object | null = null;
  #inside = 0;
  #transaction = false;
  readonly #waiting: (() => void)[] = [];

  async enter(who: object): Promise<void> {
    while (this.#owner !== null && this.#owner !== who) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#owner = who;
    this.#inside += 1;
  }

  begin(): void {
    this.#transaction = true;
  }

  end(who: object): void {
    if (this.#owner === who) this.#transaction = false;
  }

  leave(): void {
    this.#inside -= 1;
    if (this.#inside > 0 || this.#transaction) return;
    this.#owner = null;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  holdsTransaction(who: object): boolean {
    return this.#transaction && this.#owner === who;
  }
}

class Session {
  readonly db: PGlite;
  readonly turnstile = new Turnstile();

  constructor(db: PGlite) {
    this.db = db;
  }

  async run<R>(who: object, text: string, params: readonly unknown[] = []): Promise<PgQueryResult<R>> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.turnstile.enter(who);
    const verb = /^\s*(BEGIN|START|COMMIT|ROLLBACK|END)\b/i.exec(text)?.[1]?.toUpperCase();
    try {
      if (verb === 'BEGIN' || verb === 'START') this.turnstile.begin();
      // Without parameters a text may hold many statements (migrations do); only `exec` takes those.
      const last = params.length === 0 ? (await this.db.exec(text)).at(-1) : await this.db.query(text, [...params]);
      const rows = (last?.rows ?? []) as R[];
      return { rows, rowCount: last?.affectedRows === 0 ? rows.length : (last?.affectedRows ?? rows.length) };
    } finally {
      if (verb === 'COMMIT' || verb === 'END' || (verb === 'ROLLBACK' && !/\bTO\b/i.test(text))) {
        this.turnstile.end(who);
      }
      this.turnstile.leave();
    }
  }
}

class Client extends EventEmitter implements PgPoolClient {
  readonly #session: Session;
  readonly #unlisten: () => void;

  constructor(session: Session) {
    super();
    this.setMaxListeners(0);
    this.#session = session;
    this.#unlisten = session.db.onNotification((channel, payload) => {
      this.emit('notification', { channel, payload });
    });
  }

  async query<R>(text: string, params?: readonly unknown[]): Promise<PgQueryResult<R>> {
    return await this.#session.run<R>(this, text, params);
  }

  release(): void {
    this.#unlisten();
    // Whoever leaves in the middle of a transaction must not keep everybody else out.
    if (this.#session.turnstile.holdsTransaction(this)) void this.#session.run(this, 'ROLLBACK').catch(() => undefined);
  }
}

export interface PglitePool extends PgPool {
  close(): Promise<void>;
}

class Pool extends EventEmitter implements PglitePool {
  /** BullMQ reads this to know that LISTEN connections do not go stale unseen. */
  readonly options = { keepAlive: true };
  readonly #session: Session;

  constructor(session: Session) {
    super();
    this.setMaxListeners(0);
    this.#session = session;
  }

  async query<R>(text: string, params?: readonly unknown[]): Promise<PgQueryResult<R>> {
    return await this.#session.run<R>({}, text, params);
  }

  connect(): Promise<PgPoolClient> {
    return Promise.resolve(new Client(this.#session));
  }

  /** Store and queue share the database, so neither ends it: its opener does, with `close`. */
  end(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    if (!this.#session.db.closed) await this.#session.db.close();
  }
}

/**
 * Opens PGlite on a folder (`memory://` for none). `search_path` is BullMQ's schema; the store names its own. A new
 * database is unpacked from a ready-made one of exactly this PGlite version: making it anew takes three times as long.
 */
export async function openPglitePool(dataDir: string): Promise<PglitePool> {
  const isNew = dataDir.startsWith('memory:') || !existsSync(join(dataDir, 'PG_VERSION'));
  const db = await PGlite.create({
    dataDir,
    parsers: { [types.INT8]: (text: string) => text },
    ...(isNew ? { loadDataDir: await readyMade() } : {}),
  });
  await db.exec('CREATE SCHEMA IF NOT EXISTS bullmq; SET search_path TO bullmq;');
  return new Pool(new Session(db));
}
