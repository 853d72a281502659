/** Whether a card may go into a channel. Commands work where the bot is no member, so this is asked before anything is queued. */
import type { WebClient } from '@slack/web-api';
import { WebAPIPlatformError } from '@slack/web-api';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';

const channelSchema = z.object({
  is_member: z.boolean().optional(),
  is_archived: z.boolean().optional(),
  is_im: z.boolean().optional(),
  is_mpim: z.boolean().optional(),
  is_ext_shared: z.boolean().optional(),
  is_pending_ext_shared: z.boolean().optional(),
});

const invite =
  'Nothing was done. Invite me with /invite @reclaim (or Add apps in the channel’s settings) and type it again.';

function refuse(text: string, cause?: unknown): ReclaimError {
  return new ReclaimError('not_allowed', text, { cause });
}

/** @throws ReclaimError with what to do about it. */
export async function checkChannel(client: WebClient, channel: string): Promise<void> {
  let facts: z.infer<typeof channelSchema>;
  try {
    facts = channelSchema.parse((await client.conversations.info({ channel })).channel);
  } catch (error) {
    if (error instanceof WebAPIPlatformError) {
      const { error: code } = error.data;
      if (code === 'channel_not_found')
        throw refuse(`I cannot see this conversation, so I cannot post here. ${invite}`, error);
      if (code === 'missing_scope')
        throw refuse('I can only work in channels. Nothing was done. Type it in a channel I am in.', error);
    }
    throw new ReclaimError(
      'slack_failed',
      'Slack did not tell about this channel. Nothing was done. Try again in a moment.',
      {
        cause: error,
      },
    );
  }
  if (facts.is_archived === true) throw refuse('This channel is archived, so nothing was done. Use another channel.');
  if (facts.is_im === true || facts.is_mpim === true) {
    throw refuse(
      'Approvals need a channel where approvers can see them. Nothing was done. Type it in a channel I am in.',
    );
  }
  if (facts.is_ext_shared === true || facts.is_pending_ext_shared === true) {
    throw refuse(
      'This channel is shared with another organisation, who would see your processes. Nothing was done. Use a channel of your own workspace.',
    );
  }
  if (facts.is_member !== true) throw refuse(`I am not in this channel, so I cannot post here. ${invite}`);
}
