/** The text in another bot's message, with the markup of chat taken off: titles, running text, labelled fields, colours. */

export interface ShownMessage {
  readonly username: string;
  /** Headings, most telling first. */
  readonly titles: readonly string[];
  /** All running text, titles included; never footers or names of senders, which can be a forwarding parent. */
  readonly texts: readonly string[];
  readonly fields: readonly { readonly title: string; readonly value: string }[];
  readonly footers: readonly string[];
  readonly colors: readonly string[];
}

type Obj = Record<string, unknown>;
const isObj = (value: unknown): value is Obj => typeof value === 'object' && value !== null && !Array.isArray(value);
const objs = (value: unknown): Obj[] => (Array.isArray(value) ? value.slice(0, 100).filter(isObj) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 8000) : '');

/** `<http://x|label>` -> `label`, entities decoded, `*`, `_` and back-ticks around words gone. */
export function unmarked(given: string): string {
  return given
    .replace(/<(?:https?|mailto)[^|>]*\|([^>]*)>/g, '$1')
    .replace(/<(https?:[^>|]*)>/g, '$1')
    .replace(/<[@#!][^>]*>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/[`*]/g, '')
    .replace(/(^|\s)_(.+?)_(?=[\s:=,.)]|$)/gm, '$1$2');
}

class Reader {
  readonly titles: string[] = [];
  readonly texts: string[] = [];
  readonly fields: { title: string; value: string }[] = [];
  readonly footers: string[] = [];
  readonly colors: string[] = [];

  #say(given: unknown, into: string[] = this.texts): void {
    const said = unmarked(text(given)).trim();
    if (said !== '') into.push(said);
  }

  #title(given: unknown): void {
    this.#say(given, this.titles);
    this.#say(given);
  }

  #field(title: string, value: string): void {
    const name = unmarked(title)
      .replace(/[:\s]+$/, '')
      .trim();
    const said = unmarked(value).trim();
    if (name !== '' && said !== '') this.fields.push({ title: name, value: said });
    this.#say(`${title} ${value}`);
  }

  block(block: Obj, depth: number): void {
    if (depth > 6) return;
    const own = isObj(block['text']) ? text(block['text']['text']) : text(block['text']);
    switch (block['type']) {
      case 'header':
        this.#title(own);
        break;
      case 'section':
        this.#say(own);
        for (const field of objs(block['fields'])) {
          const [first = '', ...rest] = text(field['text']).split('\n');
          this.#field(first, rest.join(' '));
        }
        break;
      case 'context':
        for (const element of objs(block['elements'])) this.#say(element['text'], this.footers);
        break;
      default:
        this.#say(spelled(block, 0));
    }
  }

  attachment(given: Obj): void {
    this.#say(given['pretext']);
    this.#title(given['title']);
    this.#say(given['text']);
    if (text(given['title']) === '' && text(given['text']) === '') this.#title(given['fallback']);
    for (const field of objs(given['fields'])) this.#field(text(field['title']), text(field['value']));
    for (const block of objs(given['blocks'])) this.block(block, 0);
    this.#say(given['footer'], this.footers);
    if (text(given['color']) !== '') this.colors.push(text(given['color']));
  }

  message(given: Obj): void {
    this.#say(given['text']);
    for (const attachment of objs(given['attachments'])) this.attachment(attachment);
    for (const block of objs(given['blocks'])) this.block(block, 0);
  }
}

/** The words of rich text, in order. */
function spelled(part: unknown, depth: number): string {
  if (depth > 8 || !isObj(part)) return '';
  if (typeof part['text'] === 'string') return text(part['text']);
  const inner = objs(part['elements']).map((each) => spelled(each, depth + 1));
  const block = typeof part['type'] === 'string' && part['type'].startsWith('rich_text_');
  return inner.join('') + (block ? '\n' : '');
}

/** Reads a message event's `message`, whatever it holds. */
export function shownMessage(message: unknown): ShownMessage {
  const reader = new Reader();
  const given = isObj(message) ? message : {};
  reader.message(given);
  const { titles, texts, fields, footers, colors } = reader;
  return { username: text(given['username']), titles, texts, fields, footers, colors };
}
