/** The one message of a request: edited from the first look to the result. Pure; the poster sends it. */
import type { Button, KnownBlock } from '@slack/types';
import { rangeText } from '../../memory/sizes.ts';
import type { Plan } from '../../memory/contract.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, escapeMrkdwn, limits, mrkdwn, oneLine, withPeople, type Piece } from '../text.ts';
import { actions, button, confirmDialog, context, fit, header, rich, sentence, type Message } from './elements.ts';
import { effectSentence, planFitsCard, planParts, processCount } from './plan.ts';
import { findingParts, freeTable, memoryBar, partialParts } from './report.ts';
import { nowSentence, progressParts, progressPlan } from './progress.ts';
import { afterwards, beforeAfter, gainSentence, stepResults } from './result.ts';
import { isFinal, stateWords } from './words.ts';

/** What a card shows beside the record. */
export interface CardContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** policy.approvers: users and user groups. Empty = nobody. */
  readonly approvers: readonly string[];
  /** policy.break_glass. */
  readonly breakGlass: boolean;
  /** True once the file with the whole plan is in the thread; only asked for plans that do not fit the card. */
  readonly planFilePosted: boolean;
  /** Only blocks that every workspace takes. */
  readonly simple?: boolean;
}

export const actionIds = {
  approve: 'reclaim_approve',
  choose: 'reclaim_choose',
  keep: 'reclaim_keep',
  deny: 'reclaim_deny',
  cancel: 'reclaim_cancel',
  breakGlass: 'reclaim_break_glass',
} as const;

/** Ties the buttons of a card to exactly the plan that was shown with them. */
export const decideBlockId = (digest: string): string => cut(`decide.${digest}`, 255);
export const digestOfBlockId = (blockId: string | undefined): string | undefined =>
  blockId?.startsWith('decide.') === true ? blockId.slice('decide.'.length) : undefined;

/** The people a record itself names; nobody else is ever mentioned. */
export function peopleOf(record: RequestRecord): ReadonlySet<string> {
  return new Set([record.requester.id, ...record.votes.map((v) => v.person), ...record.kept.map((k) => k.by)]);
}

interface Part {
  readonly block: KnownBlock;
  readonly optional?: boolean;
}

function headline(record: RequestRecord): string {
  return `${record.host}: ${stateWords(record)}`;
}

function approversInWords(ids: readonly string[]): Piece[] {
  if (ids.length === 0) return ['Nobody: no approver is configured (policy.approvers in reclaim.yaml).'];
  const shown: Piece[] = ids.slice(0, 8).flatMap((who, i) => (i === 0 ? [{ who }] : [', ', { who }]));
  return ids.length > 8 ? [...shown, ` and ${ids.length - 8} more`] : shown;
}

/** Distinct people whose approval still counts for the plan as it is now. */
export function approvedBy(record: RequestRecord): string[] {
  const counted = record.votes.filter(
    (v) => v.verdict === 'approve' && (v.digest === undefined || v.digest === record.digest),
  );
  return [...new Set(counted.map((v) => v.person))];
}

function waitingLines(record: RequestRecord, ctx: CardContext): Piece[][] {
  const people = approvedBy(record);
  const got: Piece[] = [{ bold: `${people.length} of ${record.required} approved` }];
  if (people.length > 0)
    got.push(' (', ...people.flatMap((who, i): Piece[] => (i === 0 ? [{ who }] : [', ', { who }])), ')');
  got.push(`. ${record.requiredWhy}`);
  const lines: Piece[][] = [got, [{ bold: 'Who may approve: ' }, ...approversInWords(ctx.approvers)]];
  if (record.pendingUntil !== undefined) {
    lines.push(['Expires at ', { at: record.pendingUntil, style: 'time' }, '. Then nothing is done.']);
  }
  return lines;
}

