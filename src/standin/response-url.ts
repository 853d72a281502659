/** `response_url`: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses */
import { asObjs, asText, type Obj } from './json.ts';
import { faultsInBlocks } from './limits.ts';
import type { ResponseAddress } from './triggers.ts';
import type { Workspace } from './workspace.ts';

/** Applies what the app sent to a response address; answers the faults in its blocks, if any. */
export function applyResponse(ws: Workspace, address: Omit<ResponseAddress, 'madeAtMs' | 'uses'>, body: Obj): string[] {
  const original =
    address.messageTs === undefined
      ? undefined
      : address.isEphemeral
        ? ws.findEphemeral(address.person, address.messageTs)
        : ws.find(address.channel, address.messageTs);
  if (body['delete_original'] === true) {
    if (original !== undefined) ws.remove(original);
    return [];
  }
  const faults = body['blocks'] === undefined ? [] : faultsInBlocks(body['blocks'], 'message');
  if (faults.length > 0) return faults;
  const blocks = ws.withBlockIds(asObjs(body['blocks']));
  const text = asText(body['text']);
  if (text === '' && blocks.length === 0) return ['no_text'];
  // An ephemeral answer to a click never replaces a message everybody sees.
  if (body['replace_original'] === true && original !== undefined) {
    original.text = text;
    original.blocks = blocks;
    original.editedTs = ws.nextTs();
    ws.changed(original);
    return [];
  }
  const threadTs = asText(body['thread_ts'], address.threadTs ?? '');
  ws.add({
    channel: address.channel,
    user: ws.bot.userId,
    botId: ws.bot.botId,
    text,
    blocks,
    ...(body['response_type'] === 'in_channel' ? {} : { onlyFor: address.person }),
    ...(threadTs === '' ? {} : { threadTs }),
  });
  return [];
}
