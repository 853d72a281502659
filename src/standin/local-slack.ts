/** A Slack workspace on this machine, for tests and the demo. See README.md beside this file. */
import { Actions } from './actions.ts';
import { Api } from './api.ts';
import type { BoxChoice, GuideStep } from './box-choice.ts';
import type { Entered } from './elements.ts';
import { Events } from './events.ts';
import type { PageFacts } from './local-routes.ts';
import { Faults } from './faults.ts';
import type { Bot, Change, Channel, Message, Person, Team, Usergroup, View } from './model.ts';
import { startHttp } from './server.ts';
import { Sockets, type Ack } from './sockets.ts';
import { Triggers } from './triggers.ts';
import { Workspace } from './workspace.ts';

export interface LocalSlackOptions {
  /** Left out: a free port. The server listens on 127.0.0.1 only. */
  readonly port?: number;
  readonly people: readonly Person[];
  readonly channels: readonly Channel[];
  readonly usergroups?: readonly Usergroup[];
  readonly botToken: string;
  readonly appToken: string;
  readonly team?: Team;
  readonly bot?: Partial<Bot>;
  /** OAuth scopes of the bot token; left out: all that the methods here ask for. */
  readonly scopes?: readonly string[];
  /** Slack's rate tiers; on unless switched off. */
  readonly rateLimits?: boolean;
  /** Slash commands to offer in the composer. */
  readonly commands?: PageFacts['commands'];
  /** What the box panel of the page shows; left out: this machine. */
  readonly boxName?: string;
  /** What the visitor may make of the box. */
  readonly box?: BoxChoice;
  /** Steps for a first visitor. */
  readonly guide?: readonly GuideStep[];
}

/** One person at a keyboard. */
export interface Actor {
  readonly id: string;
  /** `command('C…', '/reclaim gpu-box-3')`; settles when the app has acknowledged, or not, after 3 s. */
  command(channel: string, line: string): Promise<Ack>;
  say(channel: string, text: string, threadTs?: string): Message;
  /** `what` is an action id or the beginning of a label. A button with a dialog needs `confirm: true`. */
  click(on: Message | View, what: string, options?: { confirm?: boolean }): Promise<Ack>;
  /** Chooses option values in a menu or checkboxes outside of an input block. */
  choose(on: Message | View, actionId: string, entered: Entered, options?: { confirm?: boolean }): Promise<Ack>;
  /** `values` by action id: a text, an option's value, or several. */
  submit(view: View, values?: Record<string, Entered>): Promise<Ack & { errors: Record<string, string> }>;
  close(view: View): Promise<void>;
  shortcut(callbackId: string, message?: Message): Promise<Ack>;
  /** Opens the Home tab; the app's answer arrives as `home()`. */
  openHome(): Promise<void>;
  /** The open modal on top. */
  modal(): View | undefined;
  home(): View | undefined;
  /** Messages only this person sees. */
  ephemerals(channel?: string): Message[];
}

export interface LocalSlack {
  readonly url: string;
  /** For Bolt: `clientOptions.slackApiUrl`. Ends with a slash. */
  readonly apiUrl: string;
  readonly workspace: Workspace;
  readonly faults: Faults;
  readonly sockets: Sockets;
  actAs(person: string): Actor;
  /** What everybody sees in a channel, oldest first, thread replies included. */
  messages(channel: string): Message[];
  thread(channel: string, ts: string): Message[];
  /** Another app's message, such as an alert. */
  postAsApp(
    name: string,
    channel: string,
    text: string,
    blocks?: Message['blocks'],
    attachments?: Message['blocks'],
  ): Message;
  /** That app edits its message. */
  editAsApp(message: Message, to: { text?: string; attachments?: Message['blocks'] }): void;
  onChange(listener: (change: Change) => void): () => void;
  /** Asks now and after every change until the answer is neither undefined nor false; fails after `timeoutMs` (default 20 s). */
  waitFor<T>(
    what: string,
    ask: () => T | undefined | false,
    options?: { timeoutMs?: number; signal?: AbortSignal },
  ): Promise<T>;
  close(): Promise<void>;
}

const allScopes = [
  'commands,chat:write,channels:read,groups:read,channels:history,groups:history,usergroups:read,users:read',
  'files:write,files:read,im:write,reactions:write,team:read',
].flatMap((s) => s.split(','));

