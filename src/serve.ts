/** One process of the bot: what it starts, in order, and how it ends. */
import type { Logger } from 'pino';
import { jobs, scheduleJobs } from '../jobs/index.ts';
import { alertReceiver } from './alerts/receiver.ts';
import { compose, instanceName, type Composition } from './compose.ts';
import { liveConfig, type LiveConfig } from './config/live.ts';
import type { Config } from './config/schema.ts';
import { ReclaimError } from './errors.ts';
import { startHttp } from './http.ts';
import { createLog, jobLog } from './log.ts';
import type { Meters } from './meters.ts';
import { metricsText } from './metrics.ts';
import { startPresence, type Presence } from './presence.ts';
import type { RunnableJob } from './queue/types.ts';
import { readiness } from './readiness.ts';
import { release } from './release.ts';
import { receiptFile } from './receipt-file.ts';
import { requireTokens, startGateway, type Gateway, type SlackSettings } from './slack/gateway.ts';
import { socketsPerGateway } from './slack/sockets.ts';

export const roles = ['all', 'gateway', 'worker'] as const;
export type Role = (typeof roles)[number];

export interface Server {
  readonly httpPort: number;
  /** Puts the configuration `load` returns in force, or keeps the old one and says why. Never rejects. */
  reload(load: () => Config): Promise<'done' | 'refused'>;
  /** Takes nothing new, finishes what it can within the deadline, then lets go. */
  stop(): Promise<void>;
}

/** Running jobs get this long to end by themselves; a kill with its grace fits in. */
const drainMs = 25_000;

/** What one process has, as far as it is up. */
interface Up {
  readonly role: Role;
  readonly live: LiveConfig;
  readonly composition: Composition;
  gateway: Gateway | null;
  presence: Presence | null;
  draining: boolean;
}

