/** Beside the chat: what a first visitor does next, and what the box is made to be. */
import { $, el, post, say } from './dom.js';
import { store } from './store.js';

let hidden = sessionStorage.getItem('guide') === 'hidden';
let making = false;

function steps() {
  const texts = [...store.messages.values()].map((m) => m.text ?? '');
  const done = store.guide.map((step) => texts.some((text) => new RegExp(step.doneWhen, 'm').test(text)));
  // A later step done means the earlier ones are: nobody is sent back.
  const next = done.lastIndexOf(true) + 1;
  return store.guide.map((step, i) =>
    el(
      'li',
      { class: i < next ? 'done' : i === next ? 'next' : '', 'aria-current': i === next ? 'step' : undefined },
      step.text,
      i < next && el('span', { class: 'visually-hidden' }, ' (done)'),
    ),
  );
}

export function drawGuide() {
  const shown = store.guide.length > 0 && !hidden;
  $('guide').hidden = !shown;
  if (!shown) return;
  const hide = () => {
    hidden = true;
    sessionStorage.setItem('guide', 'hidden');
    drawGuide();
  };
  $('guide').replaceChildren(
    el(
      'div',
      { class: 'box-head' },
      el('h2', {}, 'Your first minute'),
      el('button', { class: 'quiet', type: 'button', onclick: hide }, 'Hide'),
    ),
    el('ol', {}, ...steps()),
  );
}

async function choose(name) {
  making = true;
  drawChoice();
  try {
    await post('/local/box', { name });
    store.situation = name;
    say(`${store.boxName} is ready: ${store.situations.find((s) => s.name === name)?.summary ?? name}.`);
  } catch (error) {
    say(error.message);
  }
  making = false;
  drawChoice();
}

export function drawChoice() {
  $('choice').hidden = store.situations.length === 0;
  if (store.situations.length === 0) return;
  const menu = el(
    'select',
    { id: 'situation', disabled: making, onchange: (e) => void choose(e.target.value) },
    ...store.situations.map((s) =>
      el('option', { value: s.name, selected: s.name === store.situation }, s.name.replaceAll('-', ' ')),
    ),
  );
  const chosen = store.situations.find((s) => s.name === store.situation);
  $('choice').replaceChildren(
    el('label', { for: 'situation' }, 'On this box'),
    menu,
    el('p', {}, making ? 'Making it …' : (chosen?.summary ?? '')),
  );
}
