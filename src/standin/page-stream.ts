/** Server-sent events for one page: a snapshot, then every change its person may see, and the box every two seconds. */
import type { ServerResponse } from 'node:http';
import { readBox } from './box-panel.ts';
import type { Faults } from './faults.ts';
import type { Obj } from './json.ts';
import type { PageFacts } from './local-routes.ts';
import type { Change, Message, View } from './model.ts';
import type { Sockets } from './sockets.ts';
import { wireMessage, wireView } from './wire.ts';
import type { Workspace } from './workspace.ts';

const boxEveryMs = 2_000;

interface StreamParts {
  readonly ws: Workspace;
  readonly sockets: Sockets;
  readonly faults: Faults;
  readonly page: PageFacts;
}

function shown(ws: Workspace, m: Message): Obj {
  return {
    ...wireMessage(ws, m, '', false),
    channel: m.channel,
    only_for: m.onlyFor ?? null,
    also_in_channel: m.alsoInChannel ?? false,
  };
}

function shownView(ws: Workspace, v: View): Obj {
  return { ...wireView(ws, v), errors: v.errors };
}

function snapshot({ ws, sockets, page: { box, ...page } }: StreamParts, person: string): Obj {
  const home = ws.homes.get(person);
  return {
    me: person,
    team: ws.team,
    bot: ws.bot,
    people: [...ws.people.values()],
    usergroups: [...ws.usergroups.values()],
    channels: [...ws.channels.values()]
      .filter((c) => ws.isMember(c, person) || (c.isPrivate !== true && c.members === undefined))
      .map((c) => ({ ...c, isDirect: c.id.startsWith('D') })),
    messages: ws.messages.filter((m) => visible(ws, m, person)).map((m) => shown(ws, m)),
    modals: ws.modals(person).map((v) => shownView(ws, v)),
    home: home === undefined ? null : shownView(ws, home),
    sockets: sockets.count,
    ...page,
    situations: box?.choices ?? [],
    situation: box?.chosen() ?? '',
  };
}

function visible(ws: Workspace, m: Message, person: string): boolean {
  if (m.onlyFor !== undefined) return m.onlyFor === person;
  const channel = ws.channel(m.channel);
  return channel.isPrivate !== true || ws.isMember(channel, person);
}

function changeFor(ws: Workspace, change: Change, person: string): [string, unknown] | undefined {
  switch (change.type) {
    case 'message':
    case 'message_changed':
      return visible(ws, change.message, person) ? ['message', shown(ws, change.message)] : undefined;
    case 'message_deleted':
      return change.onlyFor === undefined || change.onlyFor === person ? ['gone', change] : undefined;
    case 'modals':
      return change.person === person ? ['modals', ws.modals(person).map((v) => shownView(ws, v))] : undefined;
    case 'home': {
      const home = ws.homes.get(person);
      return change.person === person && home !== undefined ? ['home', shownView(ws, home)] : undefined;
    }
    case 'sockets':
      return ['sockets', change.open];
    case 'delivery':
    case 'call':
      return undefined;
  }
}

export function openStream(parts: StreamParts, person: string, response: ServerResponse): void {
  const { ws } = parts;
  const me = ws.people.has(person) ? person : ([...ws.people.keys()][0] ?? '');
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const send = (event: string, data: unknown): void => {
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  send('snapshot', snapshot(parts, me));
  const stop = ws.onChange((change) => {
    const sent = changeFor(ws, change, me);
    if (sent !== undefined) send(...sent);
  });
  const tellBox = (): void => {
    void readBox().then((box) => {
      if (box !== undefined && !response.writableEnded) send('box', box);
    });
  };
  tellBox();
  const timer = setInterval(tellBox, boxEveryMs);
  response.on('close', () => {
    clearInterval(timer);
    stop();
  });
}