export async function startLocalSlack(options: LocalSlackOptions): Promise<LocalSlack> {
  const team = options.team ?? { id: 'T0LOCAL', name: 'Local', domain: 'local' };
  const bot: Bot = { userId: 'U0RECLAIM', botId: 'B0RECLAIM', appId: 'A0RECLAIM', name: 'Reclaim', ...options.bot };
  const { people, channels, usergroups = [] } = options;
  const ws = new Workspace({ team, bot, people, channels, usergroups });
  const faults = new Faults();
  const triggers = new Triggers();
  const sockets = new Sockets(bot.appId, (open) => {
    ws.announce({ type: 'sockets', open });
  });
  let url = '';
  const baseUrl = () => url;
  const events = new Events(ws, sockets, faults, baseUrl);
  const actions = new Actions({ ws, sockets, triggers, faults, events, baseUrl });
  const { botToken, appToken, scopes = allScopes, rateLimits = true } = options;
  const api = new Api({ ws, triggers, faults, sockets, botToken, appToken, scopes, rateLimits, baseUrl });
  const page: PageFacts = {
    commands: options.commands ?? [],
    boxName: options.boxName ?? 'this machine',
    guide: options.guide ?? [],
    ...(options.box === undefined ? {} : { box: options.box }),
  };
  const http = await startHttp({ ws, api, triggers, sockets, faults, actions, page }, options.port ?? 0);
  url = http.url;
  return {
    url,
    apiUrl: `${url}/api/`,
    workspace: ws,
    faults,
    sockets,
    actAs: (person) => actorFor(ws, actions, ws.person(person).id),
    messages: (channel) => messagesIn(ws, channel),
    thread: (channel, ts) => messagesIn(ws, channel).filter((m) => m.ts === ts || m.threadTs === ts),
    postAsApp: (name, channel, text, blocks = [], attachments) =>
      ws.add({
        channel: ws.channel(channel).id,
        user: 'U0OTHERAPP',
        botId: 'B0OTHERAPP',
        username: name,
        text,
        blocks,
        ...(attachments === undefined ? {} : { attachments }),
      }),
    editAsApp: (message, { text, attachments }) => {
      if (text !== undefined) message.text = text;
      if (attachments !== undefined) message.attachments = attachments;
      message.editedTs = ws.nextTs();
      ws.changed(message);
    },
    onChange: (listener) => ws.onChange(listener),
    waitFor: (what, ask, o) => waitFor(ws, what, ask, o),
    close: async () => {
      events.close();
      sockets.close();
      await http.close();
    },
  };
}

function messagesIn(ws: Workspace, key: string): Message[] {
  const { id } = ws.channel(key);
  return ws.messages.filter((m) => m.channel === id && m.onlyFor === undefined);
}

function actorFor(ws: Workspace, actions: Actions, id: string): Actor {
  return {
    id,
    command: (channel, line) => actions.command(id, channel, line),
    say: (channel, text, threadTs) => actions.say(id, channel, text, threadTs),
    click: (on, what, o) => actions.act(id, on, what, o),
    choose: (on, actionId, entered, o) => actions.act(id, on, actionId, { ...o, entered }),
    submit: (view, values) => actions.submit(id, view, values),
    close: (view) => actions.closeView(id, view),
    shortcut: (callbackId, message) => actions.shortcut(id, callbackId, message),
    openHome: () => actions.openHome(id),
    modal: () => ws.modals(id).at(-1),
    home: () => ws.homes.get(id),
    ephemerals: (channel) =>
      ws.messages.filter((m) => m.onlyFor === id && (channel === undefined || m.channel === ws.channel(channel).id)),
  };
}

function waitFor<T>(
  ws: Workspace,
  what: string,
  ask: () => T | undefined | false,
  { timeoutMs = 20_000, signal }: { timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      stop();
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
    };
    const look = () => {
      try {
        const answer = ask();
        if (answer === undefined || answer === false) return;
        end();
        resolve(answer);
      } catch (thrown) {
        end();
        reject(thrown instanceof Error ? thrown : new Error(String(thrown)));
      }
    };
    const aborted = () => {
      end();
      reject(new Error(`Stopped waiting for ${what}.`));
    };
    const stop = ws.onChange(look);
    const timer = setTimeout(() => {
      end();
      reject(new Error(`Waited ${timeoutMs / 1000} s for ${what}; it did not come.`));
    }, timeoutMs);
    signal?.addEventListener('abort', aborted);
    look();
  });
}
