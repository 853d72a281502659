/** The shapes Slack puts on the wire for what the workspace holds. */
import { asText, type Obj } from './json.ts';
import type { Channel, Message, Person, SlackFile, View } from './model.ts';
import type { Workspace } from './workspace.ts';

export function wireFile(ws: Workspace, file: SlackFile, baseUrl: string): Obj {
  const url = `${baseUrl}/files/${file.id}/${encodeURIComponent(file.name)}`;
  return {
    id: file.id,
    created: file.createdSeconds,
    name: file.name,
    title: file.title,
    mimetype: file.mimetype,
    filetype: file.name.split('.').pop() ?? 'text',
    size: file.bytes.length,
    user: ws.bot.userId,
    alt_txt: file.altText,
    url_private: url,
    url_private_download: url,
    permalink: url,
  };
}

export function wireMessage(ws: Workspace, m: Message, baseUrl: string, withMetadata = true): Obj {
  const replies = ws.messages.filter((r) => r.channel === m.channel && r.threadTs === m.ts && r.onlyFor === undefined);
  return {
    type: 'message',
    ts: m.ts,
    user: m.user,
    text: m.text,
    ...(m.botId === undefined ? {} : { bot_id: m.botId }),
    ...(m.botId === ws.bot.botId ? { app_id: ws.bot.appId } : {}),
    ...(m.username === undefined ? {} : { username: m.username, subtype: 'bot_message' }),
    team: ws.team.id,
    ...(m.blocks.length === 0 ? {} : { blocks: m.blocks }),
    ...(m.attachments === undefined ? {} : { attachments: m.attachments }),
    ...(withMetadata && m.metadata !== undefined ? { metadata: m.metadata } : {}),
    ...(m.threadTs === undefined ? {} : { thread_ts: m.threadTs }),
    ...(m.editedTs === undefined ? {} : { edited: { user: m.user, ts: m.editedTs } }),
    ...(m.files.length === 0 ? {} : { files: m.files.map((f) => wireFile(ws, f, baseUrl)) }),
    ...(m.reactions.length === 0
      ? {}
      : { reactions: m.reactions.map((r) => ({ name: r.name, users: r.users, count: r.users.length })) }),
    ...(replies.length === 0
      ? {}
      : {
          thread_ts: m.ts,
          reply_count: replies.length,
          reply_users: [...new Set(replies.map((r) => r.user))],
          latest_reply: replies.at(-1)?.ts,
        }),
  };
}

export function wireChannel(ws: Workspace, c: Channel): Obj {
  const direct = c.id.startsWith('D');
  return {
    id: c.id,
    name: c.name,
    is_channel: !direct,
    is_im: direct,
    ...(direct ? { user: c.members?.[0] } : {}),
    is_private: c.isPrivate ?? false,
    is_archived: c.isArchived ?? false,
    is_ext_shared: c.isExtShared ?? false,
    is_member: ws.isMember(c, ws.bot.userId),
    num_members: ws.membersOf(c).length,
    topic: { value: c.topic ?? '' },
    context_team_id: ws.team.id,
  };
}

export function wireTeamOf(ws: Workspace, person: Person): string {
  return person.isStranger === true ? 'T0ELSEWHERE' : ws.team.id;
}

export function wirePerson(ws: Workspace, p: Person): Obj {
  return {
    id: p.id,
    team_id: wireTeamOf(ws, p),
    name: p.name,
    real_name: p.realName,
    deleted: p.isDeleted ?? false,
    is_bot: false,
    is_restricted: p.isGuest ?? false,
    is_ultra_restricted: false,
    is_stranger: p.isStranger ?? false,
    tz: p.timeZone ?? 'Etc/UTC',
    tz_offset: 0,
    profile: { real_name: p.realName, display_name: p.name, email: `${p.name}@example.com` },
  };
}

export function wireView(ws: Workspace, v: View, state: Obj = { values: {} }): Obj {
  return {
    private_metadata: '',
    callback_id: '',
    external_id: '',
    clear_on_close: false,
    notify_on_close: false,
    close: null,
    submit: null,
    ...v.body,
    id: v.id,
    team_id: ws.team.id,
    type: v.type,
    state,
    hash: v.hash,
    root_view_id: v.rootId,
    previous_view_id: v.previousId ?? null,
    app_id: ws.bot.appId,
    app_installed_team_id: ws.team.id,
    bot_id: ws.bot.botId,
  };
}

/** The `user` of an interaction. */
export function wireActor(ws: Workspace, p: Person): Obj {
  return { id: p.id, username: p.name, name: p.name, team_id: wireTeamOf(ws, p) };
}

export function titleOf(view: View): string {
  const title = view.body['title'];
  return typeof title === 'object' && title !== null && 'text' in title ? asText(title.text) : '';
}
