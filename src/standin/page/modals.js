/** Modals: the view on top of the person's stack, as a dialog. */
import { blocksNode } from './blocks.js';
import { $, el, post, say } from './dom.js';
import { plain } from './mrkdwn.js';
import { store } from './store.js';

let shown;

function valuesIn(form) {
  const values = {};
  for (const node of form.querySelectorAll('.input-block [data-action]')) values[node.dataset.action] = node.read();
  return values;
}

async function send(view, form, submitButton) {
  submitButton?.setAttribute('aria-busy', 'true');
  try {
    await post('/local/act', { do: 'submit', as: store.me, view: view.id, values: valuesIn(form) });
  } catch (error) {
    say(error.message);
  } finally {
    submitButton?.removeAttribute('aria-busy');
  }
}

const closeView = (view) =>
  post('/local/act', { do: 'close', as: store.me, view: view.id }).catch((e) => say(e.message));

function sheet(view) {
  const submit = view.submit && el('button', { class: 'button primary', type: 'submit' }, plain(view.submit.text));
  const close = () => void closeView(view);
  const error = view.errors?.[''];
  const form = el(
    'form',
    {
      class: 'sheet',
      novalidate: true,
      onsubmit: (e) => {
        e.preventDefault();
        void send(view, form, submit);
      },
    },
    el(
      'div',
      { class: 'sheet-head' },
      el(
        'h2',
        { id: 'modal-title' },
        el('span', { class: 'avatar small app-avatar', 'aria-hidden': 'true' }),
        plain(view.title?.text ?? ''),
      ),
      el('button', { class: 'icon-button', type: 'button', 'aria-label': 'Close', onclick: close }, closeIcon()),
    ),
    el(
      'div',
      { class: 'sheet-body' },
      error && el('p', { class: 'sheet-error', role: 'alert' }, error),
      blocksNode(view.blocks ?? [], view),
    ),
    el(
      'div',
      { class: 'sheet-foot' },
      el('button', { class: 'button', type: 'button', onclick: close }, plain(view.close?.text ?? 'Close')),
      submit,
    ),
  );
  return form;
}

export function closeIcon() {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', 'M5 5l10 10M15 5L5 15');
  svg.append(path);
  return svg;
}

export function showModals() {
  const view = store.modals.at(-1);
  if (view === undefined) {
    shown?.close();
    shown = undefined;
    return;
  }
  const focused = document.activeElement?.dataset?.key;
  if (shown === undefined) {
    shown = el('dialog', {
      'aria-labelledby': 'modal-title',
      oncancel: (e) => {
        e.preventDefault();
        void closeView(store.modals.at(-1));
      },
      onclose: (e) => e.currentTarget.remove(),
    });
    $('dialogs').append(shown);
    shown.append(sheet(view));
    shown.showModal();
    shown.querySelector('.sheet-body :is(input, textarea, select)')?.focus();
    return;
  }
  shown.replaceChildren(sheet(view));
  const again = focused && [...shown.querySelectorAll('[data-key]')].find((n) => n.dataset.key === focused);
  (shown.querySelector('.wrong [data-key]') ?? again)?.focus();
}
