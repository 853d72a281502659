/** Interactive elements inside blocks: finding them, and the state Slack reports for what a person entered. */
import { asList, asObj, asObjs, asText, isObj, type Obj } from './json.ts';

export interface Placed {
  readonly blockId: string;
  readonly block: Obj;
  readonly element: Obj;
}

/** What a person entered: a text, one option's value, several values, or nothing. */
export type Entered = string | readonly string[] | null;

export function elementsIn(blocks: readonly Obj[]): Placed[] {
  return blocks.flatMap((block) => {
    const here =
      block['type'] === 'actions' ? asObjs(block['elements']) : [block['accessory'], block['element']].filter(isObj);
    return here.map((element) => ({ blockId: asText(block['block_id']), block, element }));
  });
}

export function labelOf(element: Obj): string {
  return asText(asObj(element['text'])['text']);
}

/** By action id, else by the beginning of a button's label. */
export function findElement(blocks: readonly Obj[], what: string): Placed | undefined {
  const all = elementsIn(blocks);
  return (
    all.find((p) => p.element['action_id'] === what) ??
    all.find((p) => labelOf(p.element).toLowerCase().startsWith(what.toLowerCase()))
  );
}

export function optionsOf(element: Obj): Obj[] {
  const groups = asList(element['option_groups']);
  return groups.length > 0 ? groups.flatMap((g) => asObjs(asObj(g)['options'])) : asObjs(element['options']);
}

function pick(element: Obj, values: readonly string[]): Obj[] {
  return values.map((value) => {
    const option = optionsOf(element).find((o) => o['value'] === value);
    if (option === undefined) throw new Error(`There is no option "${value}" in ${asText(element['action_id'])}.`);
    return option;
  });
}

/** The state object Slack sends for an element holding what was entered. */
export function stateOf(element: Obj, entered: Entered): Obj {
  const type = asText(element['type']);
  const values = entered === null ? [] : typeof entered === 'string' ? [entered] : entered;
  switch (type) {
    case 'checkboxes':
    case 'multi_static_select':
      return { type, selected_options: pick(element, values) };
    case 'radio_buttons':
    case 'static_select':
      return { type, selected_option: pick(element, values.slice(0, 1))[0] ?? null };
    case 'users_select':
      return { type, selected_user: values[0] ?? null };
    case 'multi_users_select':
      return { type, selected_users: values };
    case 'conversations_select':
      return { type, selected_conversation: values[0] ?? null };
    case 'datepicker':
      return { type, selected_date: values[0] ?? null };
    case 'timepicker':
      return { type, selected_time: values[0] ?? null };
    default:
      return { type, value: values[0] === undefined || values[0] === '' ? null : values[0] };
  }
}

function initial(element: Obj): Obj | undefined {
  const type = asText(element['type']);
  if (type === 'button' || type === 'overflow' || type === 'image') return undefined;
  const chosen = asObjs(element['initial_options']).map((o) => asText(o['value']));
  const one = asText(asObj(element['initial_option'])['value']);
  const text = asText(element['initial_value'], asText(element['initial_user']));
  if (chosen.length > 0) return stateOf(element, chosen);
  return stateOf(element, one !== '' ? one : text !== '' ? text : null);
}

export type Values = Record<string, Record<string, Obj>>;

/** The state before anybody touched anything. */
export function initialValues(blocks: readonly Obj[]): Values {
  const values: Values = {};
  for (const { blockId, element } of elementsIn(blocks)) {
    const state = initial(element);
    if (state !== undefined) (values[blockId] ??= {})[asText(element['action_id'])] = state;
  }
  return values;
}

export function isEmptyState(state: Obj | undefined): boolean {
  if (state === undefined) return true;
  return Object.entries(state).every(
    ([key, value]) => key === 'type' || value === null || value === '' || (Array.isArray(value) && value.length === 0),
  );
}
