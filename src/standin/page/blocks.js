/** Blocks as DOM nodes. `on` is the message or view they belong to. */
import { el, safeHref, sizeOf } from './dom.js';
import { control } from './elements.js';
import { emojiOf } from './emoji.js';
import { channelMention, dateNode, groupMention, link, mrkdwn, plain, textObject, userMention } from './mrkdwn.js';

function styled(node, style = {}) {
  let shown = node;
  if (style.code) shown = el('code', {}, shown);
  if (style.bold) shown = el('strong', {}, shown);
  if (style.italic) shown = el('em', {}, shown);
  if (style.strike) shown = el('s', {}, shown);
  return shown;
}

function leaf(part) {
  switch (part.type) {
    case 'text':
      return styled(document.createTextNode(part.text), part.style);
    case 'link': {
      const href = safeHref(part.url ?? '');
      const shown = part.text ?? part.url;
      return styled(href ? link(href, shown) : document.createTextNode(shown), part.style);
    }
    case 'user':
      return userMention(part.user_id);
    case 'usergroup':
      return groupMention(part.usergroup_id);
    case 'channel':
      return channelMention(part.channel_id);
    case 'broadcast':
      return el('span', { class: 'mention' }, `@${part.range}`);
    case 'emoji':
      return document.createTextNode(emojiOf(part.name) ?? `:${part.name}:`);
    case 'date':
      return dateNode(part.timestamp, part.format ?? '{date_short} {time}', part.fallback);
    case 'color':
      return el('code', {}, part.value);
    default:
      return document.createTextNode('');
  }
}

/** Newlines inside rich text are line breaks. */
function leaves(elements = []) {
  return elements.flatMap((part) => {
    if (part.type !== 'text' || !part.text.includes('\n')) return [leaf(part)];
    return part.text
      .split('\n')
      .flatMap((line, i) => (i === 0 ? [leaf({ ...part, text: line })] : [el('br'), leaf({ ...part, text: line })]));
  });
}

const richParts = {
  rich_text_section: (p) => el('div', { class: 'text' }, ...leaves(p.elements)),
  rich_text_preformatted: (p) =>
    el(
      'pre',
      { class: 'pre', tabindex: '0' },
      ...(p.elements ?? []).map((e) => document.createTextNode(e.text ?? e.url ?? '')),
    ),
  rich_text_quote: (p) => el('blockquote', { class: 'quote text' }, ...leaves(p.elements)),
  rich_text_list: (p) =>
    el(
      p.style === 'ordered' ? 'ol' : 'ul',
      { class: 'list', style: `margin-left:${(p.indent ?? 0) * 20}px` },
      ...(p.elements ?? []).map((item) => el('li', { class: 'text' }, ...leaves(item.elements))),
    ),
};

function richText(block) {
  return el('div', { class: 'block-rich' }, ...(block.elements ?? []).map((p) => richParts[p.type]?.(p)));
}

function cell(content, isHead, setting = {}) {
  const align = setting.align ?? 'left';
  const inner = content.type === 'rich_text' ? richText(content) : String(content.text ?? content.value ?? '');
  const classes = setting.is_wrapped ? 'wraps' : undefined;
  return el(
    isHead ? 'th' : 'td',
    { class: classes, style: `text-align:${align}`, ...(isHead ? { scope: 'col' } : {}) },
    inner,
  );
}

