/** The box beside the chat: what `free -h` says now, and how it moved while the page was open. */
import { $, el } from './dom.js';
import { store } from './store.js';

const keep = 150;

function gib(kiB) {
  const value = kiB / 1024 / 1024;
  if (value < 1) return `${Math.round(kiB / 1024)} Mi`;
  return `${value < 100 ? value.toFixed(1) : Math.round(value)} Gi`;
}

export function tookBox(box) {
  store.box = box;
  store.boxHistory.push(box.usedKiB);
  if (store.boxHistory.length > keep) store.boxHistory.shift();
  drawBox();
}

function svg(tag, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
  return node;
}

function trend(history) {
  const low = Math.min(...history);
  const high = Math.max(...history);
  // A quiet machine draws a quiet line: noise below 64 MiB is not blown up.
  const span = Math.max(high - low, 64 * 1024);
  // The newest reading is at the right edge; before the first one the line is level.
  const steps = Math.max(history.length - 1, 30);
  const x = (i) => 100 - ((history.length - 1 - i) / steps) * 100;
  const y = (v) => 66 - ((v - low) / span) * 58;
  const points = history.map((v, i) => `${x(i).toFixed(2)},${y(v).toFixed(2)}`);
  const line = `0,${y(history[0]).toFixed(2)} ${points.join(' ')}`;
  const chart = svg('svg', {
    class: 'trend',
    viewBox: '0 0 100 72',
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': 'Memory used while this page was open',
  });
  chart.append(
    svg('polygon', { class: 'area', points: `0,72 ${line} 100,72` }),
    svg('polyline', { class: 'stroke', points: line }),
  );
  const minutes = Math.round((history.length * 2) / 60);
  const period = minutes < 1 ? 'the last minute' : `the last ${minutes} min`;
  return [
    chart,
    el(
      'div',
      { class: 'trend-note' },
      el('span', {}, `used, ${period}`),
      el('span', {}, `${gib(low)} to ${gib(high)}`),
    ),
  ];
}

/** `free -h` turned on its side, values as printed. */
function freeTable(text) {
  const [head, ...rows] = text
    .trimEnd()
    .split('\n')
    .map((l) => l.trim().split(/\s+/));
  const body = head.map((name, i) =>
    el('tr', {}, el('th', { scope: 'row' }, name), ...rows.map((r) => el('td', {}, r[i + 1] ?? ''))),
  );
  return el(
    'table',
    { class: 'free-table' },
    el('caption', {}, '$ free -h'),
    el('thead', {}, el('tr', {}, el('th', {}), ...rows.map((r) => el('th', { scope: 'col' }, r[0].replace(':', ''))))),
    el('tbody', {}, ...body),
  );
}

function delta() {
  const high = Math.max(...store.boxHistory);
  const less = high - store.box.usedKiB;
  if (less < 64 * 1024) return undefined;
  return el('span', { class: 'delta less' }, `${gib(less)} below its peak`);
}

export function drawBox() {
  const { box } = store;
  if (!box) return;
  const cache = Math.max(0, box.totalKiB - box.freeKiB - box.usedKiB);
  const parts = [
    ['used', box.usedKiB],
    ['cache', cache],
    ['free', box.freeKiB],
  ];
  const meter = el(
    'div',
    { class: 'meter', 'aria-hidden': 'true' },
    ...parts.map(([n, v]) => el('i', { class: `m-${n}`, style: `flex:${v}` })),
  );
  $('box').replaceChildren(
    el('div', { class: 'box-head' }, el('h2', {}, store.boxName), el('span', { class: 'live' }, 'live')),
    el(
      'div',
      { class: 'box-figure' },
      el('strong', {}, gib(box.usedKiB)),
      el('span', {}, `used of ${gib(box.totalKiB)}`),
      delta(),
    ),
    meter,
    el('div', { class: 'keys' }, ...parts.map(([n, v]) => el('span', { class: `key-${n}` }, `${n} ${gib(v)}`))),
    ...trend(store.boxHistory),
    ...(box.free ? [freeTable(box.free)] : []),
  );
  $('box-chip').textContent = `${gib(box.usedKiB)} used`;
}
