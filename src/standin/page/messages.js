/** Messages, channels and threads as DOM nodes; only what changed is drawn again. */
import { blocksNode, filesNode } from './blocks.js';
import { el } from './dom.js';
import { emojiOf } from './emoji.js';
import { mrkdwn } from './mrkdwn.js';
import { nameOf, personOf, store, threadOf } from './store.js';

const joinedWithinSeconds = 300;

/** People get hues far apart from each other, in the order they are listed. */
function hueOf(id) {
  const at = store.people.findIndex((p) => p.id === id);
  return at < 0 ? 20 : (212 + at * 97) % 360;
}

export function avatar(id, label, small = false) {
  const classes = `avatar ${small ? 'small' : ''}`;
  if (id === store.bot.userId) return el('span', { class: `${classes} app-avatar`, 'aria-hidden': 'true' });
  if (id === 'USLACKBOT') return el('span', { class: `${classes} system`, 'aria-hidden': 'true' }, 'S');
  const initials = label
    .split(/\s+/)
    .map((w) => w[0] ?? '')
    .slice(0, 2)
    .join('')
    .toUpperCase();
  return el('span', { class: classes, style: `--hue:${hueOf(id)}`, 'aria-hidden': 'true' }, initials);
}

const dateOf = (ts) => new Date(Number(ts) * 1000);
const clock = (ts) => dateOf(ts).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

function authorOf(m) {
  if (m.user === 'USLACKBOT') return 'Slack';
  return m.username ?? nameOf(m.user);
}

function lockIcon() {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(ns, 'path');
  path.setAttribute(
    'd',
    'M1.5 8s2.4-4.2 6.5-4.2S14.5 8 14.5 8 12.1 12.2 8 12.2 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 100-3.6 1.8 1.8 0 000 3.6z',
  );
  svg.append(path);
  return svg;
}

function repliesButton(m, openThread) {
  const replies = threadOf(m.channel, m.ts).filter((r) => r.ts !== m.ts);
  if (replies.length === 0) return undefined;
  const count = `${replies.length} ${replies.length === 1 ? 'reply' : 'replies'}`;
  return el(
    'button',
    { class: 'replies', type: 'button', onclick: () => openThread(m.ts) },
    count,
    el('span', {}, `last at ${clock(replies.at(-1).ts)}`),
  );
}

function reactionsNode(m) {
  if (!m.reactions) return undefined;
  return el(
    'div',
    { class: 'reactions' },
    ...m.reactions.map((r) => el('span', { class: 'reaction' }, `${emojiOf(r.name) ?? `:${r.name}:`} ${r.count}`)),
  );
}

function bodyOf(m) {
  const hasBlocks = (m.blocks ?? []).length > 0;
  return [
    hasBlocks ? blocksNode(m.blocks, m) : m.text && mrkdwn(m.text),
    m.files && filesNode(m.files),
    reactionsNode(m),
  ];
}

function messageNode(m, previous, how) {
  const joined = isJoined(m, previous);
  const isApp = m.bot_id !== undefined;
  const node = el('article', {
    class: ['message', joined && 'joined', m.only_for && 'private'].filter(Boolean).join(' '),
    'data-ts': m.ts,
    'aria-label': `${authorOf(m)}, ${clock(m.ts)}`,
  });
  if (m.only_for) node.append(el('div', { class: 'private-note' }, lockIcon(), 'Only visible to you'));
  node.append(
    joined ? el('span', { class: 'gutter-time', 'aria-hidden': 'true' }, clock(m.ts)) : avatar(m.user, authorOf(m)),
  );
  const edited = m.edited && el('span', { class: 'edited' }, '(edited)');
  const byline = el(
    'div',
    { class: 'byline' },
    el('span', { class: 'author' }, authorOf(m)),
    isApp && el('span', { class: 'tag' }, 'app'),
    personOf(m.user)?.isStranger && el('span', { class: 'tag' }, 'other workspace'),
    el(
      'time',
      { class: 'time', datetime: dateOf(m.ts).toISOString(), title: dateOf(m.ts).toLocaleString() },
      clock(m.ts),
    ),
    edited,
  );
  node.append(
    el('div', { class: 'body' }, !joined && byline, ...bodyOf(m), !how.inThread && repliesButton(m, how.openThread)),
  );
  if (!how.inThread && !m.only_for)
    node.append(
      el(
        'div',
        { class: 'message-tools' },
        el('button', { class: 'button', type: 'button', onclick: () => how.openThread(m.ts) }, 'Reply'),
      ),
    );
  return node;
}

function isJoined(m, previous) {
  return (
    previous !== undefined &&
    previous.user === m.user &&
    previous.username === m.username &&
    !previous.only_for &&
    !m.only_for &&
    (m.blocks ?? []).length === 0 &&
    (previous.blocks ?? []).length === 0 &&
    Number(m.ts) - Number(previous.ts) < joinedWithinSeconds
  );
}

/** What a node was drawn from: when equal, the node stays, with its focus and scroll position. */
function signature(m, previous, how) {
  const replies = how.inThread
    ? ''
    : threadOf(m.channel, m.ts)
        .map((r) => r.ts)
        .join();
  return JSON.stringify([store.me, m, isJoined(m, previous), replies]);
}

function dayNode(ts) {
  const date = dateOf(ts);
  const isToday = date.toDateString() === new Date().toDateString();
  const label = isToday
    ? 'Today'
    : date.toLocaleDateString(undefined, { weekday: 'long', month: 'long', day: 'numeric' });
  return el('div', { class: 'day', 'data-ts': `day ${date.toDateString()}` }, el('span', {}, label));
}

function reuse(old, key, mark, make) {
  const known = old.get(key);
  if (known !== undefined && known.mark === mark) return known;
  const focused = known?.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const node = make();
  node.mark = mark;
  node.refocus = focused;
  return node;
}

/** Brings `container` up to date with the list of messages. Stays at the bottom when it was there. */
export function drawMessages(container, list, how) {
  const atEnd = container.scrollHeight - container.scrollTop - container.clientHeight < 80;
  const old = new Map([...container.children].map((n) => [n.dataset.ts, n]));
  const isFirst = old.size === 0;
  const nodes = [];
  let previous;
  for (const m of list) {
    if (
      !how.inThread &&
      (previous === undefined || dateOf(previous.ts).toDateString() !== dateOf(m.ts).toDateString())
    ) {
      const day = dayNode(m.ts);
      nodes.push(old.get(day.dataset.ts) ?? day);
    }
    const before = previous;
    const node = reuse(old, m.ts, signature(m, before, how), () => messageNode(m, before, how));
    if (!isFirst && !old.has(m.ts)) node.classList.add('fresh');
    nodes.push(node);
    previous = m;
  }
  place(container, nodes);
  for (const node of nodes) {
    if (node.refocus) [...node.querySelectorAll('[data-key]')].find((n) => n.dataset.key === node.refocus)?.focus();
    node.refocus = undefined;
  }
  if (atEnd || isFirst) toEnd(container);
}

/** Images arrive later and push the end away. */
function toEnd(container) {
  container.scrollTop = container.scrollHeight;
  for (const image of container.querySelectorAll('img'))
    if (!image.complete)
      image.addEventListener(
        'load',
        () => {
          container.scrollTop = container.scrollHeight;
        },
        { once: true },
      );
}

/** Puts the nodes in order without touching those already in place. */
function place(container, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, i) => {
    if (container.children[i] !== node) container.insertBefore(node, container.children[i] ?? null);
  });
}