function table(block) {
  const settings = block.column_settings ?? [];
  const rows = block.rows ?? [];
  const caption = typeof block.caption === 'string' ? block.caption : block.caption?.text;
  const row = (cells, isHead) => el('tr', {}, ...cells.map((c, i) => cell(c, isHead, settings[i] ?? {})));
  return el(
    'div',
    { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': caption ?? 'Table' },
    el(
      'table',
      {},
      caption && el('caption', {}, caption),
      el('thead', {}, ...rows.slice(0, 1).map((r) => row(r, true))),
      el('tbody', {}, ...rows.slice(1).map((r) => row(r, false))),
    ),
  );
}

function imageOf(block) {
  const src =
    safeHref(block.image_url ?? '') ?? (block.slack_file?.id ? `/files/${block.slack_file.id}/image` : undefined);
  return el(
    'figure',
    { class: 'block-image' },
    block.title && el('figcaption', {}, plain(block.title.text)),
    el('img', { src, alt: block.alt_text ?? '' }),
  );
}

function section(block, on) {
  const main = el('div', { class: 'section-main' });
  if (block.text) main.append(textObject(block.text));
  if (block.fields) main.append(el('div', { class: 'fields' }, ...block.fields.map(textObject)));
  const extra =
    block.accessory &&
    (block.accessory.type === 'image' ? imageOf(block.accessory) : control(block.accessory, block, on));
  return el('div', { class: 'block-section' }, main, extra);
}

function input(block, on) {
  const id = `in-${block.block_id}`;
  const error = on.errors?.[block.block_id];
  const isGroup = block.element.type === 'checkboxes' || block.element.type === 'radio_buttons';
  const label = [plain(block.label.text), block.optional && el('span', { class: 'optional' }, ' (optional)')];
  return el(
    'div',
    {
      class: error ? 'input-block wrong' : 'input-block',
      ...(isGroup ? { role: 'group', 'aria-labelledby': `${id}-label` } : {}),
    },
    isGroup ? el('div', { class: 'label', id: `${id}-label` }, ...label) : el('label', { for: id }, ...label),
    control(block.element, block, on, { id, inForm: true, describedBy: error ? `${id}-error` : undefined }),
    block.hint && el('div', { class: 'hint' }, plain(block.hint.text)),
    error && el('div', { class: 'input-error', id: `${id}-error`, role: 'alert' }, error),
  );
}

const taskMarks = { pending: '○', in_progress: '◐', complete: '✓', error: '✗' };
const taskWords = { pending: 'not started', in_progress: 'under way', complete: 'complete', error: 'error' };

function task(block) {
  return el(
    'li',
    { class: `task task-${block.status ?? 'pending'}` },
    el('span', { class: 'task-mark', 'aria-hidden': 'true' }, taskMarks[block.status] ?? taskMarks.pending),
    el(
      'div',
      {},
      el(
        'div',
        { class: 'task-title' },
        block.title,
        el('span', { class: 'unseen' }, ` (${taskWords[block.status] ?? ''})`),
      ),
      block.details && richText(block.details),
      block.output && richText(block.output),
    ),
  );
}

const makers = {
  plan: (b) =>
    el(
      'div',
      { class: 'block-plan' },
      el('div', { class: 'plan-title' }, b.title),
      el('ul', { class: 'tasks' }, ...(b.tasks ?? []).map(task)),
    ),
  task_card: (b) => el('ul', { class: 'tasks' }, task(b)),
  section,
  input,
  table,
  data_table: table,
  image: imageOf,
  rich_text: richText,
  header: (b) => el('h3', { class: 'block-header' }, plain(b.text.text)),
  divider: () => el('hr', { class: 'block-divider' }),
  context: (b) =>
    el(
      'div',
      { class: 'block-context' },
      ...b.elements.map((e) =>
        e.type === 'image' ? el('img', { src: safeHref(e.image_url), alt: e.alt_text }) : textObject(e),
      ),
    ),
  actions: (b, on) => el('div', { class: 'block-actions' }, ...b.elements.map((e) => control(e, b, on))),
  markdown: (b) => mrkdwn(b.text.replace(/^#+ (.*)$/gm, '*$1*').replaceAll('**', '*')),
};

export function blocksNode(blocks, on) {
  const made = blocks.map((b) => makers[b.type]?.(b, on) ?? el('div', { class: 'text' }, `[${b.type}]`));
  return el('div', { class: 'blocks' }, ...made);
}

export function filesNode(files) {
  return el(
    'div',
    { class: 'files' },
    ...files.map((f) =>
      f.mimetype.startsWith('image/')
        ? el(
            'figure',
            { class: 'block-image' },
            el('figcaption', {}, f.title),
            el(
              'a',
              { href: f.url_private, target: '_blank' },
              el('img', { src: f.url_private, alt: f.alt_txt || f.title }),
            ),
          )
        : el(
            'a',
            { class: 'file', href: f.url_private, target: '_blank' },
            el('span', { class: 'kind', 'aria-hidden': 'true' }, (f.filetype ?? 'txt').slice(0, 4)),
            el(
              'span',
              {},
              el('span', { class: 'file-name' }, f.title),
              el('span', { class: 'file-size' }, sizeOf(f.size)),
            ),
          ),
    ),
  );
}
