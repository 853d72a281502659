/** The Bolt app: two sockets feeding one set of handlers, so that a planned reconnect loses no click. */
import { App, SocketModeReceiver } from '@slack/bolt';
import type { Logger } from 'pino';
import { registerActions } from './actions.ts';
import { registerAlertActions } from './alert-actions.ts';
import { registerAlertMessages } from './alert-messages.ts';
import { boltLogger } from './bolt-log.ts';
import { registerCommands } from './commands.ts';
import { homeView } from './home.ts';
import { isFirst, type Surface } from './surface.ts';
import { registerViews } from './views.ts';

export interface SocketOptions {
  readonly appToken: string;
  readonly botToken: string;
  readonly apiUrl: string | undefined;
  readonly log: Logger;
}

export interface Socket {
  readonly receiver: SocketModeReceiver;
  /** When it connected last, or null. */
  connectedAt: number | null;
}

/** Sockets each gateway opens: while one is replaced, the other still hears. */
export const receiversPerApp = 2;

/**
 * Each receiver gets options of its own: socket-mode and web-api write into them. `forever`, because a receiver whose
 * retries run out stays deaf; a short ping timeout, because it also is the wait before every reconnect.
 */
function receiverFor({ appToken, apiUrl, log }: SocketOptions): SocketModeReceiver {
  return new SocketModeReceiver({
    appToken,
    logger: boltLogger(log),
    clientPingTimeout: 5000,
    installerOptions: {
      clientOptions: {
        ...(apiUrl === undefined ? {} : { slackApiUrl: apiUrl }),
        timeout: 10_000,
        retryConfig: { forever: true, minTimeout: 500, maxTimeout: 15_000, factor: 1.5 },
      },
    },
  });
}

export function buildApp(options: SocketOptions): { app: App; receivers: SocketModeReceiver[] } {
  const receivers = Array.from({ length: receiversPerApp }, () => receiverFor(options));
  const [first, ...others] = receivers;
  const app = new App({
    token: options.botToken,
    ...(first === undefined ? {} : { receiver: first }),
    logger: boltLogger(options.log),
    tokenVerificationEnabled: false,
    clientOptions: {
      ...(options.apiUrl === undefined ? {} : { slackApiUrl: options.apiUrl }),
      timeout: 10_000,
      retryConfig: { retries: 3 },
    },
  });
  for (const receiver of others) receiver.init(app);
  return { app, receivers };
}

function registerHome(app: App, surface: Surface): void {
  app.event('app_home_opened', async ({ event, body }) => {
    if (event.tab !== 'home') return;
    const { deps, client } = surface;
    try {
      if (!(await isFirst(surface, `event.${body.event_id}`))) return;
      const records = await deps.store.list({ limit: 200 });
      await client.views.publish({
        user_id: event.user,
        view: homeView({ hosts: [...deps.config.hosts.keys()], records, notices: deps.notices?.() ?? [] }),
      });
    } catch (error) {
      deps.log.warn({ err: error }, 'the Home tab could not be shown');
    }
  });
}

export function registerHandlers(app: App, surface: Surface): void {
  registerCommands(app, surface);
  registerActions(app, surface);
  registerViews(app, surface);
  registerHome(app, surface);
  registerAlertMessages(app, surface);
  registerAlertActions(app, surface);
  app.error((error) => {
    surface.deps.log.error({ err: error }, 'Bolt could not handle something');
    return Promise.resolve();
  });
}
