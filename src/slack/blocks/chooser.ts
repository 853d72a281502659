/**
 * The dialog in which an approver chooses a part of the plan. A short plan is one list of ticks. A longer one begins with
 * a tick per group (the processes of one step and one owner, or another step), and each group opens one by one. Pure.
 */
import type { Checkboxes, InputBlock, KnownBlock, ModalView, PlainTextOption } from '@slack/types';
import type { Plan, ProcessRef, Step } from '../../memory/contract.ts';
import { rangeText, sizeText } from '../../memory/sizes.ts';
import { targetKey } from '../../memory/story.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { limits, plural } from '../text.ts';
import { callbackIds, writeMemory, type ModalMemory } from './dialog-memory.ts';
import { actions, button, context, plain, rich, sentence } from './elements.ts';
import { effectSentence, namesInWords, processesOf, stepTitle, userOf } from './plan.ts';
import { riskWords } from './words.ts';

export const pageActionIds = {
  next: 'reclaim_page_next',
  previous: 'reclaim_page_previous',
  open: 'reclaim_group_open',
  back: 'reclaim_group_back',
} as const;

/** Up to so many ticks are one list: a phone shows them without a page to turn. */
const shortList = 12;
const ticksPerPage = 50;
const groupsPerPage = 40;

/** Everything that can be unticked, as `Decision.without` names it: each process of the kill steps, each other step. */
export function tickable(plan: Plan): { readonly key: string; readonly step: number }[] {
  return plan.steps.flatMap((step, i) =>
    step.action === 'kill'
      ? step.targets.map((t) => ({ key: targetKey(t), step: i }))
      : [{ key: `step:${step.id}`, step: i }],
  );
}

/** What every part of the dialog is drawn from. */
interface Choice {
  readonly record: RequestRecord;
  readonly plan: Plan;
  readonly all: ReturnType<typeof tickable>;
  readonly known: ReadonlyMap<string, ProcessRef>;
}
const choiceOf = (record: RequestRecord, plan: Plan): Choice => ({
  record,
  plan,
  all: tickable(plan),
  known: processesOf(record),
});

interface Group {
  readonly step: Step;
  /** Null for a step that is no ending of processes. */
  readonly owner: string | null;
  /** Positions in `tickable(plan)`. */
  readonly positions: number[];
  readonly processes: ProcessRef[];
}

/** In the order of the plan: the processes of one step and one owner together, every other step by itself. */
function groupsOf({ plan, all, known }: Choice): Group[] {
  const groups = new Map<string, Group>();
  for (const [position, { key, step: index }] of all.entries()) {
    const step = plan.steps[index];
    if (step === undefined) continue;
    const process = known.get(key);
    const owner = step.action !== 'kill' ? null : process === undefined ? 'unknown user' : userOf(process);
    const name = JSON.stringify([index, owner]);
    const group = groups.get(name) ?? { step, owner, positions: [], processes: [] };
    group.positions.push(position);
    if (process !== undefined) group.processes.push(process);
    groups.set(name, group);
  }
  return [...groups.values()];
}

type Screen =
  | { readonly kind: 'list'; readonly positions: readonly number[]; readonly pages: number; readonly of: Group | null }
  | { readonly kind: 'groups'; readonly groups: ReadonlyMap<number, Group>; readonly pages: number };

/** What is on the screen: the one short list, a page of the groups, or a page of one group. */
function screenOf(choice: Choice, memory: ModalMemory): Screen {
  const all = [...choice.all.keys()];
  if (all.length <= shortList) return { kind: 'list', positions: all, pages: 1, of: null };
  const groups = groupsOf(choice);
  const open = memory.group === null ? undefined : groups[memory.group];
  const slice = <T>(items: readonly T[], size: number) => items.slice(memory.page * size, (memory.page + 1) * size);
  const pages = (n: number, size: number) => Math.max(1, Math.ceil(n / size));
  if (open !== undefined) {
    const positions = slice(open.positions, ticksPerPage);
    return { kind: 'list', positions, pages: pages(open.positions.length, ticksPerPage), of: open };
  }
  const shown = new Map(slice([...groups.entries()], groupsPerPage));
  return { kind: 'groups', groups: shown, pages: pages(groups.length, groupsPerPage) };
}

const option = (text: string, description: string, value: string): PlainTextOption => ({
  text: plain(text, limits.optionChars),
  description: plain(description, limits.optionChars),
  value,
});

