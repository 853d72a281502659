/** Limits of text objects, interactive elements and confirm dialogs. */
import { asList, asObj, asText, charsIn, isObj, type Obj } from './json.ts';
import type { Report } from './limits-report.ts';

/** A text object of the wanted kind, neither empty nor longer than `max` characters. */
export function checkText(value: unknown, at: string, max: number, report: Report, only?: 'plain_text'): void {
  if (!isObj(value)) {
    report(at, 'missing required field: text');
    return;
  }
  const type = value['type'];
  if (type !== 'plain_text' && type !== 'mrkdwn') report(`${at}/type`, 'must be one of: plain_text, mrkdwn');
  if (only !== undefined && type !== only) report(`${at}/type`, `must be ${only}`);
  const text = value['text'];
  if (typeof text !== 'string') {
    report(`${at}/text`, 'must be a string');
    return;
  }
  if (text.length === 0) report(`${at}/text`, 'must be more than 0 characters');
  if (charsIn(text) > max) report(`${at}/text`, `must be less than ${max + 1} characters`);
}

function tooLong(value: unknown, max: number, at: string, report: Report): void {
  if (typeof value === 'string' && charsIn(value) > max) report(at, `must be less than ${max + 1} characters`);
}

function checkConfirm(value: unknown, at: string, report: Report): void {
  const confirm = asObj(value);
  checkText(confirm['title'], `${at}/title`, 100, report, 'plain_text');
  checkText(confirm['text'], `${at}/text`, 300, report);
  checkText(confirm['confirm'], `${at}/confirm`, 30, report, 'plain_text');
  checkText(confirm['deny'], `${at}/deny`, 30, report, 'plain_text');
  checkStyle(confirm, at, report);
}

function checkStyle(element: Obj, at: string, report: Report): void {
  const style = element['style'];
  if (style !== undefined && style !== 'primary' && style !== 'danger')
    report(`${at}/style`, 'must be one of: primary, danger');
}

function checkButton(element: Obj, at: string, report: Report): void {
  checkText(element['text'], `${at}/text`, 75, report, 'plain_text');
  tooLong(element['value'], 2000, `${at}/value`, report);
  tooLong(element['url'], 3000, `${at}/url`, report);
  tooLong(element['accessibility_label'], 75, `${at}/accessibility_label`, report);
  checkStyle(element, at, report);
}

const maxOptions: Record<string, number> = {
  static_select: 100,
  multi_static_select: 100,
  checkboxes: 10,
  radio_buttons: 10,
  overflow: 5,
};

function checkOptions(element: Obj, at: string, report: Report): void {
  const max = maxOptions[asText(element['type'])] ?? 100;
  const groups = asList(element['option_groups']);
  const options = groups.length > 0 ? groups.flatMap((g) => asList(asObj(g)['options'])) : asList(element['options']);
  if (options.length === 0) report(`${at}/options`, 'no fewer than 1 items required');
  if (options.length > max && groups.length === 0) report(`${at}/options`, `no more than ${max} items allowed`);
  options.forEach((option, i) => {
    const o = asObj(option);
    checkText(o['text'], `${at}/options/${i}/text`, 75, report);
    tooLong(o['value'], 150, `${at}/options/${i}/value`, report);
    if (typeof o['value'] !== 'string') report(`${at}/options/${i}/value`, 'missing required field: value');
    if (o['description'] !== undefined) checkText(o['description'], `${at}/options/${i}/description`, 75, report);
  });
}

function checkTextInput(element: Obj, at: string, report: Report): void {
  const max = element['max_length'];
  if (typeof max === 'number' && (max < 1 || max > 3000)) report(`${at}/max_length`, 'must be between 1 and 3000');
}

const elements: Record<string, (element: Obj, at: string, report: Report) => void> = {
  button: checkButton,
  static_select: checkOptions,
  multi_static_select: checkOptions,
  checkboxes: checkOptions,
  radio_buttons: checkOptions,
  overflow: checkOptions,
  plain_text_input: checkTextInput,
  number_input: () => undefined,
  users_select: () => undefined,
  multi_users_select: () => undefined,
  conversations_select: () => undefined,
  datepicker: () => undefined,
  timepicker: () => undefined,
  image: () => undefined,
};

export function checkElement(value: unknown, at: string, report: Report): void {
  const element = asObj(value);
  const type = asText(element['type']);
  const check = elements[type];
  if (check === undefined) {
    report(`${at}/type`, `unsupported type: ${type}`);
    return;
  }
  check(element, at, report);
  tooLong(element['action_id'], 255, `${at}/action_id`, report);
  if (isObj(element['placeholder'])) checkText(element['placeholder'], `${at}/placeholder`, 150, report, 'plain_text');
  if (element['confirm'] !== undefined) checkConfirm(element['confirm'], `${at}/confirm`, report);
}
