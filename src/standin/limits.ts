/**
 * Slack's documented limits on blocks and views, with the wording its API puts in `response_metadata.messages`.
 * Source: docs.slack.dev, Block Kit reference, one page per block and element.
 */
import { asList, asObj, asObjs, asText, charsIn, isObj, type Obj } from './json.ts';
import { checkElement, checkText } from './limits-elements.ts';
import { checkTable } from './limits-table.ts';
import type { Report } from './limits-report.ts';

const maxBlocks = { message: 50, view: 100 } as const;
/** Undocumented, reported by several apps: a message whose blocks hold more text than this is refused. */
const maxBlocksChars = 13_200;

export function atMost(report: Report, pointer: string, text: unknown, max: number): void {
  if (typeof text === 'string' && charsIn(text) > max) report(pointer, `must be less than ${max + 1} characters`);
}

function countAtMost(report: Report, pointer: string, list: unknown, max: number, min = 1): void {
  if (!Array.isArray(list)) {
    report(pointer, 'must be an array');
    return;
  }
  if (list.length < min) report(pointer, `no fewer than ${min} items required`);
  if (list.length > max) report(pointer, `no more than ${max} items allowed`);
}

type Check = (block: Obj, at: string, report: Report) => void;

function checkSection(block: Obj, at: string, report: Report): void {
  if (block['text'] === undefined && block['fields'] === undefined)
    report(at, 'missing required field: text or fields');
  if (block['text'] !== undefined) checkText(block['text'], `${at}/text`, 3000, report);
  if (block['fields'] !== undefined) {
    countAtMost(report, `${at}/fields`, block['fields'], 10);
    asList(block['fields']).forEach((f, i) => {
      checkText(f, `${at}/fields/${i}`, 2000, report);
    });
  }
  if (block['accessory'] !== undefined) checkElement(block['accessory'], `${at}/accessory`, report);
}

function checkHeader(block: Obj, at: string, report: Report): void {
  checkText(block['text'], `${at}/text`, 150, report, 'plain_text');
}

function checkContext(block: Obj, at: string, report: Report): void {
  countAtMost(report, `${at}/elements`, block['elements'], 10);
  asObjs(block['elements']).forEach((e, i) => {
    if (e['type'] !== 'image') checkText(e, `${at}/elements/${i}`, 3000, report);
    else atMost(report, `${at}/elements/${i}/image_url`, e['image_url'], 3000);
  });
}

function checkActions(block: Obj, at: string, report: Report): void {
  countAtMost(report, `${at}/elements`, block['elements'], 25);
  const seen = new Set<string>();
  asList(block['elements']).forEach((e, i) => {
    checkElement(e, `${at}/elements/${i}`, report);
    const id = asText(asObj(e)['action_id']);
    if (id !== '' && seen.has(id)) report(`${at}/elements/${i}/action_id`, `\`action_id\` "${id}" already exists`);
    seen.add(id);
  });
}

function checkInput(block: Obj, at: string, report: Report): void {
  checkText(block['label'], `${at}/label`, 2000, report, 'plain_text');
  if (block['hint'] !== undefined) checkText(block['hint'], `${at}/hint`, 2000, report, 'plain_text');
  if (block['element'] === undefined) report(`${at}/element`, 'missing required field: element');
  else checkElement(block['element'], `${at}/element`, report);
}

function checkImage(block: Obj, at: string, report: Report): void {
  if (typeof block['alt_text'] !== 'string') report(`${at}/alt_text`, 'missing required field: alt_text');
  atMost(report, `${at}/alt_text`, block['alt_text'], 2000);
  if (block['image_url'] === undefined && block['slack_file'] === undefined)
    report(at, 'missing required field: image_url or slack_file');
  if (block['title'] !== undefined) checkText(block['title'], `${at}/title`, 2000, report, 'plain_text');
}

const richTextParts = new Set(['rich_text_section', 'rich_text_list', 'rich_text_preformatted', 'rich_text_quote']);

function checkRichText(block: Obj, at: string, report: Report): void {
  countAtMost(report, `${at}/elements`, block['elements'], 1000, 0);
  asObjs(block['elements']).forEach((e, i) => {
    if (!richTextParts.has(asText(e['type'])))
      report(`${at}/elements/${i}/type`, `unsupported type: ${asText(e['type'])}`);
    asObjs(e['elements']).forEach((leaf, n) => {
      if (leaf['type'] === 'text' && asText(leaf['text']) === '')
        report(`${at}/elements/${i}/elements/${n}/text`, 'must be more than 0 characters');
    });
  });
}

