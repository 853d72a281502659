/** The dialogs of an approver: choose what of the plan to approve, deny with a reason, break the glass. Pure. */
import type { Checkboxes, InputBlock, KnownBlock, ModalView } from '@slack/types';
import { z } from 'zod';
import type { Plan, ProcessRef } from '../../memory/contract.ts';
import { rangeText, sizeText } from '../../memory/sizes.ts';
import { targetKey } from '../../memory/story.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, limits, oneLine, plural } from '../text.ts';
import { actions, button, context, plain, rich, sentence } from './elements.ts';
import { effectSentence, processesOf, stepTitle } from './plan.ts';
import { riskWords } from './words.ts';

export const callbackIds = {
  choose: 'reclaim_choose_view',
  deny: 'reclaim_deny_view',
  breakGlass: 'reclaim_break_glass_view',
  lookAt: 'reclaim_look_at_view',
} as const;
export const pageActionIds = { next: 'reclaim_page_next', previous: 'reclaim_page_previous' } as const;

/** What a dialog remembers. `off` holds positions in `tickable(plan)`, which the digest pins; keys would not fit. */
const metadataSchema = z.object({
  id: z.string(),
  channel: z.string(),
  digest: z.string(),
  page: z.number().int().nonnegative().default(0),
  off: z.array(z.number().int().nonnegative()).default([]),
});
export type ModalMemory = z.infer<typeof metadataSchema>;

export function readMemory(privateMetadata: string): ModalMemory | null {
  try {
    return metadataSchema.parse(JSON.parse(privateMetadata));
  } catch {
    return null;
  }
}

/** Everything that can be unticked, as `Decision.without` names it: each process of the kill steps, each other step. */
export function tickable(plan: Plan): { readonly key: string; readonly step: number }[] {
  return plan.steps.flatMap((step, i) =>
    step.action === 'kill'
      ? step.targets.map((t) => ({ key: targetKey(t), step: i }))
      : [{ key: `step:${step.id}`, step: i }],
  );
}

const ticksPerPage = 80;
export const pagesOf = (plan: Plan): number => Math.max(1, Math.ceil(tickable(plan).length / ticksPerPage));

function optionFor(record: RequestRecord, plan: Plan, position: number, all: ReturnType<typeof tickable>) {
  const tick = all[position];
  const step = tick === undefined ? undefined : plan.steps[tick.step];
  if (tick === undefined || step === undefined) return null;
  const p: ProcessRef | undefined = processesOf(record).get(tick.key);
  if (step.action !== 'kill') {
    return {
      text: plain(stepTitle(step, processesOf(record)), limits.optionChars),
      description: plain(`expected ${rangeText(step.expectedFreeKiB)} to free`, limits.optionChars),
      value: String(position),
    };
  }
  return {
    text: plain(
      p === undefined
        ? `process ${tick.key}`
        : `${sizeText(p.kiB)}  ${p.comm}  pid ${p.pid}  ${p.user ?? 'unknown user'}`,
      limits.optionChars,
    ),
    description: plain(p === undefined ? 'not in the report any more' : p.command || p.comm, limits.optionChars),
    value: String(position),
  };
}

/** The checkbox groups of one page: at most ten ticks each, never across two steps. */
function groups(record: RequestRecord, plan: Plan, memory: ModalMemory): KnownBlock[] {
  const all = tickable(plan);
  const from = memory.page * ticksPerPage;
  const positions = [...all.keys()].slice(from, from + ticksPerPage);
  const off = new Set(memory.off);
  const blocks: KnownBlock[] = [];
  let at = 0;
  while (at < positions.length) {
    const first = positions[at] ?? 0;
    const step = all[first]?.step ?? 0;
    const inGroup = positions.slice(at, at + limits.optionsPerGroup).filter((p) => all[p]?.step === step);
    at += Math.max(1, inGroup.length);
    blocks.push(group(record, plan, inGroup, off, all, memory.page));
  }
  return blocks;
}

function group(
  record: RequestRecord,
  plan: Plan,
  positions: readonly number[],
  off: ReadonlySet<number>,
  all: ReturnType<typeof tickable>,
  page: number,
): InputBlock {
  const options = positions.flatMap((p) => optionFor(record, plan, p, all) ?? []);
  const ticked = options.filter((o) => !off.has(Number(o.value)));
  const element: Checkboxes = {
    type: 'checkboxes',
    action_id: `ticks.${positions[0] ?? 0}`,
    options,
    ...(ticked.length === 0 ? {} : { initial_options: ticked }),
  };
  const step = plan.steps[all[positions[0] ?? 0]?.step ?? 0];
  const label = step === undefined ? 'Targets' : stepTitle(step, processesOf(record));
  return {
    type: 'input',
    block_id: `ticks.${page}.${positions[0] ?? 0}`,
    optional: true,
    label: plain(label, 150),
    element,
  };
}

/** The approver's dialog. Everything is ticked; what is unticked is left out of the plan. */
export function chooseModal(record: RequestRecord, plan: Plan, memory: ModalMemory): ModalView {
  const pages = pagesOf(plan);
  const risks = [...new Set(plan.steps.map((s) => s.action))].map((a) => [`Risk: ${riskWords[a]}`]);
  const turn = [
    ...(memory.page > 0 ? [button({ label: 'Previous page', action: pageActionIds.previous, value: record.id })] : []),
    ...(memory.page < pages - 1 ? [button({ label: 'Next page', action: pageActionIds.next, value: record.id })] : []),
  ];
  return {
    type: 'modal',
    callback_id: callbackIds.choose,
    private_metadata: JSON.stringify(memory),
    title: plain('Approve a part', limits.viewTitleChars),
    submit: plain('Approve ticked', limits.viewTitleChars),
    close: plain('Go back', limits.viewTitleChars),
    blocks: [
      sentence({ bold: record.host }, `: untick what must stay. ${effectSentence(record.host, plan)}`),
      rich([{ list: risks }]),
      ...groups(record, plan, memory),
      ...(turn.length === 0
        ? []
        : [
            actions('pages', turn),
            context([`Page ${memory.page + 1} of ${pages}. Ticks are kept when you turn pages.`]),
          ]),
    ],
  };
}

/** Merges the ticks of the page on screen into what is unticked elsewhere. */
export function untickedAfter(
  plan: Plan,
  memory: ModalMemory,
  values: Readonly<Record<string, Readonly<Record<string, { selected_options?: readonly { value?: string }[] }>>>>,
): number[] {
  const all = tickable(plan);
  const from = memory.page * ticksPerPage;
  const onPage = [...all.keys()].slice(from, from + ticksPerPage);
  const ticked = new Set(
    Object.values(values)
      .flatMap((block) => Object.values(block).flatMap((state) => state.selected_options ?? []))
      .map((o) => Number(o.value)),
  );
  const elsewhere = memory.off.filter((p) => !onPage.includes(p));
  return [...elsewhere, ...onPage.filter((p) => !ticked.has(p))].sort((a, b) => a - b);
}

/** What `private_metadata` can remember; beyond it a person must deny instead of unticking one by one. */
export const fitsMemory = (memory: ModalMemory): boolean =>
  JSON.stringify(memory).length <= limits.privateMetadataChars;

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
    private_metadata: JSON.stringify(memory),
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
    private_metadata: JSON.stringify(memory),
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
