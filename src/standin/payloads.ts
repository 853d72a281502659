/** The bodies of slash commands and interactions, as Slack sends them. */
import type { Values } from './elements.ts';
import type { Obj } from './json.ts';
import type { Channel, Message, Person, View } from './model.ts';
import { wireActor, wireMessage, wireTeamOf, wireView } from './wire.ts';
import type { Workspace } from './workspace.ts';

export function commandPayload(
  ws: Workspace,
  person: Person,
  channel: Channel,
  line: { command: string; text: string },
  handles: { responseUrl: string; triggerId: string },
): Obj {
  return {
    token: 'local',
    team_id: wireTeamOf(ws, person),
    team_domain: ws.team.domain,
    channel_id: channel.id,
    channel_name: channel.id.startsWith('D')
      ? 'directmessage'
      : channel.isPrivate === true
        ? 'privategroup'
        : channel.name,
    user_id: person.id,
    user_name: person.name,
    command: line.command,
    text: line.text,
    api_app_id: ws.bot.appId,
    is_enterprise_install: 'false',
    response_url: handles.responseUrl,
    trigger_id: handles.triggerId,
  };
}

function interaction(ws: Workspace, person: Person, type: string, triggerId: string): Obj {
  return {
    type,
    token: 'local',
    api_app_id: ws.bot.appId,
    team: { id: ws.team.id, domain: ws.team.domain },
    enterprise: null,
    is_enterprise_install: false,
    user: wireActor(ws, person),
    trigger_id: triggerId,
  };
}

export interface ActedOn {
  readonly blockId: string;
  readonly action: Obj;
  readonly values: Values;
}

export function messageActionPayload(
  ws: Workspace,
  person: Person,
  message: Message,
  acted: ActedOn,
  handles: { responseUrl: string; triggerId: string; baseUrl: string },
): Obj {
  const ephemeral = message.onlyFor !== undefined;
  return {
    ...interaction(ws, person, 'block_actions', handles.triggerId),
    container: {
      type: 'message',
      message_ts: message.ts,
      channel_id: message.channel,
      is_ephemeral: ephemeral,
      ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
    },
    channel: { id: message.channel, name: ws.channel(message.channel).name },
    // Slack sends no `message` for one only this person sees.
    ...(ephemeral ? {} : { message: wireMessage(ws, message, handles.baseUrl) }),
    state: { values: acted.values },
    response_url: handles.responseUrl,
    actions: [acted.action],
  };
}

export function viewActionPayload(ws: Workspace, person: Person, view: View, acted: ActedOn, triggerId: string): Obj {
  return {
    ...interaction(ws, person, 'block_actions', triggerId),
    container: { type: 'view', view_id: view.id },
    view: wireView(ws, view, { values: acted.values }),
    actions: [acted.action],
  };
}

export function viewSubmissionPayload(
  ws: Workspace,
  person: Person,
  view: View,
  values: Values,
  triggerId: string,
): Obj {
  return {
    ...interaction(ws, person, 'view_submission', triggerId),
    view: wireView(ws, view, { values }),
    response_urls: [],
  };
}

export function viewClosedPayload(ws: Workspace, person: Person, view: View, cleared: boolean): Obj {
  const body = interaction(ws, person, 'view_closed', '');
  delete body['trigger_id'];
  return { ...body, view: wireView(ws, view), is_cleared: cleared };
}

export function shortcutPayload(
  ws: Workspace,
  person: Person,
  callbackId: string,
  triggerId: string,
  on?: { message: Message; responseUrl: string; baseUrl: string },
): Obj {
  const base = { ...interaction(ws, person, on ? 'message_action' : 'shortcut', triggerId), callback_id: callbackId };
  const now = `${Math.floor(Date.now() / 1000)}.000000`;
  if (on === undefined) return { ...base, action_ts: now };
  return {
    ...base,
    action_ts: now,
    channel: { id: on.message.channel, name: ws.channel(on.message.channel).name },
    message_ts: on.message.ts,
    message: wireMessage(ws, on.message, on.baseUrl),
    response_url: on.responseUrl,
  };
}