function tickOption({ plan, all, known }: Choice, position: number, value = String(position)): PlainTextOption {
  const { key, step: index } = all[position] ?? { key: '', step: -1 };
  const step = plan.steps[index];
  if (step !== undefined && step.action !== 'kill') {
    return option(stepTitle(step, known), `expected ${rangeText(step.expectedFreeKiB)} to free`, value);
  }
  const p = known.get(key);
  if (p === undefined) return option(`process ${key}`, 'not in the report any more', value);
  return option(`${sizeText(p.kiB)}  ${p.comm}  pid ${p.pid}  ${userOf(p)}`, p.command || p.comm, value);
}

const sizeOf = (group: Group): string => sizeText(group.processes.reduce((sum, p) => sum + p.kiB, 0));
const groupTitle = (group: Group): string =>
  `${plural(group.positions.length, 'process', 'processes')} of ${group.owner ?? ''}, ${sizeOf(group)}`;

function groupOption(choice: Choice, index: number, group: Group, off: ReadonlySet<number>) {
  const value = `g${index}`;
  const [only] = group.positions;
  if (group.positions.length === 1 && only !== undefined) return tickOption(choice, only, value);
  const kept = group.positions.filter((p) => !off.has(p)).length;
  const part = kept === 0 || kept === group.positions.length ? 'all' : `${kept} of ${group.positions.length}`;
  return option(`${index + 1}. ${groupTitle(group)}`, `${part}: ${namesInWords(group.processes)}`, value);
}

/** One block of at most ten ticks. The turn is in its id, so that Slack shows these ticks and not older ones. */
function ticks(
  memory: ModalMemory,
  label: string,
  first: number,
  options: PlainTextOption[],
  isOn: (value: string) => boolean,
): InputBlock {
  const ticked = options.filter((o) => isOn(o.value ?? ''));
  const element: Checkboxes = {
    type: 'checkboxes',
    action_id: `ticks.${first}`,
    options,
    ...(ticked.length === 0 ? {} : { initial_options: ticked }),
  };
  return {
    type: 'input',
    block_id: `ticks.${memory.turn}.${first}`,
    optional: true,
    label: plain(label, 150),
    element,
  };
}

/** At most ten in a piece, and never two of different `kind` in one. */
function pieces<T>(items: readonly T[], kind: (item: T) => unknown): T[][] {
  const out: T[][] = [];
  for (const item of items) {
    const last = out.at(-1);
    const [first] = last ?? [];
    if (last === undefined || first === undefined || last.length === limits.optionsPerGroup) out.push([item]);
    else if (kind(first) === kind(item)) last.push(item);
    else out.push([item]);
  }
  return out;
}

function listBlocks(
  choice: Choice,
  memory: ModalMemory,
  { positions, of }: Extract<Screen, { kind: 'list' }>,
): KnownBlock[] {
  const { plan, all, known } = choice;
  const off = new Set(memory.off);
  return pieces(positions, (p) => all[p]?.step).map((piece) => {
    const first = piece[0] ?? 0;
    const step = plan.steps[all[first]?.step ?? 0];
    const at = of?.positions.indexOf(first) ?? 0;
    const range = `${at + 1} to ${at + piece.length} of ${of?.positions.length ?? 0}`;
    const label = of !== null ? range : step === undefined ? 'Targets' : stepTitle(step, known);
    const options = piece.map((p) => tickOption(choice, p));
    return ticks(memory, label, first, options, (value) => !off.has(Number(value)));
  });
}

function groupBlocks(choice: Choice, memory: ModalMemory, groups: ReadonlyMap<number, Group>): KnownBlock[] {
  const off = new Set(memory.off);
  return pieces([...groups], () => 'one kind').flatMap((piece): KnownBlock[] => {
    const first = piece[0]?.[0] ?? 0;
    const options = piece.map(([index, group]) => groupOption(choice, index, group, off));
    const isOn = (value: string) => groups.get(Number(value.slice(1)))?.positions.some((p) => !off.has(p)) === true;
    const open = piece.flatMap(([index, group]) =>
      group.positions.length === 1
        ? []
        : button({
            label: `${index + 1}. One by one (${group.positions.length})`,
            action: `${pageActionIds.open}.${index}`,
            value: String(index),
            says: `Choose one by one among ${groupTitle(group)}`,
          }),
    );
    const last = first + piece.length;
    const label = groups.size <= limits.optionsPerGroup ? 'Whole groups' : `Whole groups, ${first + 1} to ${last}`;
    return [
      ticks(memory, label, first, options, isOn),
      ...(open.length === 0 ? [] : [actions(`open.${memory.turn}.${first}`, open)]),
    ];
  });
}

