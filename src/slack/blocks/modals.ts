/** The small dialogs: deny with a reason, break the glass, look at a box. Pure. */
import type { InputBlock, ModalView } from '@slack/types';
import type { Plan } from '../../memory/contract.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, limits, oneLine, plural } from '../text.ts';
import { callbackIds, writeMemory, type ModalMemory } from './dialog-memory.ts';
import { plain, sentence } from './elements.ts';
import { effectSentence } from './plan.ts';

/** A dialog that only says something. */
export function sayingModal(title: string, text: string): ModalView {
  return {
    type: 'modal',
    title: plain(title, limits.viewTitleChars),
    close: plain('Close', limits.viewTitleChars),
    blocks: [sentence(text)],
  };
}

function reasonInput(label: string, optional: boolean): InputBlock {
  return {
    type: 'input',
    block_id: 'reason',
    optional,
    label: plain(label, 150),
    element: { type: 'plain_text_input', action_id: 'reason', multiline: true, max_length: 500 },
  };
}

export function denyModal(record: RequestRecord, memory: ModalMemory): ModalView {
  return {
    type: 'modal',
    callback_id: callbackIds.deny,
    private_metadata: writeMemory(memory),
    title: plain('Deny this plan', limits.viewTitleChars),
    submit: plain('Deny', limits.viewTitleChars),
    close: plain('Go back', limits.viewTitleChars),
    blocks: [
      sentence({ bold: record.host }, ': nothing will be done. The reason is shown on the card.'),
      reasonInput('Reason (optional)', true),
    ],
  };
}

export function breakGlassModal(record: RequestRecord, plan: Plan, memory: ModalMemory): ModalView {
  return {
    type: 'modal',
    callback_id: callbackIds.breakGlass,
    private_metadata: writeMemory(memory),
    title: plain('Break glass', limits.viewTitleChars),
    submit: plain('Approve alone', limits.viewTitleChars),
    close: plain('Go back', limits.viewTitleChars),
    blocks: [
      sentence(
        { bold: record.host },
        `: your approval alone will stand for the ${plural(record.required, 'person', 'people')} this needs. It is posted and recorded as break-glass. `,
        oneLine(effectSentence(record.host, plan)),
      ),
      reasonInput('Why it cannot wait', false),
    ],
  };
}

/** The message shortcut: which box? The names found in the message come first. */
export function lookAtModal(hosts: readonly string[], found: readonly string[], channel: string): ModalView {
  const ordered = [...new Set([...found, ...hosts])].slice(0, 100);
  const options = ordered.map((h) => ({ text: plain(h, limits.optionChars), value: cut(h, 75) }));
  const first = found.length === 1 ? options[0] : undefined;
  return {
    type: 'modal',
    callback_id: callbackIds.lookAt,
    private_metadata: JSON.stringify({ channel }),
    title: plain('Look at a box', limits.viewTitleChars),
    submit: plain('Look', limits.viewTitleChars),
    close: plain('Go back', limits.viewTitleChars),
    blocks: [
      {
        type: 'input',
        block_id: 'host',
        label: plain('Box', 150),
        element: {
          type: 'static_select',
          action_id: 'host',
          options,
          ...(first === undefined ? {} : { initial_option: first }),
        },
      },
    ],
  };
}