function decisionButtons(record: RequestRecord, plan: Plan, ctx: CardContext): Button[] {
  const shown = planFitsCard(plan) || ctx.planFilePosted;
  const mayBeApproved = shown && ctx.approvers.length > 0;
  const n = processCount(plan);
  const what = n > 0 ? `end ${n} ${n === 1 ? 'process' : 'processes'}` : 'as planned';
  const approve = button({
    label: 'Approve…',
    action: actionIds.approve,
    value: record.id,
    style: 'primary',
    says: `Approve the plan for ${record.host}`,
    confirm: confirmDialog({
      title: `Approve for ${record.host}?`,
      text: effectSentence(record.host, plan),
      yes: cut(`Approve: ${what}`, 30),
      no: 'Go back',
      danger: n > 0,
    }),
  });
  const value = record.id;
  return [
    ...(mayBeApproved ? [approve, button({ label: 'Choose…', action: actionIds.choose, value })] : []),
    button({ label: 'Deny…', action: actionIds.deny, value }),
    ...(n > 0
      ? [button({ label: 'Mine, keep it', action: actionIds.keep, value, says: 'Take my processes out of the plan' })]
      : []),
    ...(ctx.breakGlass && mayBeApproved && record.required > 1
      ? [button({ label: 'Break glass…', action: actionIds.breakGlass, value, style: 'danger' })]
      : []),
    button({ label: 'Cancel request', action: actionIds.cancel, value }),
  ];
}

/** The report: what was seen. Left out from the back when a message grows too long; it is all in the thread. */
function reportParts(record: RequestRecord, short: boolean): Part[] {
  const { diagnosis } = record;
  if (diagnosis === undefined) return [];
  // What holds no memory is in the thread: a tired reader scrolls past it to the plan.
  const weighty = { ...diagnosis, findings: diagnosis.findings.filter((f) => f.kiB > 0) };
  const findings = findingParts(weighty, short ? 3 : 4, short ? 1 : 2);
  return [
    {
      block: rich([{ line: [{ bold: cut(oneLine(diagnosis.headline), 600) }] }]),
    },
    { block: freeTable(diagnosis) },
    ...(findings === null ? [] : [{ block: findings, optional: true }]),
  ];
}

/** What a reader looks up rather than decides by: it stands below the buttons, so that the way to them is short. */
function moreParts({ diagnosis }: RequestRecord): Part[] {
  if (diagnosis === undefined) return [];
  const partial = partialParts(diagnosis, 4);
  return [
    { block: rich([{ pre: memoryBar(diagnosis.accounting, diagnosis.memory.totalKiB) }]), optional: true },
    ...(partial === null ? [] : [{ block: partial, optional: true }]),
  ];
}

function reasonPart(record: RequestRecord): Part {
  return { block: sentence(...withPeople(record.reason, peopleOf(record))) };
}

/** A denial's reason is what a person typed: raw text. */
function deniedParts(record: RequestRecord): Part[] {
  const typed = record.votes.find((v) => v.verdict === 'deny')?.reason;
  if (typed === undefined || typed.trim() === '') return [];
  return [{ block: rich([{ line: [{ bold: 'Reason: ' }, cut(oneLine(typed), 1000)] }]) }];
}

function footer(record: RequestRecord): Part {
  const asked: Piece[] = [
    'Asked for by ',
    { who: record.requester.id },
    ' ',
    { at: record.createdAt, style: 'day_time' },
    ` · ${record.id}`,
  ];
  return { block: context(asked) };
}

function openParts(record: RequestRecord, ctx: CardContext): Part[] {
  const { plan } = record;
  const cancel = actions('cancel', [button({ label: 'Cancel request', action: actionIds.cancel, value: record.id })]);
  if (record.state === 'draft') return [reasonPart(record), { block: cancel }];
  if (record.state === 'pending' && plan !== null) {
    const waits =
      planFitsCard(plan) || ctx.planFilePosted
        ? []
        : [['The whole plan is being put into this thread; it can be approved once it is there.']];
    return [
      ...reportParts(record, false),
      { block: planParts(record, plan) },
      { block: context(...waitingLines(record, ctx), ...waits) },
      { block: actions(decideBlockId(record.digest ?? ''), decisionButtons(record, plan, ctx)) },
      ...moreParts(record),
    ];
  }
  return [reasonPart(record), ...(record.run === undefined ? [] : progress(record, ctx)), ...reportParts(record, true)];
}

