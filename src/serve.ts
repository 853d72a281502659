/** One process of the bot: what it starts, in order, and how it ends. */
import type { Logger } from 'pino';
import { jobs, scheduleJobs } from '../jobs/index.ts';
import { compose, instanceName } from './compose.ts';
import type { Config } from './config/schema.ts';
import type { Deps } from './deps.ts';
import { asReclaimError, ReclaimError } from './errors.ts';
import { startHttp, type Check } from './http.ts';
import { createLog } from './log.ts';
import { metricsText } from './metrics.ts';
import { receiptOf } from './requests/receipt.ts';
import type { AuditEvent, RequestRecord } from './requests/types.ts';
import type { TextFile } from './slack/blocks/thread.ts';
import { requireTokens, startGateway, type Gateway, type GatewayHealth, type SlackSettings } from './slack/gateway.ts';

export const roles = ['all', 'gateway', 'worker'] as const;
export type Role = (typeof roles)[number];

export interface Server {
  readonly httpPort: number;
  stop(): Promise<void>;
}

/** Running jobs get this long to end by themselves; a kill with its grace fits in. */
const drainMs = 25_000;

/** @throws ReclaimError when a part cannot start; nothing is left running then. */
export async function serve(config: Config, role: Role): Promise<Server> {
  const instance = instanceName(role);
  const log = createLog(config.env.LOG_LEVEL, { role, instance });
  if (role !== 'worker') requireTokens(slackTokens(config));
  if (role !== 'all' && config.queueUrl.startsWith('pglite:')) {
    throw new ReclaimError(
      'config_invalid',
      `A ${role} of its own needs a queue that others can reach, so nothing was started. Set QUEUE_URL to a Redis or Postgres, or serve with --role all.`,
    );
  }
  const composition = await compose(config, instance, log);
  const { deps } = composition;
  const stops: (() => Promise<void>)[] = [() => composition.close(drainMs)];
  const stop = async (): Promise<void> => {
    // Newest first: intake ends before what it feeds.
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    sayWhoMayApprove(config, log);
    let gateway: Gateway | null = null;
    if (role !== 'gateway') {
      await deps.queue.work(jobs, deps);
      await scheduleJobs(deps.queue);
    }
    if (role !== 'worker') {
      gateway = await startGateway(deps, slackSettings(deps));
      stops.push(() => gateway?.stop() ?? Promise.resolve());
    }
    const http = await startHttp({
      host: config.env.HTTP_HOST,
      port: config.env.HTTP_PORT,
      ready: () => readiness(deps, gateway),
      metrics: () => metricsText(deps.store, deps.clock),
    });
    stops.push(() => http.close());
    log.info({ hosts: config.hosts.size, httpPort: http.port }, 'up');
    return { httpPort: http.port, stop };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

function sayWhoMayApprove(config: Config, log: Logger): void {
  const { approvers } = config.policy;
  if (approvers.length > 0) log.info({ approvers }, 'approvers');
}

async function readiness(deps: Deps, gateway: Gateway | null): Promise<Record<string, Check>> {
  const asked = async (ping: () => Promise<void>): Promise<Check> => {
    try {
      await Promise.race([
        ping(),
        deps.clock.sleep(3_000).then(() => Promise.reject(new ReclaimError('store_down', 'No answer within 3 s.'))),
      ]);
      return { ok: true, detail: 'answers' };
    } catch (thrown) {
      return { ok: false, detail: asReclaimError(thrown).userText };
    }
  };
  const [store, queue] = await Promise.all([asked(() => deps.store.ping()), asked(() => deps.queue.ping())]);
  return { store, queue, ...(gateway === null ? {} : { slack: slackCheck(await gateway.health()) }) };
}

function slackCheck({ ok, openSockets, undelivered, oldestUndeliveredAt }: GatewayHealth): Check {
  const waiting =
    undelivered === 0 ? 'nothing undelivered' : `${undelivered} undelivered since ${oldestUndeliveredAt ?? '?'}`;
  return { ok, detail: `${openSockets} sockets open, ${waiting}` };
}

function slackTokens({ env }: Config): SlackSettings {
  return { botToken: env.SLACK_BOT_TOKEN, appToken: env.SLACK_APP_TOKEN, apiUrl: env.SLACK_API_URL };
}

function slackSettings({ config, store }: Deps): SlackSettings {
  return {
    ...slackTokens(config),
    receipt: async (record) => receiptFile(record, await store.events({ request: record.id, limit: 1000 })),
  };
}

function receiptFile(record: RequestRecord, events: readonly AuditEvent[]): TextFile | undefined {
  const receipt = receiptOf(record, events);
  if (receipt === null) return undefined;
  return {
    filename: `reclaim-${record.id}.receipt.json`,
    title: `Receipt of ${record.id} on ${record.host}`,
    content: `${JSON.stringify(receipt, null, 2)}\n`,
    comment: 'The receipt: plan, people, steps and figures. `reclaim receipt FILE` verifies it offline.',
  };
}
