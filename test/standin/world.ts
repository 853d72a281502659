/** A small workspace and a Bolt app on it, unchanged but for its address. */
import { App, LogLevel, SocketModeReceiver } from '@slack/bolt';
import { startLocalSlack, type LocalSlack, type LocalSlackOptions } from '../../src/standin/local-slack.ts';

export const priya = 'U0PRIYA';
export const sam = 'U0SAM';
export const channel = 'C0BOXES';

const tokens = { botToken: 'xoxb-local', appToken: 'xapp-local' };

export function startWorld(options: Partial<LocalSlackOptions> = {}): Promise<LocalSlack> {
  return startLocalSlack({
    people: [
      { id: priya, name: 'priya', realName: 'Priya N.', role: 'asker' },
      { id: sam, name: 'sam', realName: 'Sam K.', role: 'approver' },
      { id: 'U0FAR', name: 'far', realName: 'Far Away', isStranger: true },
    ],
    channels: [
      { id: channel, name: 'gpu-boxes' },
      { id: 'C0ELSE', name: 'elsewhere', botIsMember: false },
      { id: 'C0PRIV', name: 'secret', isPrivate: true, members: [priya], botIsMember: false },
    ],
    usergroups: [{ id: 'S0OPS', handle: 'ops', name: 'Ops', users: [sam] }],
    ...tokens,
    ...options,
  });
}

/** A started Bolt app in Socket Mode, and how to stop it. */
export async function startApp(
  slack: LocalSlack,
  wire: (app: App) => void,
): Promise<{ app: App; stop: () => Promise<void> }> {
  const receiver = new SocketModeReceiver({
    appToken: tokens.appToken,
    logLevel: LogLevel.ERROR,
    installerOptions: {
      clientOptions: {
        slackApiUrl: slack.apiUrl,
        retryConfig: { forever: true, minTimeout: 50, maxTimeout: 200, factor: 1 },
      },
    },
  });
  const app = new App({
    token: tokens.botToken,
    receiver,
    logLevel: LogLevel.ERROR,
    clientOptions: { slackApiUrl: slack.apiUrl, retryConfig: { retries: 3, minTimeout: 20 } },
  });
  wire(app);
  await app.start();
  await slack.waitFor('the app to connect', () => slack.sockets.count > 0);
  return { app, stop: () => app.stop().then(() => undefined) };
}
