/** The Bolt app and its handlers, whichever way Slack talks to it. */
import { App, type BlockAction, type ButtonAction, type Receiver } from '@slack/bolt';
import type { Logger } from 'pino';
import { samplesKeptMs } from '../alerts/watch/sample.ts';
import { registerActions } from './actions.ts';
import { registerAlertActions } from './alert-actions.ts';
import { registerAlertMessages } from './alert-messages.ts';
import { boltLogger } from './bolt-log.ts';
import { registerCommands } from './commands.ts';
import { homeActionIds, homeView, pageOf } from './home.ts';
import { acknowledge, isFirst, type Surface } from './surface.ts';
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

/** Draws the Home tab of one person as things are now. Nobody waits for it: a failure is logged, the old one stays. */
async function showHome({ deps, client }: Surface, person: string, page: number): Promise<void> {
  try {
    const { store, config, clock } = deps;
    const hosts = [...config.hosts.keys()];
    const since = clock.now() - samplesKeptMs;
    const [records, live, days] = await Promise.all([
      store.list({ limit: 200 }),
      store.topics.live('incident'),
      Promise.all(pageOf(hosts, page).hosts.map(async (h) => [h, await store.topics.samples(h, since)] as const)),
    ]);
    const incidents = live.flatMap((topic) => (topic.kind === 'incident' ? [topic] : []));
    const facts = { hosts, records, page, days: new Map(days), incidents, notices: deps.notices?.() ?? [] };
    await client.views.publish({ user_id: person, view: homeView(facts) });
  } catch (error) {
    deps.log.warn({ err: error }, 'the Home tab could not be shown');
  }
}

function registerHome(app: App, surface: Surface): void {
  app.event('app_home_opened', async ({ event, body }) => {
    if (event.tab !== 'home') return;
    const first = await isFirst(surface, `event.${body.event_id}`).catch(() => true);
    if (first) await showHome(surface, event.user, 0);
  });
  for (const actionId of Object.values(homeActionIds)) {
    app.action<BlockAction<ButtonAction>>(actionId, async ({ ack, body, action }) => {
      await acknowledge(surface, () => ack());
      const page = Number(action.value);
      await showHome(surface, body.user.id, Number.isInteger(page) ? page : 0);
    });
  }
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
