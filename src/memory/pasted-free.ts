/**
 * A table of `free` that somebody pasted, in whatever language, unit and age of procps. It is recognised and shown as it is, and
 * nothing is counted with it: headings are translated, `-h` rounds to two digits, and the sixth column of an old table is
 * `cached` where a newer one has `available` (free.ts tells the formulas).
 */
import type { Capture, Diagnosis } from './contract.ts';
import { escapeText } from './redact.ts';

export interface PastedFree {
  /** The lines of the table, safe to print. */
  readonly table: readonly string[];
  /** What its `used` most likely means; a sentence. */
  readonly words: string;
}

const number = String.raw`\d{1,25}(?:[.,]\d{1,3})?(?:[KMGTPE]i?|B)?`;
/** `Mem:`, `Speicher:33678610432`: a label, a colon, and the figures of a table's first row. */
const memoryRow = new RegExp(String.raw`^\s*[^\d:]{1,40}:\s*${number}(?:\s+${number}){2,6}\s*$`);
const withoutCache = /^\s*-\/\+/;
/** No table of `free` is longer, and no capture is this short. */
const mostCharacters = 4096;
const mostLines = 12;

/** Null for whatever is no table of `free`. */
export function readPastedFree(text: string): PastedFree | null {
  if (text.length > mostCharacters) return null;
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const row = lines.find((line) => memoryRow.test(line));
  if (row === undefined || lines.length > mostLines) return null;
  return { table: lines.map((line) => escapeText(line, 200)), words: wordsOf(lines, row) };
}

function wordsOf(lines: readonly string[], row: string): string {
  const columns = row
    .slice(row.indexOf(':') + 1)
    .trim()
    .split(/\s+/).length;
  if (lines.some((line) => withoutCache.test(line))) {
    return 'It has the form of procps 3.3.9 and older: its "used" counts the cache in, it has no "available", and what programs hold stands in the row "-/+".';
  }
  // Every language keeps the slash of buff/cache.
  if (columns === 6 && lines.some((line) => !memoryRow.test(line) && line.includes('/'))) {
    return 'It has the form of procps 3.3.10 and later: its "used" leaves the cache out, and the last column is what is available.';
  }
  return 'Its heading does not tell which age of free it is from, so the sixth figure may be "cached" as well as "available".';
}

/** What there is to diagnose in a pasted table: nothing. `think` says so of it in the shape of any diagnosis. */
export const captureOfNothing = (takenAt: string): Capture => ({
  capture: 1,
  host: 'pasted-table',
  takenAt,
  privileged: false,
  windowSeconds: 0,
  collectorPids: [],
  files: {},
  later: {},
  commands: {},
});

export function diagnosisOfPasted(pasted: PastedFree, empty: Diagnosis): Diagnosis {
  return {
    ...empty,
    headline: `Unknown: this is a pasted table of free, not a look at a box. It is shown and not counted with. ${lookInstead}`,
    partial: [`Only a pasted table of free was there. ${pasted.words}`],
  };
}

export const lookInstead =
  'Look at the box itself: `reclaim diagnose HOST`, or on the box `reclaim diagnose --local` or `reclaim capture --local`.';
