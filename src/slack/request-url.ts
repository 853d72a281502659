/** Over HTTP: Slack posts to /slack/events, signed. For workspaces where no socket may be opened from inside. */
import { HTTPReceiver } from '@slack/bolt';
import type { Clock } from '../clock.ts';
import { buildApp, type AppOptions } from './app.ts';
import { boltLogger } from './bolt-log.ts';
import type { Ears } from './ears.ts';

export const requestPath = '/slack/events';
/** A submitted dialog of a hundred ticks has some 60 KiB; whatever is larger than this is not Slack's. */
const bodyLimitBytes = 1024 * 1024;
/** Slack's own advice for the age of a request (docs.slack.dev, verifying requests from Slack). */
const replayWindowSeconds = 5 * 60;

export interface RequestUrlOptions extends AppOptions {
  readonly signingSecret: string;
  readonly clock: Clock;
}

/**
 * Bolt checks signature, age and size. It takes a request from the future for fresh, and with it one that somebody recorded
 * to send later; that is refused here. What is sent twice within the window is told apart by its ids, as everywhere.
 */
export function requestUrl(options: RequestUrlOptions): Ears {
  const receiver = new HTTPReceiver({
    signingSecret: options.signingSecret,
    endpoints: [requestPath],
    bodyLimit: bodyLimitBytes,
    logger: boltLogger(options.log),
  });
  const app = buildApp(options, receiver);
  return {
    app,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    openSockets: () => 0,
    hears: () => true,
    listener: (request, response) => {
      const sentAtSeconds = Number(request.headers['x-slack-request-timestamp']);
      if (sentAtSeconds - options.clock.now() / 1000 > replayWindowSeconds) {
        options.log.warn('a request of Slack is dated in the future: it was refused; check the clock of this machine');
        response.writeHead(401).end();
        return;
      }
      receiver.requestListener(request, response);
    },
  };
}