function progress(record: RequestRecord, ctx: CardContext): Part[] {
  const plan = ctx.simple === true ? null : progressPlan(record);
  if (plan === null) return [{ block: progressParts(record) }];
  return [{ block: rich([{ line: [{ bold: 'Now: ' }, nowSentence(record)] }]) }, { block: plan }];
}

function finalParts(record: RequestRecord): Part[] {
  const report = record.run?.report;
  if (report === undefined) {
    const ask: Part[] =
      record.run === undefined && record.diagnosis === undefined
        ? []
        : [{ block: context([`Look again with /reclaim ${record.host}`]) }];
    return [reasonPart(record), ...deniedParts(record), ...reportParts(record, true), ...moreParts(record), ...ask];
  }
  const steps = stepResults(report, record);
  const after = afterwards(report);
  return [
    reasonPart(record),
    { block: beforeAfter(report) },
    ...(steps === null ? [] : [{ block: steps }]),
    ...(after === null ? [] : [{ block: after, optional: true }]),
    ...approvalParts(record),
  ];
}

function approvalParts(record: RequestRecord): Part[] {
  const yes = record.votes.filter((v) => v.verdict === 'approve');
  if (yes.length === 0) return [];
  const names = yes
    .slice(0, 10)
    .flatMap((v, i): Piece[] => [
      ...(i === 0 ? [] : [', ']),
      { who: v.person },
      ' ',
      { at: v.at, style: 'time' },
      ...(v.breakGlass === true ? [' (break-glass)'] : []),
    ]);
  return [{ block: context(['Approved by ', ...names]) }];
}

/** The fallback text: verdict, figures and what is wanted of the reader, without blocks. */
function fallback(record: RequestRecord, ctx: CardContext): string {
  const pieces: Piece[] = [`${headline(record)}. `];
  const { diagnosis, plan } = record;
  if (record.state === 'pending' && diagnosis !== undefined && plan !== null) {
    const free = plan.steps.reduce(
      (sum, s) => ({ low: sum.low + s.expectedFreeKiB.low, high: sum.high + s.expectedFreeKiB.high }),
      { low: 0, high: 0 },
    );
    pieces.push(`${cut(oneLine(diagnosis.headline), 600)} ${effectSentence(record.host, plan)} `);
    pieces.push(`Expected to free: ${rangeText(free)}. ${approvedBy(record).length} of ${record.required} approved. `);
    if (ctx.approvers.length === 0) pieces.push('No approver is configured.');
  } else {
    pieces.push(...withPeople(record.reason, peopleOf(record)));
    if (record.run?.report !== undefined && isFinal(record)) pieces.push(` ${gainSentence(record.run.report)}`);
    else if (isFinal(record) && diagnosis !== undefined) pieces.push(` ${cut(oneLine(diagnosis.headline), 600)}`);
    if (record.run?.doing !== undefined) pieces.push(` Now: ${cut(oneLine(record.run.doing), 200)}`);
  }
  return mrkdwn(pieces, limits.fallbackChars);
}

export function renderCard(record: RequestRecord, ctx: CardContext): Message {
  const text = fallback(record, ctx) || escapeMrkdwn(headline(record));
  const blocks = cardBlocks(record, ctx);
  if (!blocks.some((block) => block.type === 'plan')) return { text, blocks };
  return { text, blocks, simpler: cardBlocks(record, { ...ctx, simple: true }) };
}

function cardBlocks(record: RequestRecord, ctx: CardContext): KnownBlock[] {
  const body = isFinal(record) ? finalParts(record) : openParts(record, ctx);
  return fit([{ block: header(headline(record)) }, ...body, footer(record)]);
}
