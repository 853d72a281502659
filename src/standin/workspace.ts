/** The workspace in memory: people, channels, messages, views. Every change is announced once, in order. */
import { EventEmitter } from 'node:events';
import { randomBytes } from 'node:crypto';
import { asObjs, type Obj } from './json.ts';
import {
  SlackRefusal,
  type Bot,
  type Change,
  type Channel,
  type Message,
  type Person,
  type SlackFile,
  type Team,
  type Usergroup,
  type View,
} from './model.ts';

export interface WorkspaceSetup {
  readonly team: Team;
  readonly bot: Bot;
  readonly people: readonly Person[];
  readonly channels: readonly Channel[];
  readonly usergroups: readonly Usergroup[];
}

export const slackbot = 'USLACKBOT';

export class Workspace {
  readonly team: Team;
  readonly bot: Bot;
  readonly people: ReadonlyMap<string, Person>;
  readonly channels: Map<string, Channel>;
  readonly usergroups: Map<string, Usergroup>;
  readonly messages: Message[] = [];
  readonly homes = new Map<string, View>();
  readonly files = new Map<string, SlackFile>();
  /** Block types this workspace does not take (yet): a message with one is `invalid_blocks`. */
  readonly refusedBlocks = new Set<string>();
  /** Open modals of a person, the one on top last. */
  readonly #modals = new Map<string, View[]>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #lastTs = 0;

  constructor(setup: WorkspaceSetup) {
    this.team = setup.team;
    this.bot = setup.bot;
    this.people = new Map(setup.people.map((p) => [p.id, p]));
    this.channels = new Map(setup.channels.map((c) => [c.id, c]));
    this.usergroups = new Map(setup.usergroups.map((g) => [g.id, g]));
  }

  announce(change: Change): void {
    this.#events.emit('change', change);
  }

  /** Returns the function that stops listening. */
  onChange(listener: (change: Change) => void): () => void {
    this.#events.on('change', listener);
    return () => void this.#events.off('change', listener);
  }

  /** Timestamps name messages, so no two are the same and they only grow. */
  nextTs(): string {
    this.#lastTs = Math.max(Date.now() * 1000, this.#lastTs + 1);
    const text = String(this.#lastTs);
    return `${text.slice(0, -6)}.${text.slice(-6)}`;
  }

  nextId(prefix: string): string {
    return prefix + randomBytes(5).toString('hex').toUpperCase();
  }

  person(id: string): Person {
    const person = this.people.get(id);
    if (person === undefined) throw new SlackRefusal('user_not_found');
    return person;
  }

  /** By id, by `name` or `#name`, or, for a person's id, their direct conversation with the app. */
  channel(key: string): Channel {
    const found = this.channels.get(key) ?? [...this.channels.values()].find((c) => c.name === key.replace(/^#/, ''));
    if (found !== undefined) return found;
    if (this.people.has(key)) return this.directChannel(key);
    throw new SlackRefusal('channel_not_found');
  }

  directChannel(person: string): Channel {
    const id = `D${person.slice(1)}`;
    const known = this.channels.get(id);
    if (known !== undefined) return known;
    const made: Channel = { id, name: `dm-${this.person(person).name}`, isPrivate: true, members: [person] };
    this.channels.set(id, made);
    return made;
  }

  membersOf(channel: Channel): string[] {
    const people = channel.members ?? [...this.people.values()].filter((p) => p.isDeleted !== true).map((p) => p.id);
    return channel.botIsMember === false ? [...people] : [...people, this.bot.userId];
  }

  isMember(channel: Channel, user: string): boolean {
    return this.membersOf(channel).includes(user);
  }

  find(channel: string, ts: string): Message | undefined {
    return this.messages.find((m) => m.channel === channel && m.ts === ts && m.onlyFor === undefined);
  }

  findEphemeral(person: string, ts: string): Message | undefined {
    return this.messages.find((m) => m.ts === ts && m.onlyFor === person);
  }

  add(draft: Omit<Message, 'ts' | 'files' | 'reactions'> & { files?: SlackFile[] }): Message {
    const message: Message = { ...draft, ts: this.nextTs(), files: draft.files ?? [], reactions: [] };
    this.messages.push(message);
    this.announce({ type: 'message', message });
    return message;
  }

  changed(message: Message): void {
    this.announce({ type: 'message_changed', message });
  }

  remove(message: Message): void {
    const at = this.messages.indexOf(message);
    if (at >= 0) this.messages.splice(at, 1);
    const only = message.onlyFor === undefined ? {} : { onlyFor: message.onlyFor };
    this.announce({ type: 'message_deleted', channel: message.channel, ts: message.ts, ...only });
  }

  /** A line only this person sees, said by Slack itself: what a failed command or click looks like to them. */
  whisper(person: string, channel: string, text: string, threadTs?: string): Message {
    const thread = threadTs === undefined ? {} : { threadTs };
    return this.add({ channel, user: slackbot, text, blocks: [], onlyFor: person, ...thread });
  }

  modals(person: string): readonly View[] {
    return this.#modals.get(person) ?? [];
  }

  setModals(person: string, views: readonly View[]): void {
    this.#modals.set(person, [...views]);
    this.announce({ type: 'modals', person });
  }

  view(id: string): View | undefined {
    for (const stack of this.#modals.values()) for (const view of stack) if (view.id === id) return view;
    return [...this.homes.values()].find((v) => v.id === id);
  }

  newHash(): string {
    return `${Math.floor(Date.now() / 1000)}.${randomBytes(4).toString('hex')}`;
  }

  /** Slack gives every block an id where the app gave none. */
  withBlockIds(blocks: readonly Obj[]): Obj[] {
    return asObjs(blocks).map((b) =>
      typeof b['block_id'] === 'string' && b['block_id'] !== ''
        ? b
        : { ...b, block_id: randomBytes(4).toString('base64url') },
    );
  }
}
