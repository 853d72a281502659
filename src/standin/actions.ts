/** What people do: type a command, click, fill in a modal. Each waits for the app's acknowledgement, as Slack's client does. */
import {
  elementsIn,
  findElement,
  initialValues,
  isEmptyState,
  labelOf,
  stateOf,
  type Entered,
  type Placed,
  type Values,
} from './elements.ts';
import type { Events } from './events.ts';
import type { Faults } from './faults.ts';
import { asObj, asText, isObj, type Obj } from './json.ts';
import { checkedView, pushModal, replaceView } from './methods/views.ts';
import { SlackRefusal, type Message, type Person, type View } from './model.ts';
import * as payloads from './payloads.ts';
import { applyResponse } from './response-url.ts';
import type { Ack, Sockets } from './sockets.ts';
import type { ResponseAddress, Triggers } from './triggers.ts';
import type { Workspace } from './workspace.ts';

export interface ActionParts {
  readonly ws: Workspace;
  readonly sockets: Sockets;
  readonly triggers: Triggers;
  readonly faults: Faults;
  readonly events: Events;
  readonly baseUrl: () => string;
}

/** The words Slack's client uses when an app did not answer. */
const failureText = {
  operation_timeout: 'the app took longer than 3 seconds to answer (operation_timeout)',
  dispatch_failed: 'the app is not connected (dispatch_failed)',
} as const;

export class Actions {
  readonly #p: ActionParts;
  /** What people have entered and not sent, by person and message or view. */
  readonly #entered = new Map<string, Values>();

  constructor(parts: ActionParts) {
    this.#p = parts;
  }

