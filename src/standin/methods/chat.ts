/** chat.*: https://docs.slack.dev/reference/methods/chat.postMessage and its neighbours. */
import { asObjs, charsIn, isObj, type Obj } from '../json.ts';
import { blocksTooLong, faultsInBlocks } from '../limits.ts';
import { refuseWith, SlackRefusal, type Channel, type Message } from '../model.ts';
import { wireMessage } from '../wire.ts';
import { tier, type Method, type MethodContext } from './types.ts';

const maxPostChars = 40_000;
const maxUpdateChars = 4_000;

/** The blocks of the call, checked, with ids filled in; undefined when none were given. */
export function blocksOf({ args, ws }: MethodContext): Obj[] | undefined {
  if (!args.has('blocks')) return undefined;
  const value = args.json('blocks');
  if (!Array.isArray(value)) throw new SlackRefusal('invalid_blocks_format');
  const faults = faultsInBlocks(value, 'message');
  if (faults.length > 0) throw refuseWith('invalid_blocks', faults);
  const refused = asObjs(value).findIndex((block) => ws.refusedBlocks.has(String(block['type'])));
  if (refused >= 0)
    throw refuseWith('invalid_blocks', [`[ERROR] unsupported type [json-pointer:/blocks/${refused}/type]`]);
  const blocks = ws.withBlockIds(asObjs(value));
  if (blocksTooLong(blocks)) throw new SlackRefusal('msg_blocks_too_long');
  return blocks;
}

function writableChannel({ ws, args }: MethodContext): Channel {
  const channel = ws.channel(args.need('channel'));
  if (channel.isArchived === true) throw new SlackRefusal('is_archived');
  if (!ws.isMember(channel, ws.bot.userId))
    throw new SlackRefusal(channel.isPrivate === true ? 'channel_not_found' : 'not_in_channel');
  return channel;
}

function metadataOf({ args }: MethodContext): Obj | undefined {
  if (!args.has('metadata')) return undefined;
  const value = args.json('metadata');
  if (!isObj(value)) throw new SlackRefusal('metadata_must_be_sent_from_app');
  if (Object.keys(value).length > 0 && (typeof value['event_type'] !== 'string' || !isObj(value['event_payload'])))
    throw new SlackRefusal('invalid_metadata_format');
  return value;
}

function ownMessage(context: MethodContext, otherwise: string): Message {
  const channel = context.ws.channel(context.args.need('channel'));
  const message = context.ws.find(channel.id, context.args.need('ts'));
  if (message === undefined) throw new SlackRefusal('message_not_found');
  if (message.botId !== context.ws.bot.botId) throw new SlackRefusal(otherwise);
  return message;
}

const postMessage: Method = {
  scope: 'chat:write',
  perMinute: 600,
  perChannelPerSecond: 1,
  run: (context) => {
    const { ws, args, baseUrl } = context;
    const channel = writableChannel(context);
    const blocks = blocksOf(context) ?? [];
    const text = Array.from(args.text('text')).slice(0, maxPostChars).join('');
    if (text === '' && blocks.length === 0) throw new SlackRefusal('no_text');
    const metadata = metadataOf(context);
    const threadTs = args.text('thread_ts');
    const message = ws.add({
      channel: channel.id,
      user: ws.bot.userId,
      botId: ws.bot.botId,
      text,
      blocks,
      ...(metadata === undefined ? {} : { metadata }),
      ...(threadTs === '' ? {} : { threadTs }),
      ...(args.flag('reply_broadcast') ? { alsoInChannel: true } : {}),
    });
    return { channel: channel.id, ts: message.ts, message: wireMessage(ws, message, baseUrl) };
  },
};

const update: Method = {
  scope: 'chat:write',
  perMinute: tier.three,
  run: (context) => {
    const { ws, args, baseUrl } = context;
    const message = ownMessage(context, 'cant_update_message');
    const text = args.text('text');
    if (charsIn(text) > maxUpdateChars) throw new SlackRefusal('msg_too_long');
    const blocks = blocksOf(context);
    if (blocks !== undefined) message.blocks = blocks;
    if (args.has('text')) message.text = text;
    const metadata = metadataOf(context);
    if (metadata !== undefined) message.metadata = metadata;
    message.editedTs = ws.nextTs();
    ws.changed(message);
    return { channel: message.channel, ts: message.ts, text: message.text, message: wireMessage(ws, message, baseUrl) };
  },
};

const remove: Method = {
  scope: 'chat:write',
  perMinute: tier.three,
  run: (context) => {
    const message = ownMessage(context, 'cant_delete_message');
    context.ws.remove(message);
    return { channel: message.channel, ts: message.ts };
  },
};

const postEphemeral: Method = {
  scope: 'chat:write',
  perMinute: tier.four,
  run: (context) => {
    const { ws, args } = context;
    const channel = writableChannel(context);
    const user = args.need('user');
    if (!ws.isMember(channel, user)) throw new SlackRefusal('user_not_in_channel');
    const blocks = blocksOf(context) ?? [];
    const text = args.text('text');
    if (text === '' && blocks.length === 0) throw new SlackRefusal('no_text');
    const threadTs = args.text('thread_ts');
    const message = ws.add({
      channel: channel.id,
      user: ws.bot.userId,
      botId: ws.bot.botId,
      text,
      blocks,
      onlyFor: user,
      ...(threadTs === '' ? {} : { threadTs }),
    });
    return { message_ts: message.ts };
  },
};

const getPermalink: Method = {
  perMinute: 600,
  run: ({ ws, args, baseUrl }) => {
    const channel = ws.channel(args.need('channel'));
    const ts = args.need('message_ts');
    if (ws.find(channel.id, ts) === undefined) throw new SlackRefusal('message_not_found');
    return { channel: channel.id, permalink: `${baseUrl}/#${channel.id}/${ts}` };
  },
};

export const chatMethods: Record<string, Method> = {
  'chat.postMessage': postMessage,
  'chat.update': update,
  'chat.delete': remove,
  'chat.postEphemeral': postEphemeral,
  'chat.getPermalink': getPermalink,
};
