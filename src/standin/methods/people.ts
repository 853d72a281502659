/** auth.test, users.*, usergroups.*, reactions.* */
import { SlackRefusal } from '../model.ts';
import { wirePerson } from '../wire.ts';
import { page } from './conversations.ts';
import { tier, type Method, type MethodContext } from './types.ts';

function reacted({ ws, args }: MethodContext, add: boolean): Record<string, never> {
  const message = ws.find(ws.channel(args.need('channel')).id, args.need('timestamp'));
  if (message === undefined) throw new SlackRefusal('message_not_found');
  const name = args.need('name').replaceAll(':', '');
  const mine = message.reactions.find((r) => r.name === name);
  const has = mine?.users.includes(ws.bot.userId) ?? false;
  if (add && has) throw new SlackRefusal('already_reacted');
  if (!add && !has) throw new SlackRefusal('no_reaction');
  if (add && mine === undefined) message.reactions.push({ name, users: [ws.bot.userId] });
  else if (add) mine?.users.push(ws.bot.userId);
  else if (mine !== undefined) mine.users = mine.users.filter((u) => u !== ws.bot.userId);
  message.reactions = message.reactions.filter((r) => r.users.length > 0);
  ws.changed(message);
  return {};
}

export const peopleMethods: Record<string, Method> = {
  'auth.test': {
    perMinute: 600,
    run: ({ ws, baseUrl }) => ({
      url: `${baseUrl}/`,
      team: ws.team.name,
      team_id: ws.team.id,
      user: ws.bot.name,
      user_id: ws.bot.userId,
      bot_id: ws.bot.botId,
      is_enterprise_install: false,
    }),
  },
  'team.info': {
    scope: 'team:read',
    perMinute: tier.three,
    run: ({ ws }) => ({ team: { ...ws.team } }),
  },
  'users.info': {
    scope: 'users:read',
    perMinute: tier.four,
    run: ({ ws, args }) => {
      const id = args.need('user');
      if (id === ws.bot.userId)
        return {
          user: { id, team_id: ws.team.id, name: ws.bot.name, real_name: ws.bot.name, is_bot: true, deleted: false },
        };
      return { user: wirePerson(ws, ws.person(id)) };
    },
  },
  'users.list': {
    scope: 'users:read',
    perMinute: tier.two,
    run: (context) => {
      const { items, next } = page(context, [...context.ws.people.values()], 1000);
      return { members: items.map((p) => wirePerson(context.ws, p)), response_metadata: { next_cursor: next } };
    },
  },
  'usergroups.list': {
    scope: 'usergroups:read',
    perMinute: tier.two,
    run: ({ ws, args }) => ({
      usergroups: [...ws.usergroups.values()].map(({ users, ...g }) => ({
        ...g,
        team_id: ws.team.id,
        user_count: users.length,
        ...(args.flag('include_users') ? { users } : {}),
      })),
    }),
  },
  'usergroups.users.list': {
    scope: 'usergroups:read',
    perMinute: tier.two,
    run: ({ ws, args }) => {
      const group = ws.usergroups.get(args.need('usergroup'));
      if (group === undefined) throw new SlackRefusal('no_such_subteam');
      return { users: [...group.users] };
    },
  },
  'reactions.add': { scope: 'reactions:write', perMinute: tier.three, run: (context) => reacted(context, true) },
  'reactions.remove': { scope: 'reactions:write', perMinute: tier.two, run: (context) => reacted(context, false) },
};
