/** How the bot hears people: over sockets it opens itself, or over HTTP requests that Slack sends. The handlers are the same. */
import type { RequestListener } from 'node:http';
import type { App } from '@slack/bolt';

export interface Ears {
  readonly app: App;
  /** Settles once something can be heard. @throws ReclaimError slack_failed */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Sockets that are open now; none over HTTP. */
  openSockets(): number;
  /** Whether anything said now would be heard. */
  hears(): boolean;
  /** For POST /slack/events; null where Slack talks over sockets. */
  readonly listener: RequestListener | null;
}
