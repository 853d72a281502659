/** Wires the page: the stream fills the store, the store is drawn, people act. */
import { blocksNode } from './blocks.js';
import { tookBox } from './box.js';
import { makeComposer } from './composer.js';
import { $, el, post, say } from './dom.js';
import { drawFaults } from './faults.js';
import { drawChoice, drawGuide } from './guide.js';
import { avatar, drawMessages } from './messages.js';
import { closeIcon, showModals } from './modals.js';
import { channelOf, isHome, keyOf, messagesIn, nameOf, personOf, store, threadOf } from './store.js';

let stream;
let threadComposer;

const composer = makeComposer(
  $('composer'),
  () => ({ channel: store.place }),
  () => `Message as ${nameOf(store.me).split(' ')[0]}`,
);

function connect(as) {
  stream?.close();
  stream = new EventSource(`/local/stream?as=${encodeURIComponent(as)}`);
  const on = (name, take) => stream.addEventListener(name, (e) => take(JSON.parse(e.data)));
  on('snapshot', tookSnapshot);
  on('message', tookMessage);
  on('gone', ({ channel, ts }) => {
    store.messages.delete(keyOf({ channel, ts }));
    draw();
  });
  on('modals', (views) => {
    store.modals = views;
    showModals();
  });
  on('home', (view) => {
    store.home = view;
    if (isHome()) draw();
  });
  on('sockets', (open) => {
    store.sockets = open;
    drawPlaces();
  });
  on('box', tookBox);
  stream.onerror = () => {
    document.querySelector('.live')?.classList.add('off');
  };
}

function tookSnapshot({ messages, ...rest }) {
  const changedPerson = store.me !== rest.me;
  Object.assign(store, rest);
  store.messages = new Map(messages.map((m) => [keyOf(m), m]));
  sessionStorage.setItem('as', store.me);
  if (changedPerson) $('log').replaceChildren();
  const [wanted] = decodeURIComponent(location.hash.slice(1)).split('/');
  if (store.place === '' || (!isHome() && !channelOf(store.place)))
    store.place = channelOf(wanted) ? wanted : (store.channels[0]?.id ?? '');
  $('team-name').textContent = store.team.name;
  document.title = `${store.team.name} · local Slack`;
  drawPersonas();
  drawChoice();
  draw();
  showModals();
}

function tookMessage(m) {
  const isNew = !store.messages.has(keyOf(m));
  store.messages.set(keyOf(m), m);
  if (isNew && m.channel !== store.place && m.user !== store.me)
    store.unread.set(m.channel, (store.unread.get(m.channel) ?? 0) + 1);
  draw();
}

function go(place) {
  store.place = place;
  store.unread.delete(place);
  closeThread();
  closeDrawers();
  $('log').replaceChildren();
  if (isHome()) post('/local/act', { do: 'home', as: store.me }).catch((e) => say(e.message));
  else location.hash = place;
  draw();
  if (!isHome()) composer.focus();
}

function placeButton(id, sigil, name) {
  const unread = store.unread.get(id) ?? 0;
  return el(
    'button',
    {
      class: unread ? 'place unread' : 'place',
      type: 'button',
      'aria-current': String(store.place === id),
      onclick: () => go(id),
    },
    sigil,
    el('span', { class: 'name' }, name),
    unread > 0 && el('span', { class: 'badge', 'aria-label': `${unread} new` }, String(unread)),
  );
}

function drawPlaces() {
  const sigil = (c) =>
    el('span', { class: 'sigil', 'aria-hidden': 'true' }, c.isDirect ? '@' : c.isPrivate ? '◦' : '#');
  const connected = store.sockets > 0;
  const presence = el('span', {
    class: connected ? 'presence on' : 'presence',
    title: connected ? 'connected' : 'not connected',
  });
  $('places').replaceChildren(
    el('div', { class: 'side-title' }, 'Channels'),
    ...store.channels.filter((c) => !c.isDirect).map((c) => placeButton(c.id, sigil(c), c.name)),
    el('div', { class: 'side-title' }, 'Apps'),
    placeButton('home', presence, store.bot.name),
    ...store.channels.filter((c) => c.isDirect).map((c) => placeButton(c.id, sigil(c), `${store.bot.name} messages`)),
  );
}