/** @throws ReclaimError when a part cannot start; nothing is left running then. */
export async function serve(config: Config, role: Role): Promise<Server> {
  const instance = instanceName(role);
  const log = createLog(config.env.LOG_LEVEL, { role, instance });
  checkRole(config, role);
  const live = liveConfig(config);
  const notices = (): string[] => [...(live.notice === null ? [] : [live.notice]), ...(up.presence?.notices() ?? [])];
  const composition = await compose({ config: live.config, instance, log, notices });
  const up: Up = { role, live, composition, gateway: null, presence: null, draining: false };
  const stops: (() => Promise<void>)[] = [() => composition.close(drainMs)];
  const stop = async (): Promise<void> => {
    up.draining = true;
    // Newest first: intake ends before what it feeds.
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    const httpPort = await start(up, stops);
    log.info({ hosts: config.hosts.size, httpPort, release: release(), policy: config.policyVersion }, 'up');
    return { httpPort, stop, reload: (load) => reload(up, load) };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

function checkRole(config: Config, role: Role): void {
  if (role !== 'worker') requireTokens(slackTokens(config));
  if (role !== 'all' && config.queueUrl.startsWith('pglite:')) {
    throw new ReclaimError(
      'config_invalid',
      `A ${role} of its own needs a queue that others can reach, so nothing was started. Set QUEUE_URL to a Redis or Postgres, or serve with --role all.`,
    );
  }
}

/** Brings up what the role needs; each part leaves its end in `stops`. Answers the port of the HTTP side. */
async function start(up: Up, stops: (() => Promise<void>)[]): Promise<number> {
  const { role, composition } = up;
  const { deps, meters } = composition;
  const { config, log } = deps;
  sayWhoMayApprove(config, log);
  const http = await startHttp({
    host: config.env.HTTP_HOST,
    port: config.env.HTTP_PORT,
    ready: () => readiness({ deps, gateway: up.gateway, draining: up.draining }),
    metrics: () => metrics(up),
    alerts: alertReceiver(deps),
    slack: () => up.gateway?.listener ?? null,
  });
  // Answers to the end, so that whoever asks can see the process drain.
  stops.unshift(() => http.close());
  if (role !== 'gateway') {
    await deps.queue.work(
      jobs.map((job) => metered(job, meters)),
      deps,
    );
    await scheduleJobs(deps.queue, deps.config);
  }
  await showQueue(config, stops);
  const presence = presenceOf(up);
  stops.push(() => presence.stop());
  up.presence = presence;
  if (role !== 'worker') {
    const gateway = await startGateway(deps, slackSettings(up));
    stops.push(() => gateway.stop());
    up.gateway = gateway;
  }
  const deployment = await deps.store.deployment();
  meters.replace('reclaim_build_info', [[{ release: release(), node: process.versions.node, role, deployment }, 1]]);
  return http.port;
}

async function showQueue({ env, queueUrl }: Config, stops: (() => Promise<void>)[]): Promise<void> {
  if (env.QUEUE_VIEW_PORT === undefined) return;
  const { startQueueView } = await import('./queue/view.ts');
  const view = await startQueueView({
    ...{ queueUrl, jobs: jobs.map((job) => job.name) },
    ...{ host: env.QUEUE_VIEW_HOST, port: env.QUEUE_VIEW_PORT, token: env.QUEUE_VIEW_TOKEN },
  });
  stops.push(() => view.close());
}

function presenceOf(up: Up): Presence {
  const { deps, meters } = up.composition;
  const { store, clock, log, instance, config } = deps;
  const startedAt = new Date(clock.now()).toISOString();
  return startPresence({
    ...{ store, clock, log, socketsPerGateway },
    describe: () => ({
      ...{ instance, role: up.role, startedAt, release: release() },
      policyVersion: config.policyVersion,
      sockets: up.gateway?.openSockets() ?? 0,
    }),
    foreignSockets: (count) => {
      meters.replace('reclaim_slack_foreign_sockets', [[{}, count]]);
    },
  });
}

/** The same job, counted and timed, with its ids in every line it logs. */
function metered(job: RunnableJob, meters: Meters): RunnableJob {
  return {
    name: job.name,
    options: job.options,
    handle: (data, deps, signal) =>
      meters.job(job.name, () => job.handle(data, { ...deps, log: jobLog(deps.log, job.name, data) }, signal)),
  };
}

async function metrics(up: Up): Promise<string> {
  const { deps, meters } = up.composition;
  const checks = await readiness({ deps, gateway: up.gateway, draining: up.draining });
  const rows = Object.entries(checks).map(([part, { ok }]) => [{ part }, ok ? 1 : 0] as const);
  meters.replace('reclaim_ready', rows);
  if (up.gateway !== null) meters.replace('reclaim_slack_sockets', [[{}, up.gateway.openSockets()]]);
  return await metricsText({ ...deps, meters });
}

async function reload(up: Up, load: () => Config): Promise<'done' | 'refused'> {
  const { deps, meters } = up.composition;
  const result = up.live.reload(load, new Date(deps.clock.now()));
  meters.count('reclaim_config_reloads_total', { result });
  if (result === 'refused') {
    deps.log.error({ policy: deps.config.policyVersion }, up.live.notice ?? 'the reload was refused');
    return result;
  }
  up.composition.hostsChanged();
  if (up.role !== 'gateway') {
    await scheduleJobs(deps.queue, deps.config).catch((error: unknown) => {
      deps.log.warn({ err: error }, 'the schedules could not be renewed; they follow at the next start');
    });
  }
  sayWhoMayApprove(deps.config, deps.log);
  const { hosts, policyVersion } = deps.config;
  deps.log.info({ hosts: hosts.size, policy: policyVersion }, up.live.notice ?? 'the configuration was reloaded');
  return result;
}

function sayWhoMayApprove(config: Config, log: Logger): void {
  const { approvers } = config.policy;
  if (approvers.length > 0) log.info({ approvers }, 'approvers');
}

function slackTokens({ env }: Config): SlackSettings {
  return {
    botToken: env.SLACK_BOT_TOKEN,
    appToken: env.SLACK_APP_TOKEN,
    signingSecret: env.SLACK_SIGNING_SECRET,
    apiUrl: env.SLACK_API_URL,
  };
}

function slackSettings(up: Up): SlackSettings {
  const { deps, meters } = up.composition;
  return {
    ...slackTokens(deps.config),
    receipt: receiptFile(deps.store),
    fetch: meters.slackFetch,
    retried: (reason) => {
      meters.count('reclaim_slack_retries_total', { reason });
    },
    heard: (connections) => up.presence?.heard(connections),
  };
}
