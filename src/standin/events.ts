/** The Events API over Socket Mode: message events, app_home_opened. Unacknowledged ones are sent again, as Slack does. */
import type { Obj } from './json.ts';
import type { Change, Message } from './model.ts';
import type { Faults } from './faults.ts';
import type { Sockets } from './sockets.ts';
import { wireMessage } from './wire.ts';
import type { Workspace } from './workspace.ts';

/** Slack tries again "nearly immediately", after a minute and after five. */
const retryAfterMs = [1_000, 60_000, 300_000];

export class Events {
  readonly #ws: Workspace;
  readonly #sockets: Sockets;
  readonly #faults: Faults;
  readonly #baseUrl: () => string;
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(ws: Workspace, sockets: Sockets, faults: Faults, baseUrl: () => string) {
    this.#ws = ws;
    this.#sockets = sockets;
    this.#faults = faults;
    this.#baseUrl = baseUrl;
    ws.onChange((change) => {
      this.#fromChange(change);
    });
  }

  #fromChange(change: Change): void {
    if (change.type !== 'message' && change.type !== 'message_changed') return;
    const { message } = change;
    const channel = this.#ws.channel(message.channel);
    if (message.onlyFor !== undefined || !this.#ws.isMember(channel, this.#ws.bot.userId)) return;
    void this.send(this.#messageEvent(message, change.type === 'message_changed'));
  }

  #messageEvent(message: Message, changed: boolean): Obj {
    const shown = wireMessage(this.#ws, message, this.#baseUrl());
    const where = {
      channel: message.channel,
      channel_type: this.#ws.channel(message.channel).isPrivate ? 'group' : 'channel',
    };
    if (!changed) return { ...shown, ...where, event_ts: message.ts };
    const ts = this.#ws.nextTs();
    return {
      type: 'message',
      subtype: 'message_changed',
      message: shown,
      previous_message: shown,
      hidden: true,
      ts,
      event_ts: ts,
      ...where,
    };
  }

  /** Sends one event; the promise settles with the first attempt. */
  async send(event: Obj): Promise<void> {
    const payload = {
      token: 'local',
      team_id: this.#ws.team.id,
      api_app_id: this.#ws.bot.appId,
      event,
      type: 'event_callback',
      event_id: this.#ws.nextId('Ev'),
      event_time: Math.floor(Date.now() / 1000),
      authorizations: [
        {
          enterprise_id: null,
          team_id: this.#ws.team.id,
          user_id: this.#ws.bot.userId,
          is_bot: true,
          is_enterprise_install: false,
        },
      ],
      is_ext_shared_channel: false,
    };
    await this.#attempt(payload, 0);
  }

  async #attempt(payload: Obj, attempt: number): Promise<void> {
    const twice = attempt === 0 && this.#faults.takeDuplicate();
    const ack = await this.#sockets.deliver('events_api', payload, { retryAttempt: attempt, twice });
    const waitMs = retryAfterMs[attempt];
    if (ack.outcome === 'acked' || waitMs === undefined) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void this.#attempt(payload, attempt + 1);
    }, waitMs);
    timer.unref();
    this.#timers.add(timer);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
