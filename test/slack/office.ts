/** The Slack side of the bot on a local Slack, with a real store and no workers: what jobs would do, the tests do. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { openStore } from '../../src/backend.ts';
import type { Clock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Deps } from '../../src/deps.ts';
import { ReclaimError } from '../../src/errors.ts';
import type { Queue } from '../../src/queue/types.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import type { Store } from '../../src/requests/store.ts';
import { startGateway, type Gateway } from '../../src/slack/gateway.ts';
import type { LocalSlack, LocalSlackOptions } from '../../src/standin/local-slack.ts';
import { priya, sam, startWorld } from '../standin/world.ts';

/** Time that passes as soon as everybody waits for it: an hour takes as long as the work done in it. */
export class HurryingClock implements Clock {
  #now = Date.parse('2026-11-30T20:05:00Z');
  readonly #waiting = new Set<{ due: number; wake: () => void }>();

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = {
        due: this.#now + ms,
        wake: () => {
          this.#waiting.delete(sleeper);
          signal?.removeEventListener('abort', end);
          resolve();
        },
      };
      const end = () => {
        this.#waiting.delete(sleeper);
        reject(signal?.reason instanceof Error ? signal.reason : new Error('woken'));
      };
      if (signal?.aborted === true) {
        end();
        return;
      }
      signal?.addEventListener('abort', end, { once: true });
      this.#waiting.add(sleeper);
      setImmediate(() => {
        this.#moveOn();
      });
    });
  }

  #moveOn(): void {
    const [next] = [...this.#waiting].sort((a, b) => a.due - b.due);
    if (next === undefined) return;
    this.#now = Math.max(this.#now, next.due);
    next.wake();
  }
}

export interface Office {
  readonly slack: LocalSlack;
  readonly store: Store;
  readonly deps: Deps;
  /** Ids the queue was asked to work on. */
  readonly enqueued: string[];
  /** While true the queue answers `queue_down`. */
  readonly broken: { queue: boolean; store: boolean };
  startGateway(): Promise<Gateway>;
  stopGateways(): Promise<void>;
  close(): Promise<void>;
}

function testQueue(enqueued: string[], broken: Office['broken']): Queue {
  const nothing = () => Promise.resolve();
  return {
    enqueue: (_job, _payload, { id }) => {
      if (broken.queue) return Promise.reject(new ReclaimError('queue_down', 'The queue does not answer.'));
      enqueued.push(id);
      return Promise.resolve();
    },
    work: nothing,
    schedule: nothing,
    unschedule: nothing,
    depths: () => Promise.resolve([]),
    ping: () =>
      broken.queue ? Promise.reject(new ReclaimError('queue_down', 'The queue does not answer.')) : Promise.resolve(),
    close: nothing,
  };
}

const storeDown = () =>
  new ReclaimError(
    'store_down',
    'The store does not answer, so nothing was recorded or changed. Try again in a minute.',
  );

/** The same store, until it is switched off. */
function breakable(store: Store, broken: Office['broken']): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || name === 'onDelivery' || name === 'close') {
        return typeof value === 'function'
          ? (...args: unknown[]): unknown => Reflect.apply(value, target, args)
          : value;
      }
      return (...args: unknown[]): unknown =>
        broken.store ? Promise.reject(storeDown()) : Reflect.apply(value, target, args);
    },
  });
}

/** `hosts` get names of their own so that each test has its own boxes. */
export async function openOffice(
  clock: Clock,
  options: {
    hosts?: readonly string[];
    policy?: Record<string, unknown>;
    alerts?: Record<string, unknown>;
    slack?: Partial<LocalSlackOptions>;
    /** Left out: pictures are painted for real. */
    paint?: (svg: string) => Promise<Buffer>;
  } = {},
): Promise<Office> {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-office-'));
  const slack = await startWorld(options.slack);
  const hosts = options.hosts ?? ['gpu-box-3', 'gpu-box-4'];
  const yaml = {
    hosts: Object.fromEntries(hosts.map((h) => [h, { address: '192.0.2.1', groups: ['train'] }])),
    policy: { approvers: [sam, priya], self_approval: 'never', ...options.policy },
    ...(options.alerts === undefined ? {} : { alerts: options.alerts }),
  };
  writeFileSync(join(folder, 'reclaim.yaml'), stringify(yaml));
  const env = { SLACK_BOT_TOKEN: 'xoxb-local', SLACK_APP_TOKEN: 'xapp-local', SLACK_API_URL: slack.apiUrl };
  const config = loadConfig({ cwd: folder, env });
  const log = pino({ level: process.env['LOG_LEVEL'] ?? 'silent' });
  const broken = { queue: false, store: false };
  const enqueued: string[] = [];
  const own = await openStore({ queueUrl: 'pglite:memory://', clock });
  const store = breakable(own, broken);
  const queue = testQueue(enqueued, broken);
  const { policy, policyVersion } = config;
  const enqueue = (what: string) => (id: string) => {
    if (broken.queue) return Promise.reject(new ReclaimError('queue_down', 'The queue does not answer.'));
    enqueued.push(`${what} ${id}`);
    return Promise.resolve();
  };
  const requests = requestService({
    store,
    clock,
    log,
    policy: { policy, policyVersion },
    enqueue: { look: enqueue('look'), run: enqueue('run') },
  });
  const deps: Deps = {
    config,
    clock,
    log,
    instance: 'office',
    openBox: () => Promise.reject(new ReclaimError('ssh_unreachable', 'No box here.')),
    store,
    queue,
    requests,
    alertJobs: {
      received: (_received, id) => Promise.resolve(void enqueued.push(id)),
      recheck: () => Promise.resolve(),
      sweepHost: (sweepId, host) => Promise.resolve(void enqueued.push(`sweep ${sweepId} ${host}`)),
    },
  };
  const gateways: Gateway[] = [];
  const stopGateways = async () => {
    await Promise.allSettled(gateways.splice(0).map((g) => g.stop()));
  };
  return {
    slack,
    store,
    deps,
    enqueued,
    broken,
    async startGateway() {
      const { SLACK_BOT_TOKEN: botToken, SLACK_APP_TOKEN: appToken, SLACK_API_URL: apiUrl } = config.env;
      const paint = options.paint === undefined ? {} : { paint: options.paint };
      const gateway = await startGateway(deps, { botToken, appToken, apiUrl, ...paint });
      gateways.push(gateway);
      return gateway;
    },
    stopGateways,
    async close() {
      await stopGateways();
      await slack.close();
      await own.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
