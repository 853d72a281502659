/** What a workspace is made of. Ids look like Slack's (`U…`, `C…`, `S…`), timestamps too (`1730000000.000100`). */
import type { Obj } from './json.ts';

export interface Person {
  readonly id: string;
  /** The handle: `@priya`. */
  readonly name: string;
  readonly realName: string;
  /** Shown beside the persona switch: "asker", "approver". */
  readonly role?: string;
  readonly isGuest?: boolean;
  /** Somebody of another workspace, as in a Slack Connect channel: `team_id` differs and `is_stranger` is set. */
  readonly isStranger?: boolean;
  readonly isDeleted?: boolean;
  readonly timeZone?: string;
}

export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly topic?: string;
  readonly isPrivate?: boolean;
  readonly isExtShared?: boolean;
  readonly isArchived?: boolean;
  /** Ids of people. Left out: everybody. */
  readonly members?: readonly string[];
  /** Whether the app was invited. Left out: yes. */
  readonly botIsMember?: boolean;
}

export interface Usergroup {
  readonly id: string;
  readonly handle: string;
  readonly name: string;
  readonly users: readonly string[];
}

export interface Team {
  readonly id: string;
  readonly name: string;
  readonly domain: string;
}

export interface Bot {
  readonly userId: string;
  readonly botId: string;
  readonly appId: string;
  readonly name: string;
}

export interface SlackFile {
  readonly id: string;
  readonly name: string;
  title: string;
  readonly mimetype: string;
  readonly altText: string;
  readonly bytes: Buffer;
  readonly createdSeconds: number;
}

export interface Message {
  readonly channel: string;
  readonly ts: string;
  /** Who wrote it: a person's id, the app's user id, or `USLACKBOT` for Slack itself. */
  readonly user: string;
  readonly botId?: string;
  /** Name of another app that posted it, such as an alerting bot. */
  readonly username?: string;
  text: string;
  blocks: Obj[];
  /** Old-style attachments, as other apps still send them. */
  attachments?: Obj[];
  metadata?: Obj;
  readonly threadTs?: string;
  editedTs?: string;
  files: SlackFile[];
  reactions: { name: string; users: string[] }[];
  /** Set for a message only this person sees. */
  readonly onlyFor?: string;
  /** Replies shown in the channel as well. */
  readonly alsoInChannel?: boolean;
}

export interface View {
  readonly id: string;
  readonly person: string;
  readonly type: 'modal' | 'home';
  hash: string;
  /** The payload the app sent: title, blocks, submit, callback_id, private_metadata… */
  body: Obj;
  readonly rootId: string;
  readonly previousId?: string;
  /** Errors by block_id, from `response_action: errors`. */
  errors: Record<string, string>;
}

/** Everything that can happen, in order, for pages and tests that wait on it. */
export type Change =
  | { readonly type: 'message'; readonly message: Message }
  | { readonly type: 'message_changed'; readonly message: Message }
  | { readonly type: 'message_deleted'; readonly channel: string; readonly ts: string; readonly onlyFor?: string }
  | { readonly type: 'modals'; readonly person: string }
  | { readonly type: 'home'; readonly person: string }
  | { readonly type: 'sockets'; readonly open: number }
  | { readonly type: 'delivery'; readonly person: string; readonly kind: string; readonly outcome: string }
  | { readonly type: 'call'; readonly method: string; readonly ok: boolean; readonly error?: string };

/** An answer Slack gives when a method fails: `{ok: false, error}` with HTTP 200. */
export class SlackRefusal extends Error {
  readonly code: string;
  readonly extra: Obj;

  constructor(code: string, extra: Obj = {}) {
    super(code);
    this.code = code;
    this.extra = extra;
  }
}

/** Slack lists what is wrong with a payload in `response_metadata.messages`. */
export function refuseWith(code: string, messages: readonly string[]): SlackRefusal {
  return new SlackRefusal(code, { response_metadata: { messages: [...messages] } });
}
