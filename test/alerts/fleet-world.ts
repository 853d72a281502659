/** A bot whose hosts are stand-ins: real store, real queue, real jobs; only the boxes are recorded. For tests and the benchmark. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { alertJobs, requestJobs } from '../../jobs/index.ts';
import { fleetJob } from '../../jobs/fleet.ts';
import { incidentsEveryMs, incidentsJob } from '../../jobs/incidents.ts';
import { lookJob } from '../../jobs/look.ts';
import { openBackend } from '../../src/backend.ts';
import type { Box } from '../../src/box.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Deps } from '../../src/deps.ts';
import { ReclaimError } from '../../src/errors.ts';
import { parseCapture } from '../../src/memory/parse-capture.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import { systemClock } from '../../src/system-clock.ts';

const root = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const captures = {
  fine: textOf('test/fixtures/cases/samples/healthy.capture.json'),
  leftover: textOf('src/demo/recorded.capture.json'),
};

/** `dead` never answers, not even to being cut off; `down` refuses at once. */
export type Kind = 'fine' | 'leftover' | 'down' | 'dead';

const refused = () => Promise.reject(new Error('a stand-in box does nothing'));

function boxOf(host: string, kind: 'fine' | 'leftover', collectMs: number): Box {
  const box: Box = {
    host,
    hostKey: `SHA256:${host}`,
    forRun: () => box,
    journal: refused,
    async collect() {
      await systemClock.sleep(collectMs);
      return { ...parseCapture(captures[kind]), host };
    },
    kill: refused,
    removeFiles: refused,
    ipcrm: refused,
    sync: refused,
    dropCaches: refused,
    close: () => Promise.resolve(),
  };
  return box;
}

export interface FleetWorld {
  readonly deps: Deps;
  /** Starts working on sweeps here, as one worker process does. */
  work(): Promise<void>;
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly queueUrl: string;
  readonly folder: string;
  readonly hosts: readonly string[];
  readonly kindOf: (host: string) => Kind;
  readonly collectMs: number;
  /** Called when a look begins. */
  readonly seen?: (host: string) => void;
  readonly approvers?: readonly string[];
  readonly env?: Record<string, string>;
  /** Deadline of one host; left out: the product's. */
  readonly deadlineMs?: number;
}

export async function openFleet(options: FleetOptions): Promise<FleetWorld> {
  const { folder, hosts, kindOf } = options;
  const yaml = {
    hosts: Object.fromEntries(hosts.map((h) => [h, { address: '192.0.2.1' }])),
    policy: { approvers: options.approvers ?? ['U0SAM'] },
  };
  writeFileSync(join(folder, 'reclaim.yaml'), stringify(yaml));
  const config = loadConfig({ cwd: folder, env: options.env ?? {} });
  const log = pino({ level: process.env['LOG_LEVEL'] ?? 'silent' });
  const backend = await openBackend({ queueUrl: options.queueUrl, clock: systemClock, log });
  const { store, queue } = backend;
  const { policy, policyVersion } = config;
  const requests = requestService({
    store,
    clock: systemClock,
    log,
    policy: { policy, policyVersion },
    enqueue: requestJobs(queue),
  });
  const deps: Deps = {
    ...{ config, clock: systemClock, log, instance: `fleet-${process.pid}`, store, queue, requests },
    alertJobs: alertJobs(queue),
    async openBox(host) {
      options.seen?.(host);
      const kind = kindOf(host);
      if (kind === 'dead') return await new Promise<never>(() => undefined);
      if (kind === 'down') throw new ReclaimError('ssh_refused', `Nothing listens on ${host}.`);
      return boxOf(host, kind, options.collectMs);
    },
  };
  const timeoutMs = options.deadlineMs ?? fleetJob.options.timeoutMs;
  return {
    deps,
    async work() {
      await queue.work([{ ...fleetJob, options: { ...fleetJob.options, timeoutMs } }, incidentsJob, lookJob], deps);
      await queue.schedule(incidentsJob, {}, { id: 'incidents', everyMs: incidentsEveryMs });
    },
    close: () => backend.close(2_000),
  };
}