  async #deliver(person: Person, kind: string, type: string, payload: Obj): Promise<Ack> {
    const ack = await this.#p.sockets.deliver(type, payload, { twice: this.#p.faults.takeDuplicate() });
    this.#p.ws.announce({ type: 'delivery', person: person.id, kind, outcome: ack.outcome });
    return ack;
  }

  #responseUrl(address: Omit<ResponseAddress, 'madeAtMs' | 'uses'>): string {
    return `${this.#p.baseUrl()}/respond/${this.#p.triggers.openAddress(address)}`;
  }

  async command(personId: string, channelKey: string, line: string, threadTs?: string): Promise<Ack> {
    const { ws, triggers } = this.#p;
    const person = ws.person(personId);
    const channel = ws.channel(channelKey);
    const [, command = '', text = ''] = /^(\/\S+)\s*([\s\S]*)$/.exec(line.trim()) ?? [];
    if (command === '') throw new Error('A command begins with "/".');
    const thread = threadTs === undefined ? {} : { threadTs };
    const address = { person: person.id, channel: channel.id, isEphemeral: false, ...thread };
    const handles = { responseUrl: this.#responseUrl(address), triggerId: triggers.open(person.id) };
    const payload = payloads.commandPayload(ws, person, channel, { command, text }, handles);
    const ack = await this.#deliver(person, 'command', 'slash_commands', payload);
    if (ack.outcome !== 'acked') {
      ws.whisper(person.id, channel.id, `${command} failed: ${failureText[ack.outcome]}.`);
    } else if (Object.keys(ack.payload).length > 0) {
      applyResponse(ws, address, ack.payload);
    }
    return ack;
  }

  /** Something a person says in a channel. */
  say(personId: string, channelKey: string, text: string, threadTs?: string): Message {
    const { ws } = this.#p;
    const channel = ws.channel(channelKey);
    const thread = threadTs === undefined ? {} : { threadTs };
    return ws.add({ channel: channel.id, user: ws.person(personId).id, text, blocks: [], ...thread });
  }

  #place(blocks: readonly Obj[], what: string): Placed {
    const placed = findElement(blocks, what);
    if (placed !== undefined) return placed;
    const there = elementsIn(blocks).map((p) => `${asText(p.element['action_id'])} "${labelOf(p.element)}"`);
    throw new Error(`There is no "${what}" to click here. There is: ${there.join(', ') || 'nothing to click'}.`);
  }

  #valuesOf(person: string, container: string, blocks: readonly Obj[]): Values {
    const fresh = initialValues(blocks);
    const kept = this.#entered.get(`${person} ${container}`) ?? {};
    // A block that is no longer shown takes what was entered in it along.
    for (const [block, states] of Object.entries(fresh))
      for (const action of Object.keys(states)) {
        const entered = kept[block]?.[action];
        if (entered !== undefined) states[action] = entered;
      }
    return fresh;
  }

  #enter(person: string, container: string, blocks: readonly Obj[], placed: Placed, entered: Entered): void {
    const values = this.#valuesOf(person, container, blocks);
    (values[placed.blockId] ??= {})[asText(placed.element['action_id'])] = stateOf(placed.element, entered);
    this.#entered.set(`${person} ${container}`, values);
  }

  /**
   * Clicks a button, or chooses in a menu when `entered` is given. A button with a confirm dialog needs
   * `confirm: true`, as a person has to read the dialog and say yes.
   */
  async act(
    personId: string,
    on: Message | View,
    what: string,
    options: { confirm?: boolean; entered?: Entered } = {},
  ): Promise<Ack> {
    const { ws } = this.#p;
    const person = ws.person(personId);
    const isView = 'rootId' in on;
    const blocks = isView ? (on.body['blocks'] as Obj[]) : on.blocks;
    const container = isView ? on.id : on.ts;
    const placed = this.#place(blocks, what);
    if (isObj(placed.element['confirm']) && options.confirm !== true)
      throw new Error(`"${labelOf(placed.element)}" asks for confirmation first.`);
    const isButton = placed.element['type'] === 'button';
    if (!isButton) this.#enter(person.id, container, blocks, placed, options.entered ?? null);
    const action = {
      action_id: asText(placed.element['action_id']),
      block_id: placed.blockId,
      action_ts: ws.nextTs(),
      ...(isButton
        ? { type: 'button', text: placed.element['text'], ...pickKeys(placed.element, ['value', 'style', 'url']) }
        : stateOf(placed.element, options.entered ?? null)),
    };
    const values = this.#valuesOf(person.id, container, blocks);
    const acted = { blockId: placed.blockId, action, values };
    const ack = await this.#deliver(person, 'block_actions', 'interactive', this.#actionPayload(person, on, acted));
    if (ack.outcome !== 'acked') this.#sayFailed(person, on, labelOf(placed.element), failureText[ack.outcome]);
    return ack;
  }

  #actionPayload(person: Person, on: Message | View, acted: payloads.ActedOn): Obj {
    const { ws, triggers } = this.#p;
    const triggerId = triggers.open(person.id);
    if ('rootId' in on) return payloads.viewActionPayload(ws, person, on, acted, triggerId);
    const responseUrl = this.#responseUrl({
      person: person.id,
      channel: on.channel,
      messageTs: on.ts,
      isEphemeral: on.onlyFor !== undefined,
      ...(on.threadTs === undefined ? {} : { threadTs: on.threadTs }),
    });
    return payloads.messageActionPayload(ws, person, on, acted, { responseUrl, triggerId, baseUrl: this.#p.baseUrl() });
  }

  #sayFailed(person: Person, on: Message | View, label: string, why: string): void {
    if ('rootId' in on) {
      on.errors = { '': `Your choice was not taken: ${why}.` };
      this.#p.ws.announce({ type: on.type === 'home' ? 'home' : 'modals', person: person.id });
    } else this.#p.ws.whisper(person.id, on.channel, `"${label}" did not work: ${why}.`, on.threadTs);
  }

  /** Fills in a modal (by action id) and presses its button. Answers the errors shown, by block id. */
  async submit(
    personId: string,
    view: View,
    entered: Record<string, Entered> = {},
  ): Promise<Ack & { errors: Record<string, string> }> {
    const { ws, triggers } = this.#p;
    const person = ws.person(personId);
    const blocks = view.body['blocks'] as Obj[];
    for (const [actionId, value] of Object.entries(entered))
      this.#enter(person.id, view.id, blocks, this.#place(blocks, actionId), value);
    const values = this.#valuesOf(person.id, view.id, blocks);
    const missing = missingInputs(blocks, values);
    if (Object.keys(missing).length > 0) {
      view.errors = missing;
      ws.announce({ type: 'modals', person: person.id });
      return { outcome: 'acked', payload: {}, tookMs: 0, errors: missing };
    }
    const payload = payloads.viewSubmissionPayload(ws, person, view, values, triggers.open(person.id));
    const ack = await this.#deliver(person, 'view_submission', 'interactive', payload);
    if (ack.outcome === 'acked') this.#afterSubmit(person, view, ack.payload);
    else {
      view.errors = { '': `This was not sent: ${failureText[ack.outcome]}. Try again.` };
      ws.announce({ type: 'modals', person: person.id });
    }
    return { ...ack, errors: view.errors };
  }

  #afterSubmit(person: Person, view: View, answer: Obj): void {
    const { ws } = this.#p;
    const stack = ws.modals(person.id);
    view.errors = {};
    switch (answer['response_action']) {
      case 'errors':
        view.errors = Object.fromEntries(Object.entries(asObj(answer['errors'])).map(([k, v]) => [k, asText(v)]));
        {
          ws.announce({ type: 'modals', person: person.id });
          return;
        }
      case 'update': {
        this.#orSayWhy(person, view, () => {
          replaceView(ws, view, checkedView(ws, answer['view'], 'modal'));
        });
        return;
      }
      case 'push': {
        this.#orSayWhy(person, view, () => void pushModal(ws, person.id, checkedView(ws, answer['view'], 'modal')));
        return;
      }
      case 'clear': {
        ws.setModals(person.id, []);
        return;
      }
      default: {
        ws.setModals(
          person.id,
          stack.filter((v) => v !== view),
        );
        return;
      }
    }
  }

  #orSayWhy(person: Person, view: View, change: () => void): void {
    try {
      change();
    } catch (thrown) {
      if (!(thrown instanceof SlackRefusal)) throw thrown;
      view.errors = { '': `The app answered with a view Slack refuses: ${JSON.stringify(thrown.extra)}` };
      this.#p.ws.announce({ type: 'modals', person: person.id });
    }
  }

  async closeView(personId: string, view: View, options: { all?: boolean } = {}): Promise<void> {
    const { ws } = this.#p;
    const person = ws.person(personId);
    const stack = ws.modals(person.id);
    ws.setModals(person.id, options.all === true ? [] : stack.filter((v) => v !== view));
    if (view.body['notify_on_close'] === true)
      await this.#deliver(
        person,
        'view_closed',
        'interactive',
        payloads.viewClosedPayload(ws, person, view, options.all === true),
      );
  }

  async shortcut(personId: string, callbackId: string, message?: Message): Promise<Ack> {
    const { ws, triggers } = this.#p;
    const person = ws.person(personId);
    const on = message && {
      message,
      responseUrl: this.#responseUrl({
        person: person.id,
        channel: message.channel,
        messageTs: message.ts,
        isEphemeral: false,
      }),
      baseUrl: this.#p.baseUrl(),
    };
    const payload = payloads.shortcutPayload(ws, person, callbackId, triggers.open(person.id), on);
    return this.#deliver(person, 'shortcut', 'interactive', payload);
  }

  async openHome(personId: string): Promise<void> {
    const { ws, events } = this.#p;
    const person = ws.person(personId);
    const channel = ws.directChannel(person.id).id;
    const known = ws.homes.has(person.id) ? { view: { id: ws.homes.get(person.id)?.id } } : {};
    await events.send({
      type: 'app_home_opened',
      user: person.id,
      channel,
      tab: 'home',
      event_ts: ws.nextTs(),
      ...known,
    });
  }
}

function pickKeys(from: Obj, keys: readonly string[]): Obj {
  return Object.fromEntries(keys.filter((k) => from[k] !== undefined).map((k) => [k, from[k]]));
}

function missingInputs(blocks: readonly Obj[], values: Values): Record<string, string> {
  const missing: Record<string, string> = {};
  for (const { blockId, block, element } of elementsIn(blocks)) {
    if (block['type'] !== 'input' || block['optional'] === true) continue;
    if (isEmptyState(values[blockId]?.[asText(element['action_id'])]))
      missing[blockId] = 'Please complete this required field.';
  }
  return missing;
}
