/** The few block shapes the product uses, each held to Slack's limits where it is made. */
import type {
  ActionsBlock,
  Button,
  ConfirmationDialog,
  ContextBlock,
  HeaderBlock,
  KnownBlock,
  PlainTextElement,
  RichTextBlock,
  RichTextElement,
  SectionBlock,
} from '@slack/types';
import { cut, limits, mrkdwn, oneLine, readable, utcTime, whoInWords, type Piece } from '../text.ts';

/** A message ready to be sent: `text` carries the whole meaning for notifications and screen readers. */
export interface Message {
  readonly text: string;
  readonly blocks: KnownBlock[];
  /** The same without blocks that not every workspace takes: sent when Slack refuses the first ones. */
  readonly simpler?: KnownBlock[];
}

export function plain(text: string, max: number): PlainTextElement {
  return { type: 'plain_text', text: cut(oneLine(text), max) || ' ', emoji: false };
}

export function header(text: string): HeaderBlock {
  return { type: 'header', text: plain(text, limits.headerChars) };
}

/** A sentence of ours with people and moments in it, as small print. */
export function context(...lines: (readonly Piece[])[]): ContextBlock {
  return {
    type: 'context',
    elements: lines
      .slice(0, 10)
      .map((pieces) => ({ type: 'mrkdwn', text: mrkdwn(pieces, 2000) || ' ', verbatim: true })),
  };
}

/** A sentence of ours with people and moments in it. */
export function sentence(...pieces: readonly Piece[]): SectionBlock {
  return { type: 'section', text: { type: 'mrkdwn', text: mrkdwn(pieces) || ' ', verbatim: true } };
}

const richText = (text: string, bold = false): RichTextElement => ({
  type: 'text',
  text: text === '' ? ' ' : text,
  ...(bold ? { style: { bold: true } } : {}),
});

function toRich(piece: Piece, max: number): RichTextElement {
  if (typeof piece === 'string') return richText(cut(readable(piece), max));
  if ('bold' in piece) return richText(cut(readable(piece.bold), max), true);
  if ('who' in piece) {
    if (/^[UW][A-Z0-9]{2,}$/.test(piece.who)) return { type: 'user', user_id: piece.who };
    if (/^S[A-Z0-9]{2,}$/.test(piece.who)) return { type: 'usergroup', usergroup_id: piece.who };
    return richText(whoInWords(piece.who));
  }
  return richText(utcTime(piece.at));
}

export type RichPart =
  | { readonly line: readonly Piece[] }
  | { readonly list: readonly (readonly Piece[])[]; readonly ordered?: boolean; readonly indent?: number }
  | { readonly pre: string };

/** Raw text that Slack never interprets: the only home of host text. */
export function rich(parts: readonly RichPart[], maxPerPiece = 1500): RichTextBlock {
  return {
    type: 'rich_text',
    elements: parts.map((part) => {
      if ('pre' in part) {
        return {
          type: 'rich_text_preformatted',
          elements: [{ type: 'text', text: cut(readable(part.pre), 3500) || ' ' }],
        };
      }
      if ('line' in part) {
        return { type: 'rich_text_section', elements: part.line.map((p) => toRich(p, maxPerPiece)) };
      }
      return {
        type: 'rich_text_list',
        style: part.ordered === true ? 'ordered' : 'bullet',
        ...(part.indent === undefined ? {} : { indent: part.indent }),
        elements: part.list.map((item) => ({
          type: 'rich_text_section',
          elements: item.map((p) => toRich(p, maxPerPiece)),
        })),
      };
    }),
  };
}

export interface ButtonFacts {
  readonly label: string;
  readonly action: string;
  readonly value: string;
  readonly style?: 'primary' | 'danger';
  readonly confirm?: ConfirmationDialog;
  readonly says?: string;
}

export function button(facts: ButtonFacts): Button {
  return {
    type: 'button',
    text: plain(facts.label, limits.buttonChars),
    action_id: facts.action,
    value: facts.value,
    ...(facts.style === undefined ? {} : { style: facts.style }),
    ...(facts.confirm === undefined ? {} : { confirm: facts.confirm }),
    ...(facts.says === undefined ? {} : { accessibility_label: cut(oneLine(facts.says), limits.buttonChars) }),
  };
}

export function actions(blockId: string, buttons: readonly Button[]): ActionsBlock {
  return { type: 'actions', block_id: blockId, elements: [...buttons] };
}

export function confirmDialog(facts: {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly no: string;
  readonly danger?: boolean;
}): ConfirmationDialog {
  return {
    title: plain(facts.title, limits.confirmTitleChars),
    text: plain(facts.text, limits.confirmTextChars),
    confirm: plain(facts.yes, 30),
    deny: plain(facts.no, 30),
    ...(facts.danger === true ? { style: 'danger' as const } : {}),
  };
}

/** How many characters of text a list of blocks carries: what the message budget counts. */
export function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.reduce((sum: number, v: unknown) => sum + charsIn(v), 0);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((sum, [key, v]) => sum + (key === 'type' || key === 'style' ? 0 : charsIn(v)), 0);
}

/** Puts required blocks first in the budget and leaves out optional ones, from the back, until the message fits. */
export function fit(parts: readonly { readonly block: KnownBlock; readonly optional?: boolean }[]): KnownBlock[] {
  const kept = [...parts];
  const tooBig = () =>
    kept.length > limits.blocksPerMessage - 2 || charsIn(kept.map((p) => p.block)) > limits.messageChars - 500;
  while (tooBig()) {
    const last = kept.findLastIndex((p) => p.optional === true);
    if (last === -1) break;
    kept.splice(last, 1);
  }
  return kept.map((p) => p.block);
}
