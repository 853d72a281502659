/** Buttons, menus, checkboxes and text fields. In a form they only hold a value; elsewhere they act at once. */
import { confirmWith } from './confirm.js';
import { el, post, safeHref, say } from './dom.js';
import { mrkdwn, plain } from './mrkdwn.js';
import { store } from './store.js';

/** What was entered and not sent, so that an edit of the message or view does not lose it. */
const drafts = new Map();
const draftKey = (on, block, element) => `${store.me} ${on.id ?? on.ts} ${block.block_id} ${element.action_id}`;

function address(on) {
  return on.ts ? { ts: on.ts, channel: on.channel } : { view: on.id };
}

async function act(element, on, body, node) {
  if (element.confirm && !(await confirmWith(element.confirm))) return;
  node.setAttribute('aria-busy', 'true');
  try {
    await post('/local/act', { as: store.me, action: element.action_id, confirm: true, ...address(on), ...body });
  } catch (error) {
    say(error.message);
  } finally {
    node.removeAttribute('aria-busy');
  }
}

function button(element, block, on) {
  const classes = `button ${element.style ?? ''}`;
  const label = plain(element.text.text);
  if (element.url) {
    return el(
      'a',
      {
        class: classes,
        href: safeHref(element.url),
        target: '_blank',
        rel: 'noreferrer',
        onclick: (e) => void act(element, on, { do: 'click' }, e.currentTarget),
      },
      label,
    );
  }
  const props = {
    class: classes,
    type: 'button',
    'aria-label': element.accessibility_label,
    'data-key': `${block.block_id} ${element.action_id}`,
  };
  return el('button', { ...props, onclick: (e) => void act(element, on, { do: 'click' }, e.currentTarget) }, label);
}

function optionsOf(element) {
  return element.option_groups ? element.option_groups.flatMap((g) => g.options) : (element.options ?? []);
}

function chosenAtFirst(element, key) {
  if (drafts.has(key)) return drafts.get(key);
  if (element.initial_options) return element.initial_options.map((o) => o.value);
  if (element.initial_option) return [element.initial_option.value];
  if (element.initial_user) return [element.initial_user];
  return [];
}

function optionText(object) {
  return object.type === 'mrkdwn' ? mrkdwn(object.text) : plain(object.text);
}

function choices(kind, element, block, on, how) {
  const key = draftKey(on, block, element);
  const chosen = chosenAtFirst(element, key);
  const group = el('div', {
    class: 'options',
    id: how.id,
    'data-action': element.action_id,
    'aria-describedby': how.describedBy,
  });
  const read = () => [...group.querySelectorAll('input:checked')].map((i) => i.value);
  const changed = () => {
    drafts.set(key, read());
    if (!how.inForm) void act(element, on, { do: 'choose', value: read() }, group);
  };
  group.read = read;
  for (const option of optionsOf(element)) {
    group.append(
      el(
        'label',
        { class: 'option' },
        el('input', {
          type: kind,
          name: key,
          value: option.value,
          checked: chosen.includes(option.value),
          onchange: changed,
          'data-key': `${key} ${option.value}`,
        }),
        el('span', {}, optionText(option.text)),
        option.description && el('small', {}, optionText(option.description)),
      ),
    );
  }
  return group;
}

function menu(element, block, on, how, options) {
  const key = draftKey(on, block, element);
  const chosen = chosenAtFirst(element, key);
  const isMulti = element.type.startsWith('multi_');
  const changed = (event) => {
    const value = read();
    drafts.set(key, value);
    if (!how.inForm && value.length > 0) void act(element, on, { do: 'choose', value }, event.currentTarget);
  };
  const select = el('select', {
    class: 'menu',
    id: how.id,
    multiple: isMulti,
    'data-action': element.action_id,
    'data-key': key,
    'aria-label': how.inForm ? undefined : plain(element.placeholder?.text ?? 'Choose'),
    onchange: changed,
  });
  const read = () => [...select.selectedOptions].map((o) => o.value).filter((v) => v !== '');
  select.read = read;
  if (!isMulti) select.append(el('option', { value: '' }, plain(element.placeholder?.text ?? 'Choose…')));
  for (const o of options)
    select.append(el('option', { value: o.value, selected: chosen.includes(o.value) }, plain(o.text.text)));
  return select;
}

function textField(element, block, on, how) {
  const key = draftKey(on, block, element);
  const isArea = element.multiline === true;
  const types = { number_input: 'number', datepicker: 'date', timepicker: 'time' };
  const field = el(isArea ? 'textarea' : 'input', {
    class: 'field-input',
    id: how.id,
    type: isArea ? undefined : (types[element.type] ?? 'text'),
    maxlength: element.max_length,
    placeholder: plain(element.placeholder?.text ?? ''),
    'data-action': element.action_id,
    'data-key': key,
    'aria-describedby': how.describedBy,
    oninput: () => drafts.set(key, field.value),
  });
  field.value = drafts.get(key) ?? element.initial_value ?? element.initial_date ?? element.initial_time ?? '';
  field.read = () => field.value;
  return field;
}

const people = () => store.people.map((p) => ({ value: p.id, text: { text: p.realName } }));

export function control(element, block, on, how = {}) {
  switch (element.type) {
    case 'button':
      return button(element, block, on);
    case 'checkboxes':
      return choices('checkbox', element, block, on, how);
    case 'radio_buttons':
      return choices('radio', element, block, on, how);
    case 'static_select':
    case 'multi_static_select':
    case 'overflow':
      return menu(element, block, on, how, optionsOf(element));
    case 'users_select':
    case 'multi_users_select':
      return menu(element, block, on, how, people());
    case 'conversations_select':
      return menu(
        element,
        block,
        on,
        how,
        store.channels.map((c) => ({ value: c.id, text: { text: `#${c.name}` } })),
      );
    default:
      return textField(element, block, on, how);
  }
}
