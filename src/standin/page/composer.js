/** Where one writes: Enter sends, "/" offers the app's commands. */
import { el, post, say } from './dom.js';
import { store } from './store.js';

let count = 0;

/** `target()` answers `{channel, thread?}`; `placeholder()` what the field says when empty. */
export function makeComposer(form, target, placeholder) {
  count += 1;
  const listId = `suggestions-${count}`;
  const text = el('textarea', {
    id: count === 1 ? 'composer-text' : `composer-${count}`,
    rows: '1',
    'aria-label': 'Message',
    role: 'combobox',
    'aria-expanded': 'false',
    'aria-controls': listId,
    'aria-autocomplete': 'list',
  });
  const list = el('ul', { class: 'suggestions', id: listId, role: 'listbox', 'aria-label': 'Commands', hidden: true });
  const send = el('button', { class: 'button primary', type: 'submit' }, 'Send');
  form.replaceChildren(list, el('div', { class: 'composer-box' }, text, send));
  let chosen = 0;

  const matching = () => {
    const typed = text.value;
    if (!/^\/\S*$/.test(typed)) return [];
    return store.commands.filter((c) => c.command.startsWith(typed.split(' ')[0]));
  };
  const draw = () => {
    const found = matching();
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    list.hidden = found.length === 0;
    text.setAttribute('aria-expanded', String(found.length > 0));
    list.replaceChildren(
      ...found.map((c, i) =>
        el(
          'li',
          {
            role: 'option',
            id: `${listId}-${i}`,
            'aria-selected': String(i === chosen),
            onmousedown: (e) => {
              e.preventDefault();
              take(c);
            },
          },
          el('code', {}, c.command),
          el('span', { class: 'hint' }, c.hint),
          el('span', { class: 'what' }, c.description),
        ),
      ),
    );
    if (found.length > 0) text.setAttribute('aria-activedescendant', `${listId}-${chosen}`);
    else text.removeAttribute('aria-activedescendant');
  };
  const take = (command) => {
    text.value = `${command.command} `;
    text.focus();
    draw();
  };
  const submit = async () => {
    const value = text.value.trim();
    if (value === '') return;
    text.value = '';
    draw();
    try {
      await post('/local/act', {
        do: value.startsWith('/') ? 'command' : 'say',
        as: store.me,
        text: value,
        ...target(),
      });
    } catch (error) {
      text.value = value;
      say(error.message);
    }
  };
  const onKey = (e) => {
    const found = matching();
    if (found.length > 0 && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
      e.preventDefault();
      chosen = (chosen + (e.key === 'ArrowDown' ? 1 : found.length - 1)) % found.length;
      draw();
    } else if (found.length > 0 && (e.key === 'Tab' || (e.key === 'Enter' && text.value !== found[chosen]?.command))) {
      e.preventDefault();
      take(found[chosen]);
    } else if (e.key === 'Escape') list.hidden = true;
    else if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      void submit();
    }
  };
  text.addEventListener('keydown', onKey);
  text.addEventListener('input', draw);
  text.addEventListener('blur', () => {
    list.hidden = true;
  });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    void submit();
  });
  return {
    refresh: () => {
      text.placeholder = placeholder();
    },
    focus: () => text.focus(),
    fill: (value) => {
      text.value = value;
      text.focus();
      draw();
    },
  };
}
