/**
 * Slack's documented limits (docs.slack.dev, reference/block-kit), written down apart from the builders: what breaks one
 * is named with its place. Knows only the blocks we use, and refuses others.
 */
type Obj = Readonly<Record<string, unknown>>;

const isObj = (value: unknown): value is Obj => typeof value === 'object' && value !== null && !Array.isArray(value);
const str = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function textFaults(value: unknown, max: number, at: string, kinds: readonly string[] = ['plain_text']): string[] {
  if (!isObj(value)) return [`${at}: no text object`];
  const faults: string[] = [];
  if (!kinds.includes(String(value.type))) faults.push(`${at}: ${String(value.type)} is not allowed here`);
  if (typeof value.text !== 'string' || value.text === '') faults.push(`${at}: empty text`);
  else if (value.text.length > max) faults.push(`${at}: ${value.text.length} characters, at most ${max}`);
  return faults;
}

function confirmFaults(value: unknown, at: string): string[] {
  if (value === undefined) return [];
  if (!isObj(value)) return [`${at}: not an object`];
  return [
    ...textFaults(value.title, 100, `${at}.title`),
    ...textFaults(value.text, 300, `${at}.text`),
    ...textFaults(value.confirm, 30, `${at}.confirm`),
    ...textFaults(value.deny, 30, `${at}.deny`),
  ];
}

function optionFaults(value: unknown, at: string): string[] {
  if (!isObj(value)) return [`${at}: not an object`];
  const faults = textFaults(value.text, 75, `${at}.text`);
  if (value.description !== undefined) faults.push(...textFaults(value.description, 75, `${at}.description`));
  if (typeof value.value !== 'string' || value.value.length > 150) faults.push(`${at}.value: too long`);
  return faults;
}

function elementFaults(value: unknown, at: string): string[] {
  if (!isObj(value)) return [`${at}: not an object`];
  const faults: string[] = [];
  if (str(value.action_id).length > 255) faults.push(`${at}.action_id: too long`);
  switch (value.type) {
    case 'button':
      faults.push(...textFaults(value.text, 75, `${at}.text`), ...confirmFaults(value.confirm, `${at}.confirm`));
      if (str(value.value).length > 2000) faults.push(`${at}.value: too long`);
      if (str(value.accessibility_label).length > 75) faults.push(`${at}.accessibility_label: too long`);
      return faults;
    case 'checkboxes': {
      const options = list(value.options);
      if (options.length < 1 || options.length > 10) faults.push(`${at}: ${options.length} options, 1 to 10`);
      const values = options.map((o) => (isObj(o) ? o.value : null));
      if (new Set(values).size !== values.length) faults.push(`${at}: option values repeat`);
      for (const chosen of list(value.initial_options)) {
        if (!options.some((o) => JSON.stringify(o) === JSON.stringify(chosen)))
          faults.push(`${at}: a tick is no option`);
      }
      if (value.initial_options !== undefined && list(value.initial_options).length === 0)
        faults.push(`${at}: empty ticks`);
      return [...faults, ...options.flatMap((o, i) => optionFaults(o, `${at}.options[${i}]`))];
    }
    case 'static_select': {
      const options = list(value.options);
      if (options.length < 1 || options.length > 100) faults.push(`${at}: ${options.length} options, 1 to 100`);
      return [...faults, ...options.flatMap((o, i) => optionFaults(o, `${at}.options[${i}]`))];
    }
    case 'plain_text_input':
      return faults;
    default:
      return [...faults, `${at}: unknown element ${String(value.type)}`];
  }
}

function richFaults(value: unknown, at: string): string[] {
  if (!isObj(value)) return [`${at}: not an object`];
  const elements = list(value.elements);
  if (elements.length === 0) return [`${at}: empty`];
  switch (value.type) {
    case 'rich_text_section':
    case 'rich_text_preformatted':
      return elements.flatMap((e, i) => {
        if (!isObj(e)) return [`${at}[${i}]: not an object`];
        const known = ['text', 'user', 'usergroup'].includes(String(e.type));
        const empty = e.type === 'text' && (typeof e.text !== 'string' || e.text === '');
        return [...(known ? [] : [`${at}[${i}]: unknown ${String(e.type)}`]), ...(empty ? [`${at}[${i}]: empty`] : [])];
      });
    case 'rich_text_list':
      return elements.flatMap((e, i) => richFaults(e, `${at}[${i}]`));
    default:
      return [`${at}: unknown ${String(value.type)}`];
  }
}

function taskFaults(value: unknown, at: string): string[] {
  if (!isObj(value)) return [`${at}: not an object`];
  const known = ['pending', 'in_progress', 'complete', 'error'].includes(str(value.status));
  const output = isObj(value.output) ? list(value.output.elements) : [];
  return [
    ...(str(value.task_id) === '' ? [`${at}.task_id: empty`] : []),
    ...(str(value.title) === '' || str(value.title).length > 256 ? [`${at}.title: 1 to 256 characters`] : []),
    ...(known ? [] : [`${at}.status: ${str(value.status)}`]),
    ...(value.output !== undefined && output.length !== 1
      ? [`${at}.output: ${output.length} elements, exactly 1`]
      : []),
    ...output.flatMap((e, i) => richFaults(e, `${at}.output[${i}]`)),
  ];
}

