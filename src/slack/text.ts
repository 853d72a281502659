/**
 * The one path from any text to Slack. Host text (process names, paths, evidence, error details) is only ever placed in
 * raw text or rich text, where markup and mentions are inert; where mrkdwn is needed, everything but our own mentions and
 * dates is escaped. Cuts fall between code points. Lengths are counted in UTF-16 units, the stricter of the readings.
 */

/** Slack's documented limits that we build to (docs.slack.dev/reference/block-kit, chat.postMessage). */
export const limits = {
  blocksPerMessage: 50,
  blocksPerView: 100,
  sectionChars: 3000,
  headerChars: 150,
  buttonChars: 75,
  optionChars: 75,
  confirmTitleChars: 100,
  confirmTextChars: 300,
  viewTitleChars: 24,
  privateMetadataChars: 3000,
  optionsPerGroup: 10,
  /** Undocumented (bolt-js 2509): a message whose blocks hold more than about 13,000 characters is refused. */
  messageChars: 12_000,
  /** Longer `text` is cut by Slack; it is also what screen readers and notifications read. */
  fallbackChars: 3000,
} as const;

/** Characters that could reorder, hide or break what a person reads: controls, bidi overrides, lone surrogates. */
const unreadable = /[\p{Cc}\p{Cs}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** One line of readable text: line breaks and tabs become blanks, other unreadable characters a visible mark. */
export function oneLine(text: string): string {
  return text.replace(/[\r\n\t]+/g, ' ').replace(unreadable, '\ufffd');
}

/** Readable text that may keep its line breaks. */
export function readable(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => line.replace(/\t/g, '  ').replace(unreadable, '\ufffd'))
    .join('\n');
}

/** At most `max` UTF-16 units, never splitting a code point; what was cut is marked with an ellipsis. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  let kept = '';
  for (const char of text) {
    if (kept.length + char.length > max - 1) break;
    kept += char;
  }
  return `${kept}…`;
}

/** The three characters mrkdwn gives a meaning to beyond formatting; without them no link, mention or date can form. */
export function escapeMrkdwn(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

const slackUserId = /^[UW][A-Z0-9]{2,}$/;
const slackGroupId = /^S[A-Z0-9]{2,}$/;

/** A piece of a sentence: plain text, a person or group, or a moment shown in the reader's own time zone. */
export type Piece =
  | string
  | { readonly bold: string }
  | { readonly who: string }
  | { readonly at: string; readonly style: 'time' | 'day_time' };

/** `2026-11-30T20:54:00Z` -> `20:54 UTC`, for readers whose client cannot show local time. */
export function utcTime(iso: string): string {
  return `${new Date(iso).toISOString().slice(11, 16)} UTC`;
}

function mentionMrkdwn(id: string): string {
  if (slackUserId.test(id)) return `<@${id}>`;
  if (slackGroupId.test(id)) return `<!subteam^${id}>`;
  return escapeMrkdwn(whoInWords(id));
}

/** A person as words, where a mention cannot stand: `unix:alice` -> `the Unix user alice`. */
export function whoInWords(id: string): string {
  if (id === 'alert') return 'an alert';
  return oneLine(id.startsWith('unix:') ? `the Unix user ${id.slice(5)}` : id);
}

/** mrkdwn for sentences of ours that mention people or moments. Plain pieces are escaped. */
export function mrkdwn(pieces: readonly Piece[], max: number = limits.sectionChars): string {
  let out = '';
  for (const piece of pieces) {
    const next = pieceMrkdwn(piece, max - out.length);
    if (out.length + next.length > max) return out;
    out += next;
  }
  return out;
}

function pieceMrkdwn(piece: Piece, room: number): string {
  if (typeof piece === 'string') return cutEscaped(oneLine(piece), room);
  if ('bold' in piece) {
    const inner = cutEscaped(oneLine(piece.bold).replace(/\*/g, '∗'), Math.max(0, room - 2));
    // Slack reads asterisks as bold only when no blank stands inside them.
    const words = inner.trim();
    return words === '' ? inner : inner.replace(words, () => `*${words}*`);
  }
  if ('who' in piece) return mentionMrkdwn(piece.who);
  const seconds = Math.floor(Date.parse(piece.at) / 1000);
  const format = piece.style === 'time' ? '{time}' : '{date_short_pretty} at {time}';
  return `<!date^${seconds}^${format}|${utcTime(piece.at)}>`;
}

/** Escapes first, so that the limit holds for what is sent, and never cuts through an escape. */
function cutEscaped(text: string, max: number): string {
  const whole = escapeMrkdwn(text);
  if (whole.length <= max) return whole;
  let kept = '';
  for (const char of text) {
    const next = escapeMrkdwn(char);
    if (kept.length + next.length > max - 1) break;
    kept += next;
  }
  return max > 0 ? `${kept}…` : '';
}

/**
 * Splits a sentence of the request service into pieces. Its people are written `@ID`; only ids the record itself names
 * become mentions, so that nothing a host or a person typed can ping anybody.
 */
export function withPeople(sentence: string, known: ReadonlySet<string>): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of sentence.matchAll(/@([UW][A-Z0-9]{2,})\b/g)) {
    const id = match[1];
    if (id === undefined || !known.has(id)) continue;
    pieces.push(sentence.slice(from, match.index), { who: id });
    from = match.index + match[0].length;
  }
  pieces.push(sentence.slice(from));
  return pieces.filter((p) => p !== '');
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** Milliseconds as a person would say them: `8 s`, `3 min`, `2 h`. */
export function duration(ms: number): string {
  if (ms < 90_000) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}

const charCount = (text: string): number => Array.from(text).length;

/** Left- or right-aligned columns for preformatted text. Cells must be one line each. */
export function columns(rows: readonly (readonly string[])[], align: readonly ('left' | 'right')[], gap = 2): string {
  const widths = align.map((_, i) => Math.max(0, ...rows.map((row) => charCount(row[i] ?? ''))));
  return rows
    .map((row) =>
      align
        .map((side, i) => {
          const cell = row[i] ?? '';
          const pad = ' '.repeat(Math.max(0, (widths[i] ?? 0) - charCount(cell)));
          return side === 'right' ? pad + cell : cell + pad;
        })
        .join(' '.repeat(gap))
        .trimEnd(),
    )
    .join('\n');
}
