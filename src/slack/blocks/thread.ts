/** What goes into a card's thread: the details of the look, the word to the requester at the end, and the files. */
import type { KnownBlock } from '@slack/types';
import { sizeText } from '../../memory/sizes.ts';
import { alertRequester, type RequestRecord } from '../../requests/types.ts';
import { columns, cut, limits, mrkdwn, oneLine, plural, withPeople, type Piece } from '../text.ts';
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
    ...(record.requester.id === alertRequester ? [] : [{ who: record.requester.id }, ' ']),
    `${record.host}: ${stateWords(record)}. `,
    ...withPeople(record.reason, peopleOf(record)),
    ...(report === undefined ? [] : [` ${gainSentence(report)}`]),
  ];
  return { text: mrkdwn(pieces, limits.fallbackChars), blocks: [sentence(...pieces)] };
}

/** Names each owner of a process in the plan, once, and says how to keep it. Null once nothing is left to decide. */
export function renderOwners(record: RequestRecord): Message | null {
  if (record.state !== 'pending' || record.owners === undefined || record.owners.length === 0) return null;
  const known = processesOf(record);
  const lines = record.owners.map(({ person, targets }): Piece[] => {
    const kiB = targets.reduce((sum, key) => sum + (known.get(key)?.kiB ?? 0), 0);
    const pids = targets.slice(0, 12).map((key) => key.split(':')[0]);
    const more = targets.length > pids.length ? ` and ${targets.length - pids.length} more` : '';
    return [
      { who: person },
      `: ${plural(targets.length, 'process', 'processes')} in this plan ${targets.length === 1 ? 'is' : 'are'} yours (${sizeText(kiB)}, pid ${pids.join(', ')}${more}).`,
    ];
  });
  const how =
    'If you still need them, press “Mine, keep it” on the card: they are taken out of the plan and left alone for as long as they live.';
  return {
    text: mrkdwn([...lines.flatMap((line) => [...line, ' ']), how], limits.fallbackChars),
    blocks: fit([...lines.slice(0, 20).map((line) => ({ block: sentence(...line) })), { block: sentence(how) }]),
  };
}

/** Said in the channel, to every approver by name: one person alone approved, and why. The reason is raw text. */
export function renderBreakGlass(record: RequestRecord, approvers: readonly string[]): Message | null {
  const vote = record.votes.find((v) => v.breakGlass === true);
  if (vote === undefined) return null;
  const said: Piece[] = [
    { bold: 'Break-glass' },
    `: `,
    { who: vote.person },
    ` alone approved the plan for ${record.host}; ${plural(record.required, 'person', 'people')} should have agreed. It is recorded as break-glass.`,
  ];
  const others = approvers.filter((id) => id !== vote.person).slice(0, 20);
  const told: Piece[] =
    others.length === 0
      ? []
      : ['For your notice: ', ...others.flatMap((who, i) => (i === 0 ? [{ who }] : [' ', { who }]))];
  const reason = cut(oneLine(vote.reason ?? ''), 1000);
  return {
    text: mrkdwn([...said, ` Reason: ${reason} `, ...told], limits.fallbackChars),
    blocks: fit([
      { block: sentence(...said) },
      { block: rich([{ line: [{ bold: 'Reason: ' }, reason] }]) },
      ...(told.length === 0 ? [] : [{ block: sentence(...told) }]),
    ]),
  };
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
