/** The three calls of an upload: an address, the bytes (server.ts takes them), and the sharing. */
import { asObjs, asText } from '../json.ts';
import { SlackRefusal, type SlackFile } from '../model.ts';
import { wireFile } from '../wire.ts';
import { blocksOf } from './chat.ts';
import { tier, type Method } from './types.ts';

const mimeTypes: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  svg: 'image/svg+xml',
  json: 'application/json',
};

export function emptyFile(id: string, name: string, altText: string): SlackFile {
  const mimetype = mimeTypes[name.split('.').pop()?.toLowerCase() ?? ''] ?? 'text/plain';
  return {
    id,
    name,
    title: name,
    mimetype,
    altText,
    bytes: Buffer.alloc(0),
    createdSeconds: Math.floor(Date.now() / 1000),
  };
}

export const fileMethods: Record<string, Method> = {
  'files.getUploadURLExternal': {
    scope: 'files:write',
    perMinute: tier.four,
    run: ({ ws, args, baseUrl }) => {
      const name = args.need('filename');
      if (args.count('length', 0, 1 << 30) === 0) throw new SlackRefusal('invalid_arguments');
      if (args.text('alt_txt').length > 1000) throw new SlackRefusal('alt_txt_too_large');
      const id = ws.nextId('F');
      ws.files.set(id, emptyFile(id, name, args.text('alt_txt')));
      return { file_id: id, upload_url: `${baseUrl}/upload/${id}` };
    },
  },
  'files.completeUploadExternal': {
    scope: 'files:write',
    perMinute: tier.four,
    run: (context) => {
      const { ws, args, baseUrl } = context;
      const files = asObjs(args.json('files')).map((entry) => {
        const file = ws.files.get(asText(entry['id']));
        if (file === undefined || file.bytes.length === 0) throw new SlackRefusal('file_not_found');
        file.title = asText(entry['title'], file.name);
        return file;
      });
      if (files.length === 0) throw new SlackRefusal('invalid_arguments');
      const blocks = blocksOf(context) ?? [];
      const where = args.text('channel_id') === '' ? args.text('channels') : args.text('channel_id');
      for (const key of where.split(',').filter((k) => k !== '')) {
        const channel = ws.channel(key);
        if (!ws.isMember(channel, ws.bot.userId)) throw new SlackRefusal('not_in_channel');
        const threadTs = args.text('thread_ts');
        ws.add({
          channel: channel.id,
          user: ws.bot.userId,
          botId: ws.bot.botId,
          text: args.text('initial_comment'),
          blocks,
          files,
          ...(threadTs === '' ? {} : { threadTs }),
        });
      }
      return { files: files.map((f) => wireFile(ws, f, baseUrl)) };
    },
  },
  'files.info': {
    scope: 'files:read',
    perMinute: tier.four,
    run: ({ ws, args, baseUrl }) => {
      const file = ws.files.get(args.need('file'));
      if (file === undefined) throw new SlackRefusal('file_not_found');
      return { file: wireFile(ws, file, baseUrl) };
    },
  },
};