function drawPersonas() {
  const legend = $('personas').querySelector('legend');
  $('personas').replaceChildren(
    legend,
    ...store.people.map((p) =>
      el(
        'label',
        { class: 'persona' },
        el('input', {
          type: 'radio',
          name: 'persona',
          value: p.id,
          checked: p.id === store.me,
          onchange: () => connect(p.id),
        }),
        avatar(p.id, p.realName, true),
        el('span', { class: 'who' }, p.realName, p.role && el('span', { class: 'role' }, p.role)),
      ),
    ),
  );
}

function emptyNode() {
  const tries = store.commands.filter((c) => c.example).slice(0, 3);
  return el(
    'div',
    { class: 'empty', 'data-ts': 'empty' },
    el(
      'div',
      {},
      el('h2', {}, `#${channelOf(store.place)?.name ?? ''}`),
      el(
        'p',
        {},
        `You are ${nameOf(store.me)}. Type a command below, then become somebody else on the left to answer it.`,
      ),
      el(
        'div',
        { class: 'tries' },
        ...tries.map((c) =>
          el('button', { class: 'button', type: 'button', onclick: () => composer.fill(c.example) }, c.example),
        ),
      ),
    ),
  );
}

function draw() {
  drawPlaces();
  drawGuide();
  const channel = channelOf(store.place);
  $('place-name').textContent = isHome() ? store.bot.name : `#${channel?.name ?? ''}`;
  $('place-topic').textContent = isHome() ? 'Home' : (channel?.topic ?? '');
  $('home').hidden = !isHome();
  $('log').hidden = isHome();
  $('composer').hidden = isHome();
  if (isHome()) drawHome();
  else {
    const list = messagesIn(store.place);
    if (list.length === 0) $('log').replaceChildren(emptyNode());
    else drawMessages($('log'), list, { openThread });
    composer.refresh();
  }
  drawThread();
}

function drawHome() {
  const view = store.home;
  $('home').replaceChildren(
    view ? blocksNode(view.blocks ?? [], view) : el('p', { class: 'empty' }, 'The app has not drawn its Home tab yet.'),
  );
}

function openThread(ts) {
  store.thread = ts;
  $('thread').replaceChildren();
  $('app').classList.add('aside-open');
  drawThread();
  threadComposer.focus();
}

function closeThread() {
  store.thread = '';
  $('app').classList.remove('aside-open');
  drawThread();
}

function drawThread() {
  const thread = $('thread');
  thread.hidden = store.thread === '';
  $('aside').classList.toggle('has-thread', store.thread !== '');
  if (store.thread === '') {
    thread.replaceChildren();
    return;
  }
  if (!thread.firstChild) {
    const form = el('form', { class: 'composer', autocomplete: 'off' });
    threadComposer = makeComposer(
      form,
      () => ({ channel: store.place, thread: store.thread }),
      () => 'Reply in the thread',
    );
    thread.append(
      el(
        'div',
        { class: 'thread-head' },
        'Thread',
        el(
          'button',
          { class: 'icon-button', type: 'button', 'aria-label': 'Close the thread', onclick: closeThread },
          closeIcon(),
        ),
      ),
      el('div', { class: 'log', role: 'log', 'aria-label': 'Thread', tabindex: '0' }),
      form,
    );
    threadComposer.refresh();
  }
  drawMessages(thread.querySelector('.log'), threadOf(store.place, store.thread), { inThread: true });
}

function closeDrawers() {
  $('app').classList.remove('menu-open', 'aside-open');
  $('open-menu').setAttribute('aria-expanded', 'false');
}

$('open-menu').addEventListener('click', () => {
  $('app').classList.add('menu-open');
  $('open-menu').setAttribute('aria-expanded', 'true');
  $('sidebar').querySelector('button')?.focus();
});
$('box-chip').addEventListener('click', () => $('app').classList.toggle('aside-open'));
$('scrim').addEventListener('click', closeDrawers);
$('close-aside').addEventListener('click', () => {
  closeThread();
  closeDrawers();
});
$('personas').addEventListener('change', closeDrawers);
document.addEventListener('keydown', (e) => {
  if (e.key !== 'Escape' || document.querySelector('dialog[open]')) return;
  if ($('app').classList.contains('menu-open')) closeDrawers();
  else if (store.thread !== '') closeThread();
  else closeDrawers();
});

drawFaults();
connect(new URLSearchParams(location.search).get('as') ?? sessionStorage.getItem('as') ?? personOf('')?.id ?? '');