function blockFaults(block: unknown, at: string): string[] {
  if (!isObj(block)) return [`${at}: not an object`];
  const faults = str(block.block_id).length > 255 ? [`${at}.block_id: too long`] : [];
  const elements = list(block.elements);
  const each = (max: number, check: (e: unknown, at: string) => string[]): string[] => [
    ...faults,
    ...(elements.length < 1 || elements.length > max ? [`${at}: ${elements.length} elements, 1 to ${max}`] : []),
    ...elements.flatMap((e, i) => check(e, `${at}.elements[${i}]`)),
  ];
  switch (block.type) {
    case 'header':
      return [...faults, ...textFaults(block.text, 150, `${at}.text`)];
    case 'section':
      return [...faults, ...textFaults(block.text, 3000, `${at}.text`, ['plain_text', 'mrkdwn'])];
    case 'context':
      return each(10, (e, where) => textFaults(e, 2000, where, ['plain_text', 'mrkdwn']));
    case 'actions': {
      const ids = elements.map((e) => (isObj(e) ? e.action_id : null));
      return [...each(25, elementFaults), ...(new Set(ids).size === ids.length ? [] : [`${at}: action ids repeat`])];
    }
    case 'rich_text':
      return each(1000, richFaults);
    case 'plan':
      return [
        ...faults,
        ...(str(block.title) === '' || str(block.title).length > 256 ? [`${at}.title: 1 to 256 characters`] : []),
        ...(list(block.tasks).length > 48 ? [`${at}.tasks: too many`] : []),
        ...list(block.tasks).flatMap((task, i) => taskFaults(task, `${at}.tasks[${i}]`)),
      ];
    case 'divider':
      return faults;
    case 'input':
      return [
        ...faults,
        ...textFaults(block.label, 2000, `${at}.label`),
        ...elementFaults(block.element, `${at}.element`),
      ];
    default:
      return [...faults, `${at}: unknown block ${String(block.type)}`];
  }
}

function idFaults(blocks: readonly unknown[], at: string): string[] {
  const ids = blocks.flatMap((b) => (isObj(b) && typeof b.block_id === 'string' ? [b.block_id] : []));
  return new Set(ids).size === ids.length ? [] : [`${at}: block ids repeat`];
}

/** What Slack would refuse about a message; empty when it is fine. */
export function messageFaults(message: { readonly text: string; readonly blocks: readonly unknown[] }): string[] {
  const chars = JSON.stringify(message.blocks).length;
  return [
    ...(message.text === '' ? ['text: empty'] : []),
    ...(message.text.length > 4000 ? ['text: longer than 4000'] : []),
    ...(message.blocks.length > 50 ? [`blocks: ${message.blocks.length}, at most 50`] : []),
    // Undocumented: about 13,000 characters of text; the JSON around it is not counted, so this is a loose bound on it.
    ...(textChars(message.blocks) > 12_000 ? [`blocks: ${textChars(message.blocks)} characters of ${chars}`] : []),
    ...idFaults(message.blocks, 'blocks'),
    ...message.blocks.flatMap((b, i) => blockFaults(b, `blocks[${i}]`)),
  ];
}

export function viewFaults(view: { readonly type: string; readonly blocks: readonly unknown[] }): string[] {
  const fields = view as Obj;
  const titles = view.type === 'modal' ? ['title', 'submit', 'close'].filter((k) => fields[k] !== undefined) : [];
  return [
    ...titles.flatMap((k) => textFaults(fields[k], 24, k)),
    ...(str(fields.callback_id).length > 255 ? ['callback_id: too long'] : []),
    ...(fields.submit === undefined && view.blocks.some((b) => isObj(b) && b.type === 'input')
      ? ['submit: needed beside an input block']
      : []),
    ...(str(fields.private_metadata).length > 3000 ? ['private_metadata: too long'] : []),
    ...(view.blocks.length > 100 ? [`blocks: ${view.blocks.length}, at most 100`] : []),
    ...idFaults(view.blocks, 'blocks'),
    ...view.blocks.flatMap((b, i) => blockFaults(b, `blocks[${i}]`)),
  ];
}

function textChars(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, v) => sum + textChars(v), 0);
  if (!isObj(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [key, v]) => sum + (key === 'text' && typeof v === 'string' ? v.length : textChars(v)),
    0,
  );
}

/** Every mrkdwn string of a message, its fallback text included: where a mention or link could form. */
export function mrkdwnIn(message: { readonly text: string; readonly blocks: readonly unknown[] }): string[] {
  const found = (value: unknown): string[] => {
    if (Array.isArray(value)) return value.flatMap(found);
    if (!isObj(value)) return [];
    if (value.type === 'mrkdwn' && typeof value.text === 'string') return [value.text];
    return Object.values(value).flatMap(found);
  };
  return [message.text, ...found(message.blocks)];
}
