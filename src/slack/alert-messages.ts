/**
 * Messages of other bots in the channels under alerts.channels_to_read. They are data for finding a host, never a command
 * and never an approval; what people write is not read at all, and neither is what this bot itself said.
 */
import type { App } from '@slack/bolt';
import { z } from 'zod';
import { receive } from '../alerts/incidents.ts';
import { parseMessage } from '../alerts/parsers/messages.ts';
import { isFirst, type Surface } from './surface.ts';

const shown = z.looseObject({
  ts: z.string(),
  subtype: z.string().optional(),
  bot_id: z.string().nullish(),
  user: z.string().nullish(),
  app_id: z.string().nullish(),
});
const eventSchema = z.looseObject({
  channel: z.string(),
  ts: z.string().optional(),
  subtype: z.string().optional(),
  message: z.unknown().optional(),
});

export function registerAlertMessages(app: App, surface: Surface): void {
  app.event('message', async ({ event, body, context }) => {
    const { deps } = surface;
    try {
      const seen = eventSchema.parse(event);
      if (!deps.config.alerts.channels_to_read.includes(seen.channel)) return;
      const edited = seen.subtype === 'message_changed';
      if (!edited && seen.subtype !== undefined && seen.subtype !== 'bot_message') return;
      const message = shown.safeParse(edited ? seen.message : event);
      if (!message.success) return;
      const { bot_id: bot, user, ts } = message.data;
      if (bot == null || bot === context.botId || (user != null && user === context.botUserId)) return;
      const alert = parseMessage(message.data);
      if (alert === null || alert.about === 'other') return;
      if (!(await isFirst(surface, `event.${body.event_id}`))) return;
      await receive(deps, { alerts: [alert], truncated: 0, told: { channel: seen.channel, ts }, edited });
    } catch (error) {
      deps.log.error({ err: error }, 'a message in a watched channel could not be dealt with');
    }
  });
}
