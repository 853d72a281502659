/**
 * Connections by name, shared while in use and kept for a while after. A dead one is never handed out; one that nobody
 * waits for any more stops being opened.
 */
import { reasonOf } from './slots.ts';

/** What the pool needs to know of a thing it keeps. */
export interface Poolable {
  readonly alive: boolean;
  onClosed(listener: () => void): void;
  close(): void;
}

export interface Lease<T> {
  readonly item: T;
  /** False when it lay idle before: it may have died unseen. */
  readonly fresh: boolean;
  /** `spoiled`: not to be used again (a command on it never ended, say). Safe to call twice. */
  release(spoiled?: boolean): void;
}

export interface Pool<T> {
  lease(key: string, open: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<Lease<T>>;
  /** Closes everything, in use or not. */
  close(): void;
}

interface Entry<T> {
  readonly opening: Promise<T>;
  readonly stop: AbortController;
  item: T | null;
  users: number;
  used: boolean;
  idle: NodeJS.Timeout | undefined;
}

export function createPool<T extends Poolable>(idleMs: number): Pool<T> {
  const entries = new Map<string, Entry<T>>();

  function drop(key: string, entry: Entry<T>): void {
    clearTimeout(entry.idle);
    if (entries.get(key) === entry) entries.delete(key);
    if (entry.item === null) entry.stop.abort(new Error('nobody waits for this connection any more'));
    else if (entry.users === 0) entry.item.close();
  }

  function start(key: string, open: (signal: AbortSignal) => Promise<T>): Entry<T> {
    const stop = new AbortController();
    const entry: Entry<T> = { opening: open(stop.signal), stop, item: null, users: 0, used: false, idle: undefined };
    entries.set(key, entry);
    entry.opening.then(
      (item) => {
        entry.item = item;
        item.onClosed(() => {
          drop(key, entry);
        });
        if (stop.signal.aborted) item.close();
      },
      () => {
        drop(key, entry);
      },
    );
    return entry;
  }

  function leave(key: string, entry: Entry<T>, spoiled: boolean): void {
    entry.users -= 1;
    if (spoiled && entries.get(key) === entry) entries.delete(key);
    if (entry.users > 0) return;
    const reusable = idleMs > 0 && entries.get(key) === entry && entry.item?.alive === true;
    if (!reusable) drop(key, entry);
    else {
      entry.idle = setTimeout(() => {
        drop(key, entry);
      }, idleMs).unref();
    }
  }

  return {
    async lease(key, open, signal) {
      signal?.throwIfAborted();
      const found = entries.get(key);
      const usable = found !== undefined && (found.item === null || found.item.alive) ? found : undefined;
      const entry = usable ?? start(key, open);
      clearTimeout(entry.idle);
      entry.users += 1;
      const fresh = !entry.used;
      entry.used = true;
      let left = false;
      const release = (spoiled = false) => {
        if (left) return;
        left = true;
        leave(key, entry, spoiled);
      };
      try {
        return { item: await orAborted(entry.opening, signal), fresh, release };
      } catch (error) {
        release();
        throw error;
      }
    },
    close() {
      for (const [key, entry] of [...entries]) {
        drop(key, entry);
        entry.item?.close();
      }
    },
  };
}

async function orAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return await work;
  return await new Promise<T>((resolve, reject) => {
    const onAbort = () => {
      reject(reasonOf(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort);
    });
  });
}