function turnBlocks({ id, page, group }: ModalMemory, pages: number): KnownBlock[] {
  const turn = [
    ...(page > 0 ? [button({ label: 'Previous page', action: pageActionIds.previous, value: id })] : []),
    ...(page < pages - 1 ? [button({ label: 'Next page', action: pageActionIds.next, value: id })] : []),
    ...(group === null ? [] : [button({ label: 'Back to the groups', action: pageActionIds.back, value: id })]),
  ];
  if (turn.length === 0) return [];
  const where = pages > 1 ? `Page ${page + 1} of ${pages}. ` : '';
  return [
    actions('pages', turn),
    context([`${where}Ticks are kept when you turn pages. Approving counts the ticks of every page.`]),
  ];
}

/** The approver's dialog. Everything is ticked at first; what is unticked is left out of the plan. */
export function chooseModal(record: RequestRecord, plan: Plan, memory: ModalMemory, notice?: string): ModalView {
  const choice = choiceOf(record, plan);
  const screen = screenOf(choice, memory);
  const inGroup = screen.kind === 'list' && screen.of !== null;
  const risks = [...new Set(plan.steps.map((s) => s.action))].map((a) => [`Risk: ${riskWords[a]}`]);
  return {
    type: 'modal',
    callback_id: callbackIds.choose,
    private_metadata: writeMemory(memory),
    title: plain('Approve a part', limits.viewTitleChars),
    submit: plain('Approve ticked', limits.viewTitleChars),
    close: plain('Go back', limits.viewTitleChars),
    blocks: [
      ...(notice === undefined ? [] : [sentence({ bold: 'Not done: ' }, notice)]),
      inGroup
        ? sentence(
            { bold: `${record.host}, ${(memory.group ?? 0) + 1}. ` },
            groupTitle(screen.of),
            '. Untick what must stay.',
          )
        : sentence({ bold: record.host }, `: untick what must stay. ${effectSentence(record.host, plan)}`),
      ...(inGroup ? [] : [rich([{ list: risks }])]),
      ...(screen.kind === 'list' ? listBlocks(choice, memory, screen) : groupBlocks(choice, memory, screen.groups)),
      ...turnBlocks(memory, screen.pages),
    ],
  };
}

type Values = Readonly<
  Record<string, Readonly<Record<string, { selected_options?: readonly { value?: string }[] | undefined }>>>
>;

/**
 * Everything that is unticked now: what the screen shows, and what is remembered of the other pages. Ticking a group of
 * which a part was left out keeps that part out; ticking one that was out as a whole takes all of it in.
 */
export function untickedAfter(record: RequestRecord, plan: Plan, memory: ModalMemory, values: Values): number[] {
  const ticked = new Set(
    Object.values(values)
      .flatMap((block) => Object.values(block).flatMap((state) => state.selected_options ?? []))
      .map((o) => o.value ?? ''),
  );
  const off = new Set(memory.off);
  const screen = screenOf(choiceOf(record, plan), memory);
  if (screen.kind === 'list') {
    for (const p of screen.positions) {
      if (ticked.has(String(p))) off.delete(p);
      else off.add(p);
    }
  } else {
    for (const [index, { positions }] of screen.groups) {
      if (!ticked.has(`g${index}`)) for (const p of positions) off.add(p);
      else if (positions.every((p) => off.has(p))) for (const p of positions) off.delete(p);
    }
  }
  return [...off].sort((a, b) => a - b);
}

/** Where a button of the dialog leads; a button it does not know leaves the page as it is. */
export function turned(memory: ModalMemory, actionId: string, off: number[]): ModalMemory {
  const next = { ...memory, off, turn: memory.turn + 1 };
  if (actionId === pageActionIds.next) return { ...next, page: memory.page + 1 };
  if (actionId === pageActionIds.previous) return { ...next, page: Math.max(0, memory.page - 1) };
  const home = memory.group === null ? memory.page : Math.floor(memory.group / groupsPerPage);
  if (actionId === pageActionIds.back) return { ...next, page: home, group: null };
  const group = /^reclaim_group_open\.(\d{1,6})$/.exec(actionId)?.[1];
  return group === undefined ? next : { ...next, page: 0, group: Number(group) };
}
