/** What was seen on the box: the table of `free -h`, where the memory is, and the findings with their evidence. */
import type { RichTextBlock } from '@slack/types';
import type { Diagnosis, Finding } from '../../memory/contract.ts';
import { renderFreeTable } from '../../memory/free-table.ts';
import { rangeText, sizeText } from '../../memory/sizes.ts';
import { columns, cut, oneLine, readable } from '../text.ts';
import { rich, type RichPart } from './elements.ts';
import { adviceWords, classWords, memoryWords } from './words.ts';

/** The table of `free -h` with its columns as narrow as what is in them: a phone shows it without scrolling sideways. */
export function freeTable(diagnosis: Diagnosis): RichTextBlock {
  const rows = renderFreeTable(diagnosis.memory)
    .split('\n')
    .map((line) => (line.startsWith(' ') ? ['', ...line.trim().split(/\s+/)] : line.split(/\s+/)));
  const right = Array.from({ length: 6 }, () => 'right' as const);
  return rich([{ pre: columns(rows, ['left', ...right], 1) }]);
}

/** One letter per class in the bar, with a legend beside it: it reads the same without colours. */
const letters = '#=+*o%~x';
const barChars = 36;

/** A bar of the whole memory: the largest classes by letter, the rest as dots, with a legend. */
export function memoryBar(accounting: Diagnosis['accounting'], totalKiB: number): string {
  const shown = accounting
    .filter((a) => a.kiB > totalKiB / 200 && a.class !== 'free')
    .sort((a, b) => b.kiB - a.kiB)
    .slice(0, letters.length);
  const free = accounting.find((a) => a.class === 'free')?.kiB ?? 0;
  const width = (kiB: number): number => (totalKiB <= 0 ? 0 : Math.round((kiB / totalKiB) * barChars));
  let bar = '';
  for (const [i, part] of shown.entries()) bar += (letters[i] ?? '?').repeat(width(part.kiB));
  bar = bar.slice(0, barChars);
  const rest = Math.max(0, barChars - bar.length - width(free));
  bar = (bar + '.'.repeat(rest)).padEnd(barChars, ' ');
  const legend = shown.map((part, i) => [letters[i] ?? '?', sizeText(part.kiB), cut(memoryWords(part.class), 22)]);
  const other = totalKiB - free - shown.reduce((sum, a) => sum + a.kiB, 0);
  if (other > 0) legend.push(['.', sizeText(other), 'other']);
  legend.push(['blank', sizeText(free), 'free']);
  return `[${bar}]\n${columns(
    legend.map((row) => row.map(oneLine)),
    ['left', 'right', 'left'],
  )}`;
}

/** Cache is available already: dropping it moves it to free and gives nobody more memory. */
const gainWords = (finding: Finding): string =>
  finding.action === 'drop_caches' || finding.class === 'page_cache' ? 'can move to free' : 'can come back';

function findingTitle(finding: Finding): string {
  const gain = finding.reclaimableKiB.high > 0 ? `, ${rangeText(finding.reclaimableKiB)} ${gainWords(finding)}` : '';
  return `${sizeText(finding.kiB)} ${classWords[finding.class]}${gain} (${adviceWords[finding.action]})`;
}

/** The largest findings with the evidence for each. */
export function findingParts(diagnosis: Diagnosis, most: number, evidenceEach: number): RichTextBlock | null {
  const shown = diagnosis.findings.slice(0, most);
  if (shown.length === 0) return null;
  const parts: RichPart[] = [{ line: [{ bold: 'What was found' }] }];
  for (const finding of shown) {
    parts.push({ line: [{ bold: findingTitle(finding) }] });
    const evidence = finding.evidence.slice(0, evidenceEach).map((e) => [cut(oneLine(e), 250)]);
    if (evidence.length > 0) parts.push({ list: evidence });
  }
  const left = diagnosis.findings.length - shown.length;
  if (left > 0) parts.push({ line: [`${left} smaller in the thread.`] });
  return rich(parts);
}

export function partialParts(diagnosis: Diagnosis, most: number): RichTextBlock | null {
  if (diagnosis.partial.length === 0) return null;
  return rich([
    { line: [{ bold: 'What could not be seen' }] },
    { list: diagnosis.partial.slice(0, most).map((p) => [cut(readable(oneLine(p)), 250)]) },
  ]);
}
