/**
 * The embedded store over a unix socket: the process that owns the database serves it to the other commands of the same
 * user on this machine. The socket's mode is 0600 and it lies in the data folder, so file permissions are the access
 * control.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { asReclaimError, isErrorCode, ReclaimError } from '../errors.ts';
import type { Store } from './store.ts';
import type { TopicStore } from './topic-store.ts';
import {
  answer,
  type Line,
  lineSchema,
  type MethodName,
  methods,
  questionSchema,
  type ResultOf,
} from './store-wire.ts';

/**
 * The kernel takes some 107 bytes of path; a longer one is replaced by a name of its own in the folder for such things. On
 * Windows it is a named pipe, which Node opens for its own user alone.
 */
export function storeSocketPath(databaseDir: string, platform: NodeJS.Platform = process.platform): string {
  const path = `${resolve(databaseDir)}.sock`;
  const name = `reclaim-${createHash('sha256').update(path).digest('hex').slice(0, 24)}`;
  if (platform === 'win32') return `\\\\.\\pipe\\${name}`;
  return Buffer.byteLength(path) <= 100 ? path : join(tmpdir(), `${name}.sock`);
}

const isPipe = (path: string): boolean => path.startsWith('\\\\.\\pipe\\');

/** readline says the socket's errors a second time; they are dealt with where the socket closes. */
function linesOf(socket: Socket, heard: (line: string) => void): void {
  createInterface({ input: socket })
    .on('line', heard)
    .on('error', () => undefined);
}

const say = (socket: Socket, line: Line) => {
  if (socket.writable) socket.write(`${JSON.stringify(line)}\n`);
};

async function respond(store: Store, socket: Socket, line: string): Promise<void> {
  const question = questionSchema.parse(JSON.parse(line));
  try {
    say(socket, { id: question.id, ok: true, value: await answer(store, question.method, question.args) });
  } catch (thrown) {
    const error = asReclaimError(thrown);
    say(socket, { id: question.id, ok: false, code: error.code, text: error.userText });
  }
}

/** Serves `store` until closed. The caller holds the lock of the data folder, so an old socket there is a leftover. */
export async function serveStore(store: Store, path: string): Promise<{ close(): Promise<void> }> {
  if (!isPipe(path)) rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    const stop = store.onDelivery(() => {
      say(socket, { wake: true });
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      stop();
      sockets.delete(socket);
    });
    linesOf(socket, (line) => {
      // A line that is not ours ends the conversation: there is no way to answer it.
      respond(store, socket, line).catch(() => socket.destroy());
    });
  });
  const mask = process.umask(0o177);
  try {
    server.listen(path);
    await once(server, 'listening');
  } finally {
    process.umask(mask);
  }
  if (!isPipe(path)) chmodSync(path, 0o600);
  return {
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const gone = () =>
  new ReclaimError(
    'store_down',
    'The running Reclaim that holds the store went away. Nothing more was recorded. Try again.',
  );

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

class SocketStore implements Store {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #wakers = new Set<() => void>();
  #serial = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    linesOf(socket, (line) => {
      this.#heard(line);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(gone());
      this.#waiting.clear();
    });
  }

  #heard(text: string): void {
    const line = lineSchema.parse(JSON.parse(text));
    if ('wake' in line) {
      for (const wake of this.#wakers) wake();
      return;
    }
    const waiting = this.#waiting.get(line.id);
    this.#waiting.delete(line.id);
    if (line.ok) waiting?.resolve(line.value);
    else waiting?.reject(remoteError(line.code, line.text));
  }

  async #call<M extends MethodName>(method: M, ...args: unknown[]): Promise<ResultOf<M>>;
  async #call(method: MethodName, ...args: unknown[]): Promise<unknown> {
    if (!this.#socket.writable) throw gone();
    const id = (this.#serial += 1);
    const value = await new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.write(`${JSON.stringify({ id, method, args })}\n`);
    });
    return methods[method].result.parse(value);
  }

  readonly topics: TopicStore = {
    create: (change) => this.#call('createTopic', change),
    update: (change) => this.#call('updateTopic', change),
    get: (id) => this.#call('topic', id),
    inSlot: (slot) => this.#call('topicInSlot', slot),
    live: (kind) => this.#call('liveTopics', kind),
    putRow: async (sweep, row) => {
      await this.#call('putRow', sweep, row);
    },
    rows: (id) => this.#call('rows', id),
    addSample: async (host, sample) => {
      await this.#call('addSample', host, sample);
    },
    samples: (host, sinceMs) => this.#call('samples', host, sinceMs),
    trim: (before) => this.#call('trimTopics', before),
  };

  create = (...args: Parameters<Store['create']>) => this.#call('create', ...args);
  update = (...args: Parameters<Store['update']>) => this.#call('update', ...args);
  get = (id: string) => this.#call('get', id);
  openFor = (host: string) => this.#call('openFor', host);
  list = (...args: Parameters<Store['list']>) => this.#call('list', ...args);
  events = (...args: Parameters<Store['events']>) => this.#call('events', ...args);
  claimDeliveries = (...args: Parameters<Store['claimDeliveries']>) => this.#call('claimDeliveries', ...args);
  delivery = (key: string) => this.#call('delivery', key);
  undelivered = () => this.#call('undelivered');
  kept = (...args: Parameters<Store['kept']>) => this.#call('kept', ...args);
  totals = () => this.#call('totals');
  deployment = () => this.#call('deployment');
  processes = () => this.#call('processes');
  trim = (...args: Parameters<Store['trim']>) => this.#call('trim', ...args);
  hold = (...args: Parameters<Store['hold']>) => this.#call('hold', ...args);

  async appendEvents(...args: Parameters<Store['appendEvents']>): Promise<void> {
    await this.#call('appendEvents', ...args);
  }
  async settleDelivery(...args: Parameters<Store['settleDelivery']>): Promise<void> {
    await this.#call('settleDelivery', ...args);
  }
  async keep(...args: Parameters<Store['keep']>): Promise<void> {
    await this.#call('keep', ...args);
  }
  async beat(...args: Parameters<Store['beat']>): Promise<void> {
    await this.#call('beat', ...args);
  }
  async leave(instance: string): Promise<void> {
    await this.#call('leave', instance);
  }
  async restore(...args: Parameters<Store['restore']>): Promise<void> {
    await this.#call('restore', ...args);
  }
  async release(...args: Parameters<Store['release']>): Promise<void> {
    await this.#call('release', ...args);
  }
  async ping(): Promise<void> {
    await this.#call('ping');
  }

  onDelivery(wake: () => void): () => void {
    this.#wakers.add(wake);
    return () => this.#wakers.delete(wake);
  }

  close(): Promise<void> {
    this.#socket.destroy();
    return Promise.resolve();
  }
}

function remoteError(code: string, text: string): ReclaimError {
  return new ReclaimError(isErrorCode(code) ? code : 'internal', text);
}

/** The store of a running `serve`, or null when nobody listens there. */
export async function connectStore(path: string): Promise<Store | null> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return new SocketStore(socket);
  } catch {
    socket.destroy();
    return null;
  }
}
