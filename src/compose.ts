/** The composition root: the one place where parts meet. Everything else is handed what it needs. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { pino, type Logger } from 'pino';
import { alertJobs, jobs, requestJobs } from '../jobs/index.ts';
import { openBackend, openStore } from './backend.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/schema.ts';
import type { Deps } from './deps.ts';
import { Meters } from './meters.ts';
import { ReclaimError } from './errors.ts';
import { release } from './release.ts';
import { requestService, type RequestServiceOptions } from './requests/service-impl.ts';
import type { Tracing } from './queue/tracing.ts';
import type { RequestService } from './requests/service.ts';
import type { Store } from './requests/store.ts';
import { openBoxes } from './ssh/open-box.ts';
import type { RoadSettings } from './ssh/road.ts';
import { systemClock } from './system-clock.ts';

/** A connection is kept this long for the next job of its host. */
const idleMs = 30_000;

export interface Composition {
  readonly deps: Deps;
  /** What this process counts of itself. */
  readonly meters: Meters;
  /** To be called when the hosts of the configuration changed: new work goes to them, work under way ends as it began. */
  hostsChanged(): void;
  /** Stops intake, waits for running jobs up to the deadline, then closes everything. */
  close(deadlineMs: number): Promise<void>;
}

export interface Serving {
  /** May be a live one: every part reads what is in force. */
  readonly config: Config;
  readonly instance: string;
  readonly log: Logger;
  readonly notices: () => readonly string[];
}

/** Everything a serving process needs. @throws ReclaimError store_down, store_busy, store_schema, queue_down */
export async function compose({ config, instance, log, notices }: Serving): Promise<Composition> {
  const clock = systemClock;
  const meters = new Meters();
  const tracing = await tracingFor(config, instance);
  const backend = await openBackend({
    ...{ queueUrl: config.queueUrl, clock, log, jobs: jobs.map((job) => job.name) },
    telemetry: tracing?.telemetry,
  });
  const { store, queue } = backend;
  const open = () => openBoxes({ ...roadSettings(config, clock), log, limits: { idleMs } });
  const boxes = [open()];
  const openBox: Deps['openBox'] = (...asked) =>
    meters.opening(async () => {
      const newest = boxes.at(-1);
      if (newest === undefined) throw new ReclaimError('internal', 'This process ends. Nothing was connected.');
      return await newest.openBox(...asked);
    });
  const requests = serviceOver(config, store, log, requestJobs(queue));
  return {
    deps: { config, clock, log, instance, openBox, store, queue, requests, alertJobs: alertJobs(queue), notices },
    meters,
    hostsChanged() {
      // The old ones close their connections by themselves when nobody used them for a while.
      boxes.push(open());
    },
    async close(deadlineMs) {
      await backend.close(deadlineMs);
      for (const each of boxes.splice(0)) each.close();
      await tracing?.close();
    },
  };
}

async function tracingFor({ env }: Config, instance: string): Promise<Tracing | null> {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return null;
  const { startTracing } = await import('./queue/tracing.ts');
  return startTracing(endpoint, { instance, release: release() });
}

export interface Records {
  readonly instance: string;
  readonly store: Store;
  readonly requests: RequestService;
  close(): Promise<void>;
}

/**
 * Store and rules for a command in a terminal. With the embedded store that is a running serve's, through its socket.
 * Nothing is put on the queue: what is asked in a terminal is worked by that terminal.
 */
export async function openRecords(config: Config): Promise<Records> {
  const store = await openStore({ queueUrl: config.queueUrl, clock: systemClock });
  const nowhere = { look: () => Promise.resolve(), run: () => Promise.resolve() };
  const requests = serviceOver(config, store, pino({ level: 'silent' }), nowhere);
  return { instance: instanceName('cli'), store, requests, close: () => store.close() };
}

function serviceOver(
  config: Config,
  store: Store,
  log: Logger,
  enqueue: RequestServiceOptions['enqueue'],
): RequestService {
  // The configuration itself, not a copy of it: it may be replaced while the program runs.
  return requestService({ store, clock: systemClock, log, policy: config, enqueue });
}

/** What the road to the boxes takes from the configuration. */
export function roadSettings(config: Config, clock: Clock): RoadSettings {
  return {
    hosts: config.hosts,
    clock,
    agentSocket: config.env.SSH_AUTH_SOCK,
    passphrase: config.env.RECLAIM_SSH_PASSPHRASE,
  };
}

/** Names a process in leases and logs. */
export const instanceName = (role: string): string =>
  `${role}-${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`;
