/** Everything in the workspace as JSON, for scripts and for looking. */
import type { Obj } from './json.ts';
import type { Sockets } from './sockets.ts';
import { wireChannel, wireMessage, wireView } from './wire.ts';
import type { Workspace } from './workspace.ts';

export function stateDump(ws: Workspace, sockets: Sockets): Obj {
  return {
    team: ws.team,
    bot: ws.bot,
    people: [...ws.people.values()],
    channels: [...ws.channels.values()].map((c) => wireChannel(ws, c)),
    usergroups: [...ws.usergroups.values()],
    sockets: sockets.count,
    messages: ws.messages.map((m) => ({ channel: m.channel, only_for: m.onlyFor ?? null, ...wireMessage(ws, m, '') })),
    modals: Object.fromEntries([...ws.people.keys()].map((p) => [p, ws.modals(p).map((v) => wireView(ws, v))])),
    homes: Object.fromEntries([...ws.homes].map(([p, v]) => [p, wireView(ws, v)])),
  };
}
