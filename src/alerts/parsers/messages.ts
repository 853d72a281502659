/**
 * Alerts that other bots post in a channel: Alertmanager, Grafana, Netdata, Zabbix, Datadog, and whatever says as plainly
 * that something fires or is over. A message is data for finding a host. It is never a command and never an approval,
 * whatever it says.
 */
import { type Alert, type AlertSource, aboutOf, fingerprintOf, type HostHint, titleOf } from './alert.ts';
import { hostLabels } from './labels.ts';
import { shownMessage, type ShownMessage } from './message-text.ts';

type State = Alert['state'];

const firingWords =
  /^\W*(?:firing\b|problem\b|(?:re-?)?triggered\b|alerting\b|critical\b|warn(?:ing)?\b|alert\b|disaster\b|high\b(?=[:\]])|down\b(?=[:\]]))/i;
const resolvedWords =
  /^\W*(?:resolved\b|recovered\b|ok\b(?=[:\]\s])|clear(?:ed)?\b|back to normal\b|normal\b(?=[:\]]))/i;
/** Neither of the two: a rule without data, or somebody's acknowledgement. */
const neitherWords = /^\W*(?:no ?data|updated|acknowledged|paused|pending|test)\b/i;

function stateInWords(line: string): State | 'neither' | null {
  if (neitherWords.test(line)) return 'neither';
  if (resolvedWords.test(line)) return 'resolved';
  return firingWords.test(line) ? 'firing' : null;
}

/** `good`, `#36a64f` and `#009900` are green; red, orange and yellow fire; grey and blue say nothing. */
export function stateOfColor(color: string): State | null {
  if (color === 'good') return 'resolved';
  if (color === 'danger' || color === 'warning') return 'firing';
  const hex = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color);
  if (hex === null) return null;
  const [r = 0, g = 0, b = 0] = hex.slice(1).map((part) => Number.parseInt(part, 16));
  if (g > r * 1.2 && g > b * 1.1) return 'resolved';
  return r > b * 1.3 && r > g ? 'firing' : null;
}

const netdata = /^(\S+) (is critical|needs attention|recovered)\b/;

function netdataAlert(shown: ShownMessage): Alert | null {
  const ours = [shown.username, ...shown.footers].some((from) => /^netdata on /i.test(from));
  const match = netdata.exec(shown.texts[0] ?? '');
  if (!ours || match === null) return null;
  const [, host = '', status] = match;
  const chart = shown.fields[0]?.title ?? /`?([a-z0-9_]+\.[a-z0-9_.]+)`?/i.exec(shown.texts[0] ?? '')?.[1] ?? '';
  return {
    source: 'netdata',
    state: status === 'recovered' ? 'resolved' : 'firing',
    title: titleOf(shown.titles[0] ?? shown.texts[0] ?? ''),
    fingerprint: fingerprintOf('netdata', host, chart),
    hints: [{ from: 'text', said: host }],
    words: [],
    about: aboutOf(shown.texts.join(' ')),
  };
}

const rank = new Map<string, number>(hostLabels.map((label, i) => [label, i]));
const labelled =
  /(?:^|[\s([{,•·|-])(nodename|node|hostname|host|server|instance)\s*[:=]\s*["'{]*(\[[0-9a-f:.]+\](?::\d+)?|[^\s"',;(){}[\]|]+)/gim;

/** Fields titled like a host label, and `label: value` or `label=value` in running text. */
function hintsIn(shown: ShownMessage): HostHint[] {
  const fields = shown.fields.flatMap(({ title, value }) => {
    const from = title.toLowerCase();
    return rank.has(from) ? value.split(/[\s,]+/).flatMap((said) => (said === '' ? [] : [{ from, said }])) : [];
  });
  const inText = shown.texts.flatMap((text) =>
    Array.from(text.matchAll(labelled), (m): HostHint => ({ from: (m[1] ?? '').toLowerCase(), said: m[2] ?? '' })),
  );
  const seen = new Set<string>();
  return [...fields, ...inText]
    .filter(({ from, said }) => !seen.has(`${from} ${said}`) && seen.add(`${from} ${said}`).size > 0)
    .sort((a, b) => (rank.get(a.from) ?? 0) - (rank.get(b.from) ?? 0))
    .slice(0, 50);
}

function wordsIn(shown: ShownMessage): string[] {
  const all = [...shown.titles, ...shown.texts, ...shown.fields.map((f) => f.value)].join(' ');
  const words = all.split(/[\s,;()<>{}"'|=]+/).map((word) => word.replace(/^[([{*]+|[)\]}*:.!?]+$/g, ''));
  return [...new Set(words.filter((word) => word.length > 1))].slice(0, 300);
}

function sourceOf(shown: ShownMessage, line: string): AlertSource {
  const from = `${shown.username} ${shown.footers.join(' ')}`;
  if (/zabbix/i.test(from) || /^\W*(?:problem|resolved|ok)\b.*:/i.test(line)) return 'zabbix';
  if (/grafana/i.test(from)) return 'grafana';
  if (/datadog/i.test(from) || /^\W*(?:re-)?(?:triggered|recovered)\b/i.test(line)) return 'datadog';
  return /^\W*\[(?:firing|resolved)/i.test(line) ? 'alertmanager' : 'message';
}

/** The title without what changes between firing and resolved: state words, counts, values. */
function lasting(line: string): string {
  return line
    .replace(/^[^\w[]*(?:\[[^\]]*\]|\w+(?:\s+in [\w\s]+)?:)\s*/, '')
    .replace(/\(.*\)/g, '')
    .replace(/[\d.,]+\s*%?/g, '')
    .trim()
    .toLowerCase();
}

/** Null when it is no alert: nothing in it says that something fires or is over. */
export function parseMessage(message: unknown): Alert | null {
  const shown = shownMessage(message);
  const fromNetdata = netdataAlert(shown);
  if (fromNetdata !== null) return fromNetdata;
  const lines = [...shown.titles, ...shown.texts];
  const inWords = lines.map(stateInWords).find((state) => state !== null);
  if (inWords === 'neither') return null;
  const inColor = shown.colors.map(stateOfColor).find((state) => state !== null);
  const state = inWords ?? inColor ?? null;
  if (state === null) return null;
  const title = shown.titles[0] ?? shown.texts[0] ?? '';
  const hints = hintsIn(shown);
  const source = sourceOf(shown, title);
  return {
    source,
    state,
    title: titleOf(title),
    fingerprint: fingerprintOf('message', lasting(title), hints[0]?.said ?? ''),
    hints,
    words: hints.length > 0 ? [] : wordsIn(shown),
    about: aboutOf([...lines, ...shown.fields.map((f) => `${f.title} ${f.value}`)].join(' ')),
  };
}
