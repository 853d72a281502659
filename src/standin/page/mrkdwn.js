/** Slack's mrkdwn as DOM nodes: emphasis, code, quotes, links, mentions, dates, emoji. */
import { el, safeHref } from './dom.js';
import { emojiOf } from './emoji.js';
import { channelOf, personOf, store } from './store.js';

const unescape = (text) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

function mention(label, isMe = false) {
  return el('span', { class: isMe ? 'mention me' : 'mention' }, label);
}

export function userMention(id) {
  const name = id === store.bot.userId ? store.bot.name : (personOf(id)?.realName ?? id);
  return mention(`@${name}`, id === store.me);
}

export function groupMention(id) {
  return mention(`@${store.usergroups.find((g) => g.id === id)?.handle ?? id}`);
}

export function channelMention(id) {
  return mention(`#${channelOf(id)?.name ?? id}`);
}

const dateParts = {
  '{date_num}': (d) => d.toLocaleDateString(undefined, { year: 'numeric', month: '2-digit', day: '2-digit' }),
  '{date}': (d) => d.toLocaleDateString(undefined, { year: 'numeric', month: 'long', day: 'numeric' }),
  '{date_short}': (d) => d.toLocaleDateString(undefined, { year: 'numeric', month: 'short', day: 'numeric' }),
  '{date_long}': (d) =>
    d.toLocaleDateString(undefined, { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }),
  '{time}': (d) => d.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' }),
  '{time_secs}': (d) => d.toLocaleTimeString(),
  '{ago}': (d) => ago(d),
};

function ago(date) {
  const seconds = Math.round((date.getTime() - Date.now()) / 1000);
  const words = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  if (Math.abs(seconds) < 60) return words.format(seconds, 'second');
  if (Math.abs(seconds) < 3600) return words.format(Math.round(seconds / 60), 'minute');
  return words.format(Math.round(seconds / 3600), 'hour');
}

export function dateNode(seconds, format, fallback) {
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return document.createTextNode(fallback ?? '');
  const isToday = date.toDateString() === new Date().toDateString();
  const text = format.replace(/\{\w+\}/g, (token) => {
    const pretty = token.replace('_pretty', '');
    if (token !== pretty && isToday) return 'today';
    return dateParts[pretty]?.(date) ?? token;
  });
  return el('time', { datetime: date.toISOString(), title: date.toLocaleString() }, text);
}

/** What stands between < and >. */
function angle(inner) {
  const [target, label] = inner.split(/\|(.*)/s);
  if (target.startsWith('@')) return userMention(target.slice(1));
  if (target.startsWith('#')) return channelMention(target.slice(1));
  if (target.startsWith('!subteam^')) return groupMention(target.slice(9));
  if (target.startsWith('!date^')) {
    const [, seconds, format = ''] = target.split('^');
    return dateNode(seconds, format, label);
  }
  if (target.startsWith('!')) return mention(`@${target.slice(1)}`);
  const href = safeHref(unescape(target));
  const shown = unescape(label ?? target.replace(/^mailto:/, ''));
  return href === undefined ? document.createTextNode(unescape(`<${inner}>`)) : link(href, shown);
}

export function link(href, shown) {
  return el('a', { href, target: '_blank', rel: 'noreferrer noopener' }, shown);
}

/** Tried in order at each place; the first capture group is the inside. */
const edge = String.raw`(?<![\p{L}\p{N}_*~])`;
const after = String.raw`(?![\p{L}\p{N}_*~])`;
const inlineRules = [
  [/`([^`\n]+)`/u, (inner) => el('code', {}, unescape(inner))],
  [/<([^<>\n]+)>/u, angle],
  [new RegExp(String.raw`${edge}\*(\S(?:[^*\n]*\S)?)\*${after}`, 'u'), (inner) => el('strong', {}, ...inline(inner))],
  [new RegExp(String.raw`${edge}_(\S(?:[^_\n]*\S)?)_${after}`, 'u'), (inner) => el('em', {}, ...inline(inner))],
  [new RegExp(String.raw`${edge}~(\S(?:[^~\n]*\S)?)~${after}`, 'u'), (inner) => el('s', {}, ...inline(inner))],
  [/:([a-z0-9_+-]+):/u, (name, whole) => document.createTextNode(emojiOf(name) ?? whole)],
];

function inline(text) {
  let best;
  for (const [pattern, make] of inlineRules) {
    const match = pattern.exec(text);
    if (match && (best === undefined || match.index < best.match.index)) best = { match, make };
  }
  if (best === undefined) return text === '' ? [] : [document.createTextNode(unescape(text))];
  const { match, make } = best;
  const before = text.slice(0, match.index);
  return [
    ...(before === '' ? [] : [document.createTextNode(unescape(before))]),
    make(match[1], match[0]),
    ...inline(text.slice(match.index + match[0].length)),
  ];
}

function lines(text) {
  const nodes = [];
  let quoted = [];
  const flush = () => {
    if (quoted.length > 0) nodes.push(el('blockquote', {}, ...withBreaks(quoted.map(inline))));
    quoted = [];
  };
  let plain = [];
  const flushPlain = () => {
    if (plain.length > 0) nodes.push(...withBreaks(plain.map(inline)));
    plain = [];
  };
  for (const line of text.split('\n')) {
    const quote = /^(?:&gt;|>) ?(.*)$/.exec(line);
    if (quote) {
      flushPlain();
      quoted.push(quote[1]);
    } else {
      flush();
      plain.push(line);
    }
  }
  flush();
  flushPlain();
  return nodes;
}

function withBreaks(parts) {
  return parts.flatMap((nodes, i) => (i === 0 ? nodes : [el('br'), ...nodes]));
}

/** A text object's or a message's mrkdwn. */
export function mrkdwn(text) {
  const nodes = text.split(/```\n?([\s\S]*?)```/).flatMap((part, i) => {
    if (i % 2 === 1) return [el('pre', { class: 'pre' }, unescape(part.replace(/\n$/, '')))];
    const trimmed = part.replace(/^\n/, '');
    return trimmed === '' ? [] : lines(trimmed);
  });
  return el('div', { class: 'text' }, ...nodes);
}

export function textObject(object) {
  if (!object) return el('span');
  if (object.type === 'mrkdwn') return mrkdwn(object.text ?? '');
  return el('div', { class: 'text' }, plain(object.text ?? ''));
}

/** Plain text: only emoji names are read. */
export function plain(text) {
  return text.replace(/:([a-z0-9_+-]+):/g, (whole, name) => emojiOf(name) ?? whole);
}
