/** A channel as plain text, as it happens: for `npm run demo -- --auto` and for reading over somebody's shoulder. Pure. */

/** A message as far as a reader needs it. */
export interface Shown {
  readonly ts: string;
  readonly threadTs?: string;
  readonly text: string;
  readonly blocks: readonly object[];
  readonly files: readonly { readonly name: string }[];
}

const indent = '    ';

/** The whole message, block by block. What has no words of its own (a divider) is left out. */
export function messageText(message: Shown): string {
  const body = message.blocks.flatMap((block) => blockLines(block));
  const files = message.files.map((file) => `[file ${file.name}]`);
  const lines = body.length > 0 ? body : message.text.split('\n');
  return [...lines, ...files].map((line) => `${indent}${line}`.trimEnd()).join('\n');
}

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);
const nodes = (value: unknown): Node[] => (Array.isArray(value) ? value.filter(isNode) : []);
const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return isNode(value) && typeof value['text'] === 'string' ? value['text'] : '';
};

function blockLines(block: object): string[] {
  const node: Node = { ...block };
  switch (node['type']) {
    case 'header':
      return [plain(textOf(node['text'])), ''];
    case 'section':
      return [...lines(plain(textOf(node['text']))), ...nodes(node['fields']).flatMap((f) => lines(plain(textOf(f))))];
    case 'context':
      return [
        nodes(node['elements'])
          .map((e) => plain(textOf(e)))
          .join('  '),
      ];
    case 'rich_text':
      return nodes(node['elements']).flatMap((element) => lines(richText(element)));
    case 'table':
      return (Array.isArray(node['rows']) ? node['rows'] : []).map((row) =>
        nodes(row)
          .map((cell) => textOf(cell) || richText(cell))
          .join(' | '),
      );
    case 'actions':
      return [
        nodes(node['elements'])
          .map((e) => `[ ${textOf(e['text'])} ]`)
          .join(' '),
      ];
    case 'image':
      return [`[picture: ${textOf(node['alt_text'])}]`];
    default:
      return [];
  }
}

function richText(element: Node): string {
  if (element['type'] === 'text') return textOf(element);
  if (element['type'] === 'user') return `@${textOf(element['user_id'])}`;
  if (element['type'] === 'link') return textOf(element) || textOf(element['url']);
  const inside = nodes(element['elements']).map(richText);
  return element['type'] === 'rich_text_list' ? inside.map((line) => `- ${line}`).join('\n') : inside.join('');
}

const lines = (text: string): string[] => (text === '' ? [] : text.split('\n'));

/** Slack's markup as a reader sees it: dates by their fallback, links by their label, entities as signs. */
function plain(text: string): string {
  return text
    .replace(/<!date\^[^|>]*\|([^>]*)>/g, '$1')
    .replace(/<@([A-Z0-9]+)>/g, '@$1')
    .replace(/<!subteam\^([A-Z0-9]+)[^>]*>/g, '@$1')
    .replace(/<[^|>]*\|([^>]*)>/g, '$1')
    .replace(/[*`](?=\S)|(?<=\S)[*`]/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}

/** The labels of the buttons a message has: a card is final when no decision button is left. */
export function buttonLabels(message: Pick<Shown, 'blocks'>): string[] {
  return message.blocks.flatMap((block) => {
    const node: Node = { ...block };
    return node['type'] === 'actions' ? nodes(node['elements']).map((e) => textOf(e['text'])) : [];
  });
}
