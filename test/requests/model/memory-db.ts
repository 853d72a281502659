/** The store as one object in memory, and a process on it that can die between any two of its writes. */
import { canonicalJson, chainEvents, type ChainHead, emptyChain } from '../../../src/requests/chain.ts';
import { isOpen } from '../../../src/requests/state.ts';
import type { Change, Store, WriteResult } from '../../../src/requests/store.ts';
import {
  type AuditEvent,
  type Delivery,
  deliveryKey,
  type NewAuditEvent,
  type RequestRecord,
  type View,
} from '../../../src/requests/types.ts';
import type { TestClock } from '../fixtures.ts';

/** Ways to build it wrong, to see that the property notices. */
export type Fault = 'blind_writes' | 'mute' | 'forgetful';

type Used =
  'create' | 'update' | 'get' | 'openFor' | 'list' | 'appendEvents' | 'keep' | 'kept' | 'hold' | 'release' | 'delivery';
export type SmallStore = Pick<Store, Used>;

export class MemoryDb implements SmallStore {
  readonly records = new Map<string, RequestRecord>();
  readonly log: AuditEvent[] = [];
  readonly due = new Map<string, { id: string; view: View }>();
  readonly #clock: TestClock;
  readonly #fault: Fault | undefined;
  readonly #wishes: { host: string; bootId: string; target: string; by: string }[] = [];
  readonly #holds = new Map<string, { holder: string; until: number }>();
  #head: ChainHead = emptyChain;

  constructor(clock: TestClock, fault?: Fault) {
    this.#clock = clock;
    this.#fault = fault;
  }

  #commit({ record, events = [], deliver = [] }: Change): WriteResult {
    // What a store gives back is what went over a wire.
    const kept = JSON.parse(canonicalJson(record)) as RequestRecord;
    this.records.set(record.id, kept);
    this.#append(events);
    const silent = this.#fault === 'mute' && !isOpen(record.state);
    if (record.channel !== undefined && !silent) {
      for (const view of deliver) this.due.set(deliveryKey(record.id, view), { id: record.id, view });
    }
    return { ok: true, record: kept };
  }

  #append(events: readonly NewAuditEvent[]): void {
    const chained = chainEvents(this.#head, events);
    this.log.push(...chained);
    this.#head = chained.at(-1) ?? this.#head;
  }

  create(change: Change): Promise<WriteResult> {
    const open = [...this.records.values()].find((r) => r.host === change.record.host && isOpen(r.state));
    if (open !== undefined) return Promise.resolve({ ok: false, why: 'host_busy', current: open });
    return Promise.resolve(this.#commit(change));
  }

  update(change: Change): Promise<WriteResult> {
    const current = this.records.get(change.record.id) ?? null;
    const stale = current?.version !== change.record.version - 1;
    if (stale && this.#fault !== 'blind_writes') return Promise.resolve({ ok: false, why: 'changed', current });
    return Promise.resolve(this.#commit(change));
  }

  get(id: string): Promise<RequestRecord | null> {
    return Promise.resolve(this.records.get(id) ?? null);
  }

  openFor(host: string): Promise<RequestRecord | null> {
    return Promise.resolve([...this.records.values()].find((r) => r.host === host && isOpen(r.state)) ?? null);
  }

  list(filter: Parameters<Store['list']>[0]): Promise<RequestRecord[]> {
    const wanted = [...this.records.values()].filter((r) => filter.states?.includes(r.state) ?? true);
    return Promise.resolve(wanted.slice(-filter.limit));
  }

  appendEvents(events: readonly NewAuditEvent[]): Promise<void> {
    if (this.#fault !== 'forgetful') this.#append(events);
    return Promise.resolve();
  }

  keep(wish: Parameters<Store['keep']>[0]): Promise<void> {
    this.#wishes.push(wish);
    return Promise.resolve();
  }

  kept(host: string, bootId: string): Promise<{ target: string; by: string }[]> {
    const wishes = this.#wishes.filter((w) => w.host === host && w.bootId === bootId);
    return Promise.resolve([...new Map(wishes.map(({ target, by }) => [target, { target, by }])).values()]);
  }

  hold(name: string, holder: string, ttlMs: number): Promise<boolean> {
    const now = this.#clock.now();
    const held = this.#holds.get(name);
    if (held !== undefined && held.holder !== holder && held.until > now) return Promise.resolve(false);
    this.#holds.set(name, { holder, until: now + ttlMs });
    return Promise.resolve(true);
  }

  release(name: string, holder: string): Promise<void> {
    if (this.#holds.get(name)?.holder === holder) this.#holds.delete(name);
    return Promise.resolve();
  }

  delivery(): Promise<Delivery | null> {
    return Promise.resolve(null);
  }
}

const writes: ReadonlySet<string> = new Set(['create', 'update', 'appendEvents', 'keep', 'hold', 'release', 'enqueue']);

/**
 * One process. Before and after each of its writes is a point where it may die; from then on nothing it waits for ever
 * comes, just as nothing more is heard of a process that got kill -9.
 */
export class Life {
  dead = false;
  readonly died: Promise<'died'>;
  #fuse: number;
  #tellDeath: () => void = () => undefined;

  /** `fuse`: how many such points it lives through; left out, it lives on. */
  constructor(fuse = Number.POSITIVE_INFINITY) {
    this.#fuse = fuse;
    this.died = new Promise((resolve) => {
      this.#tellDeath = () => {
        resolve('died');
      };
    });
  }

  die(): void {
    this.dead = true;
    this.#tellDeath();
  }

  async #point(): Promise<void> {
    if (!this.dead && this.#fuse > 0) {
      this.#fuse -= 1;
      return;
    }
    this.die();
    await new Promise(() => undefined);
  }

  async does<T>(what: string, work: () => Promise<T>): Promise<T> {
    // Others get their turn between a read and the write that rests on it.
    await Promise.resolve();
    if (writes.has(what)) await this.#point();
    else if (this.dead) await new Promise(() => undefined);
    const answer = await work();
    if (writes.has(what)) await this.#point();
    return answer;
  }

  on(db: MemoryDb): Store {
    const small: SmallStore = {
      create: (change) => this.does('create', () => db.create(change)),
      update: (change) => this.does('update', () => db.update(change)),
      get: (id) => this.does('get', () => db.get(id)),
      openFor: (host) => this.does('openFor', () => db.openFor(host)),
      list: (filter) => this.does('list', () => db.list(filter)),
      appendEvents: (events) => this.does('appendEvents', () => db.appendEvents(events)),
      keep: (wish) => this.does('keep', () => db.keep(wish)),
      kept: (host, bootId) => this.does('kept', () => db.kept(host, bootId)),
      hold: (...args) => this.does('hold', () => db.hold(...args)),
      release: (...args) => this.does('release', () => db.release(...args)),
      delivery: () => this.does('delivery', () => db.delivery()),
    };
    return new Proxy(small, {
      get(target, name) {
        if (!(name in target)) throw new Error(`the model has no store.${String(name)}`);
        return target[name as Used];
      },
    }) as Store;
  }
}