const taskStates = new Set(['pending', 'in_progress', 'complete', 'error']);

function checkTask(task: Obj, at: string, report: Report): void {
  for (const key of ['task_id', 'title'])
    if (asText(task[key]) === '') report(`${at}/${key}`, `missing required field: ${key}`);
  if (task['status'] !== undefined && !taskStates.has(asText(task['status'])))
    report(`${at}/status`, 'must be one of: pending, in_progress, complete, error');
  for (const key of ['details', 'output'])
    if (task[key] !== undefined) {
      countAtMost(report, `${at}/${key}/elements`, asObj(task[key])['elements'], 1);
      checkRichText(asObj(task[key]), `${at}/${key}`, report);
    }
}

function checkPlan(block: Obj, at: string, report: Report): void {
  if (asText(block['title']) === '') report(`${at}/title`, 'missing required field: title');
  asObjs(block['tasks']).forEach((task, i) => {
    checkTask(task, `${at}/tasks/${i}`, report);
  });
}

const checks: Record<string, Check> = {
  task_card: checkTask,
  plan: checkPlan,
  section: checkSection,
  header: checkHeader,
  divider: () => undefined,
  context: checkContext,
  actions: checkActions,
  input: checkInput,
  image: checkImage,
  rich_text: checkRichText,
  table: checkTable,
  data_table: checkTable,
  markdown: (block, at, report) => {
    atMost(report, `${at}/text`, block['text'], 12_000);
  },
};

/** What is wrong with these blocks, one line each; empty = Slack would take them. */
export function faultsInBlocks(value: unknown, where: 'message' | 'view', root = '/blocks'): string[] {
  const found: string[] = [];
  const report: Report = (pointer, what) => void found.push(`[ERROR] ${what} [json-pointer:${pointer}]`);
  if (!Array.isArray(value)) return ['[ERROR] must be an array [json-pointer:/blocks]'];
  countAtMost(report, root, value, maxBlocks[where], 0);
  const ids = new Set<string>();
  asList(value).forEach((block, i) => {
    const at = `${root}/${i}`;
    if (!isObj(block)) {
      report(at, 'must be an object');
      return;
    }
    const type = asText(block['type']);
    const check = checks[type];
    if (check === undefined) report(`${at}/type`, `unsupported type: ${type}`);
    else check(block, at, report);
    atMost(report, `${at}/block_id`, block['block_id'], 255);
    const id = asText(block['block_id']);
    if (id !== '' && ids.has(id)) report(`${at}/block_id`, `\`block_id\` "${id}" already exists`);
    ids.add(id);
  });
  const tables = asObjs(value).filter((b) => b['type'] === 'table').length;
  if (where === 'message' && tables > 1) report(root, 'only one table block is allowed');
  return found;
}

/** True when the blocks hold more text than a message may (`msg_blocks_too_long`). */
export function blocksTooLong(blocks: readonly Obj[]): boolean {
  let chars = 0;
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (isObj(value))
      for (const [key, part] of Object.entries(value)) {
        if (key === 'text' && typeof part === 'string') chars += charsIn(part);
        else walk(part);
      }
  };
  walk(blocks);
  return chars > maxBlocksChars;
}

/** What is wrong with a modal or a Home tab. */
export function faultsInView(view: unknown): string[] {
  const body = asObj(view);
  const found: string[] = [];
  const report: Report = (pointer, what) => void found.push(`[ERROR] ${what} [json-pointer:${pointer}]`);
  if (body['type'] !== 'modal' && body['type'] !== 'home') report('/view/type', 'must be one of: modal, home');
  if (body['type'] === 'modal') checkText(body['title'], '/view/title', 24, report, 'plain_text');
  for (const key of ['submit', 'close'])
    if (isObj(body[key])) checkText(body[key], `/view/${key}`, 24, report, 'plain_text');
  atMost(report, '/view/private_metadata', body['private_metadata'], 3000);
  atMost(report, '/view/callback_id', body['callback_id'], 255);
  const blocks = asObjs(body['blocks']);
  if (body['type'] === 'modal' && blocks.some((b) => b['type'] === 'input') && !isObj(body['submit']))
    report('/view/submit', 'missing required field: submit');
  return [...found, ...faultsInBlocks(body['blocks'], 'view', '/view/blocks')];
}
