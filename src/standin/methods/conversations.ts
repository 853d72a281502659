/** conversations.*: https://docs.slack.dev/reference/methods?filter=conversations */
import type { Obj } from '../json.ts';
import { SlackRefusal, type Channel, type Message } from '../model.ts';
import { wireChannel, wireMessage } from '../wire.ts';
import { tier, type Method, type MethodContext } from './types.ts';

/** One page of a list, with Slack's cursor. */
export function page<T>({ args }: MethodContext, all: readonly T[], most: number): { items: T[]; next: string } {
  const from = Number(args.text('cursor', '0').replace(/^at:/, ''));
  if (!Number.isInteger(from) || from < 0) throw new SlackRefusal('invalid_cursor');
  const limit = args.count('limit', 100, most);
  const items = all.slice(from, from + limit);
  return { items, next: from + limit < all.length ? `at:${from + limit}` : '' };
}

function readable({ ws, args }: MethodContext): Channel {
  const channel = ws.channel(args.need('channel'));
  if (!ws.isMember(channel, ws.bot.userId))
    throw new SlackRefusal(channel.isPrivate === true ? 'channel_not_found' : 'not_in_channel');
  return channel;
}

function between({ args }: MethodContext, m: Message): boolean {
  const inclusive = args.flag('inclusive');
  const [oldest, latest] = [args.text('oldest', '0'), args.text('latest', '9999999999.999999')];
  const [ts, low, high] = [Number(m.ts), Number(oldest), Number(latest)];
  return (ts > low && ts < high) || (inclusive && (m.ts === oldest || m.ts === latest));
}

function messagesPage(context: MethodContext, messages: readonly Message[]): Obj {
  const { ws, args, baseUrl } = context;
  const withMetadata = args.flag('include_all_metadata');
  const { items, next } = page(context, messages, 999);
  return {
    messages: items.map((m) => wireMessage(ws, m, baseUrl, withMetadata)),
    has_more: next !== '',
    response_metadata: { next_cursor: next },
  };
}

export const conversationMethods: Record<string, Method> = {
  'conversations.info': {
    scope: 'channels:read',
    perMinute: tier.three,
    run: ({ ws, args }) => {
      const channel = ws.channel(args.need('channel'));
      // A private channel the app was not invited to does not exist for it.
      if (channel.isPrivate === true && !ws.isMember(channel, ws.bot.userId))
        throw new SlackRefusal('channel_not_found');
      return { channel: wireChannel(ws, channel) };
    },
  },
  'conversations.list': {
    scope: 'channels:read',
    perMinute: tier.two,
    run: (context) => {
      const { ws, args } = context;
      const types = args.text('types', 'public_channel').split(',');
      const visible = [...ws.channels.values()].filter((c) => {
        if (args.flag('exclude_archived') && c.isArchived === true) return false;
        if (c.id.startsWith('D')) return types.includes('im');
        if (c.isPrivate !== true) return types.includes('public_channel');
        return types.includes('private_channel') && ws.isMember(c, ws.bot.userId);
      });
      const { items, next } = page(context, visible, 999);
      return { channels: items.map((c) => wireChannel(ws, c)), response_metadata: { next_cursor: next } };
    },
  },
  'conversations.members': {
    scope: 'channels:read',
    perMinute: tier.four,
    run: (context) => {
      const channel = context.ws.channel(context.args.need('channel'));
      const { items, next } = page(context, context.ws.membersOf(channel), 999);
      return { members: items, response_metadata: { next_cursor: next } };
    },
  },
  'conversations.history': {
    scope: 'channels:history',
    perMinute: tier.three,
    run: (context) => {
      const channel = readable(context);
      const found = context.ws.messages.filter(
        (m) =>
          m.channel === channel.id &&
          m.onlyFor === undefined &&
          (m.threadTs === undefined || m.alsoInChannel === true) &&
          between(context, m),
      );
      return messagesPage(context, found.reverse());
    },
  },
  'conversations.replies': {
    scope: 'channels:history',
    perMinute: tier.three,
    run: (context) => {
      const channel = readable(context);
      const ts = context.args.need('ts');
      const found = context.ws.messages.filter(
        (m) => m.channel === channel.id && m.onlyFor === undefined && (m.ts === ts || m.threadTs === ts),
      );
      if (found.length === 0) throw new SlackRefusal('thread_not_found');
      return messagesPage(
        context,
        found.filter((m) => m.ts === ts || between(context, m)),
      );
    },
  },
  'conversations.open': {
    scope: 'im:write',
    perMinute: tier.three,
    run: ({ ws, args }) => ({ channel: { id: ws.directChannel(args.need('users')).id } }),
  },
};
