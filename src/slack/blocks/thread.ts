/** What goes into a card's thread: the details of the look, the word to the requester at the end, and the files. */
import type { KnownBlock } from '@slack/types';
import { sizeText } from '../../memory/sizes.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { columns, cut, limits, mrkdwn, oneLine, withPeople, type Piece } from '../text.ts';
import { peopleOf } from './card.ts';
import { fit, rich, sentence, type Message } from './elements.ts';
import { expectedText, stepTitle, targetTable, processesOf } from './plan.ts';
import { findingParts, partialParts } from './report.ts';
import { gainSentence } from './result.ts';
import { riskWords, stateWords } from './words.ts';

/** A text file for the thread. Plain text: nothing in it is ever markup. */
export interface TextFile {
  readonly filename: string;
  readonly title: string;
  readonly content: string;
  /** The message that goes with it. */
  readonly comment: string;
}

function processTable(record: RequestRecord, most: number): string {
  const all = [...processesOf(record).values()].sort((a, b) => b.kiB - a.kiB);
  const rows = all
    .slice(0, most)
    .map((p) => [
      String(p.pid),
      cut(oneLine(p.user ?? '?'), 12),
      sizeText(p.kiB),
      cut(oneLine(p.command || p.comm), 48),
    ]);
  if (rows.length === 0) return '';
  const more = all.length > most ? `\n… and ${all.length - most} smaller ones` : '';
  return columns([['PID', 'USER', 'SIZE', 'COMMAND'], ...rows], ['right', 'left', 'right', 'left']) + more;
}

export function renderDetails(record: RequestRecord): Message | null {
  const { diagnosis } = record;
  if (diagnosis === undefined) return null;
  const findings = findingParts(diagnosis, 12, 4);
  const partial = partialParts(diagnosis, 10);
  const table = processTable(record, 25);
  const accounting = columns(
    [...diagnosis.accounting]
      .sort((a, b) => b.kiB - a.kiB)
      .slice(0, 25)
      .map((a) => [sizeText(a.kiB), oneLine(a.class).replaceAll('_', ' ')]),
    ['right', 'left'],
  );
  const parts: { block: KnownBlock; optional?: boolean }[] = [
    { block: rich([{ line: [{ bold: `Details of ${record.host}` }] }, { pre: accounting }]) },
    ...(table === '' ? [] : [{ block: rich([{ line: [{ bold: 'Processes behind the findings' }] }, { pre: table }]) }]),
    ...(findings === null ? [] : [{ block: findings, optional: true }]),
    ...(partial === null ? [] : [{ block: partial, optional: true }]),
  ];
  const text = mrkdwn([`Details of ${record.host}: ${cut(oneLine(diagnosis.headline), 500)}`], limits.fallbackChars);
  return { text, blocks: fit(parts) };
}

/** Tells the requester by name how it ended: an edited card notifies nobody. */
export function renderOutcome(record: RequestRecord): Message {
  const report = record.run?.report;
  const pieces: Piece[] = [
    { who: record.requester.id },
    ` ${record.host}: ${stateWords(record)}. `,
    ...withPeople(record.reason, peopleOf(record)),
    ...(report === undefined ? [] : [` ${gainSentence(report)}`]),
  ];
  return { text: mrkdwn(pieces, limits.fallbackChars), blocks: [sentence(...pieces)] };
}

const safeName = (text: string): string => text.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 60);

/** The whole plan, target by target and command by command: what is approved when the card is too small for it. */
export function planFile(record: RequestRecord): TextFile | null {
  const { plan } = record;
  if (plan === null) return null;
  const lines = [`Plan for ${record.host}, request ${record.id}`, `digest ${record.digest ?? plan.digest}`, ''];
  for (const [i, step] of plan.steps.entries()) {
    lines.push(
      `${i + 1}. ${stepTitle(step, processesOf(record))}`,
      `   ${expectedText(step)}`,
      `   Risk: ${riskWords[step.action]}`,
    );
    const table = targetTable(step, record, 2000);
    if (table !== '') lines.push(table);
    lines.push('');
  }
  return {
    filename: `reclaim-plan-${safeName(record.id)}-${safeName((record.digest ?? plan.digest).slice(0, 12))}.txt`,
    title: cut(`Plan for ${record.host}`, 100),
    content: lines.join('\n'),
    comment: mrkdwn([`The whole plan for ${record.host}, with every target.`]),
  };
}
