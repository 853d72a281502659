import type { Args } from '../args.ts';
import type { Obj } from '../json.ts';
import type { Triggers } from '../triggers.ts';
import type { Workspace } from '../workspace.ts';

/** What a Web API method may use. */
export interface MethodContext {
  readonly ws: Workspace;
  readonly args: Args;
  readonly triggers: Triggers;
  /** `http://127.0.0.1:PORT`, for addresses handed out. */
  readonly baseUrl: string;
}

/** `scope` as documented by Slack for the method; `perMinute` is its rate tier. */
export interface Method {
  readonly scope?: string;
  readonly token?: 'app';
  readonly perMinute: number;
  readonly perChannelPerSecond?: number;
  run(context: MethodContext): Obj;
}

/** Rate tiers of docs.slack.dev, calls a minute. */
export const tier = { one: 1, two: 20, three: 50, four: 100 } as const;
