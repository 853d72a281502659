/** The Bolt app and its handlers, whichever way Slack talks to it. */
import { App, type Receiver } from '@slack/bolt';
import type { Logger } from 'pino';
import { registerActions } from './actions.ts';
import { registerAlertActions } from './alert-actions.ts';
import { registerAlertMessages } from './alert-messages.ts';
import { boltLogger } from './bolt-log.ts';
import { registerCommands } from './commands.ts';
import { homeView } from './home.ts';
import { isFirst, type Surface } from './surface.ts';
import { registerViews } from './views.ts';

export interface AppOptions {
  readonly botToken: string;
  readonly apiUrl: string | undefined;
  readonly log: Logger;
}

export function buildApp({ botToken, apiUrl, log }: AppOptions, receiver: Receiver): App {
  return new App({
    token: botToken,
    receiver,
    logger: boltLogger(log),
    tokenVerificationEnabled: false,
    clientOptions: {
      ...(apiUrl === undefined ? {} : { slackApiUrl: apiUrl }),
      timeout: 10_000,
      retryConfig: { retries: 3 },
    },
  });
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
