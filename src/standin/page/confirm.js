/** The dialog before a weighty click. Resolves to true only when the person says yes. */
import { $, el } from './dom.js';
import { plain, textObject } from './mrkdwn.js';

export function confirmWith(confirm) {
  return new Promise((resolve) => {
    const answer = (yes) => {
      dialog.close();
      resolve(yes);
    };
    const dialog = el(
      'dialog',
      {
        class: 'confirm',
        'aria-labelledby': 'confirm-title',
        oncancel: () => resolve(false),
        onclose: () => dialog.remove(),
      },
      el(
        'div',
        { class: 'sheet' },
        el('div', { class: 'sheet-head' }, el('h2', { id: 'confirm-title' }, plain(confirm.title.text))),
        el('div', { class: 'sheet-body' }, textObject(confirm.text)),
        el(
          'div',
          { class: 'sheet-foot' },
          el('button', { class: 'button', type: 'button', onclick: () => answer(false) }, plain(confirm.deny.text)),
          el(
            'button',
            {
              class: `button ${confirm.style === 'danger' ? 'solid danger' : 'primary'}`,
              type: 'button',
              onclick: () => answer(true),
            },
            plain(confirm.confirm.text),
          ),
        ),
      ),
    );
    $('dialogs').append(dialog);
    dialog.showModal();
  });
}
