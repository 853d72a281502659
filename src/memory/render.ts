/** The report for a terminal: plain words and letters; colour only says again what the words say. */
import type { Diagnosis, RangeKiB, Step } from './contract.ts';
import { renderFreeTable } from './free-table.ts';
import { findingSections, type Ink } from './render-findings.ts';
import { rangeText, sizeText } from './sizes.ts';

export interface RenderOptions {
  /** Columns of the terminal. */
  readonly width: number;
  readonly colour: boolean;
  /** What `used` means here (Thought.freeWords). */
  readonly freeWords?: string | undefined;
  readonly advice?: readonly string[] | undefined;
  /** `full` names every target with its whole command: for somebody who is about to approve. Default `short`. */
  readonly detail?: Ink['detail'] | undefined;
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';
const codes: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

const verdictStyles: Readonly<Record<Diagnosis['verdict'], Style>> = {
  lingering: 'yellow',
  mixed: 'yellow',
  real_usage: 'bold',
  not_a_process: 'red',
  nothing_to_reclaim: 'green',
  unknown: 'red',
};

/** Ends without a newline. */
export function renderReport(diagnosis: Diagnosis, options: RenderOptions): string {
  const width = Math.min(Math.max(options.width, 40), 120);
  const paint = (style: Style, text: string): string =>
    options.colour ? `\u001b[${codes[style]}m${text}\u001b[0m` : text;
  const title = (text: string): string => paint('bold', text);
  const wrap = (text: string, indent: string): string => wrapText(text, width, indent);

  const parts = [
    `${title(diagnosis.host)}  ${paint('dim', diagnosis.takenAt)}`,
    paint(verdictStyles[diagnosis.verdict], wrap(diagnosis.headline, '')),
    paint('dim', `verdict: ${diagnosis.verdict}, confidence: ${diagnosis.confidence}`),
    '',
    renderFreeTable(diagnosis.memory),
    ...(options.freeWords === undefined ? [] : [paint('dim', wrap(options.freeWords, ''))]),
    '',
    ...bar(diagnosis, width, options.colour),
  ];
  const dim = (text: string): string => paint('dim', text);
  const warn = (text: string): string => (options.colour ? title(paint('yellow', text)) : text);
  const ink: Ink = { width, detail: options.detail ?? 'short', said: options.freeWords, wrap, bold: title, dim, warn };
  parts.push(...findingSections(diagnosis, ink));
  parts.push('', ...planLines(diagnosis, wrap, title));
  if (diagnosis.partial.length > 0) {
    parts.push('', title('Could not be seen'), ...diagnosis.partial.map((line) => wrap(line, '  ')));
  }
  const advice = options.advice ?? [];
  if (advice.length > 0) parts.push('', title('Advice'), ...advice.map((line) => wrap(line, '  ')));
  return parts.join('\n');
}

type Wrap = (text: string, indent: string) => string;
type Title = (text: string) => string;

/** Why there is no plan, where somebody else can do something. */
const noPlan: Partial<Record<Diagnosis['verdict'], string>> = {
  real_usage: 'what holds the memory is for its owners to end',
  not_a_process: 'what helps here is for an administrator to do',
  unknown: 'nothing is done on what was not seen',
};

function planLines(diagnosis: Diagnosis, wrap: Wrap, title: Title): string[] {
  if (diagnosis.plan === null)
    return [title('Plan'), `  none: ${noPlan[diagnosis.verdict] ?? 'nothing here should be done'}`];
  const steps = diagnosis.plan.steps.flatMap((step) => [
    wrap(`${step.id}: ${stepWords(step)}${targetWords(diagnosis, step)}`, '  '),
    wrap(
      `expected: free +${gainText(step.expectedFreeKiB)}, available +${gainText(step.expectedAvailableKiB)}`,
      '      ',
    ),
  ]);
  const onlyCache = diagnosis.plan.steps.every((step) => step.action === 'drop_caches');
  const note = onlyCache ? [wrap('not needed: programs get this memory anyway. On request only.', '  ')] : [];
  return [title(`Plan ${diagnosis.plan.digest.slice(0, 12)}`), ...steps, ...note];
}

const gainText = (range: RangeKiB): string => (range.high === 0 ? '0' : rangeText(range));

/** Which finding a kill step is about: there may be several. */
function targetWords({ findings }: Diagnosis, step: Step): string {
  const first = step.action === 'kill' ? step.targets[0] : undefined;
  const finding = findings.find(
    ({ action, processes }) =>
      action === 'kill' && processes?.some((p) => p.pid === first?.pid && p.startTime === first.startTime),
  );
  return finding === undefined ? '' : ` of the ${finding.class} of ${sizeText(finding.kiB)}`;
}

/** What a step does, with the number of its targets. */
export function stepWords(step: Step): string {
  const many = (n: number, one: string, more: string): string => `${n} ${n === 1 ? one : more}`;
  switch (step.action) {
    case 'kill':
      return `end ${many(step.targets.length, 'process', 'processes')} (TERM, then KILL)`;
    case 'remove_files':
      return `remove ${many(step.targets.length, 'file', 'files')} from memory`;
    case 'ipcrm':
      return `remove ${many(step.targets.length, 'shared memory segment', 'shared memory segments')}`;
    case 'drop_caches':
      return `drop caches (level ${step.targets[0]?.level ?? 1})`;
  }
}

/** Foreground colours of the bar, reused in turn. */
const barColours = [31, 35, 34, 36, 33, 32, 91, 95, 94, 96, 93, 92];

/** One line of cells, a letter each, and a legend that gives every letter its class and size. Free memory is dots. */
function bar(diagnosis: Diagnosis, width: number, colour: boolean): string[] {
  const total = diagnosis.memory.totalKiB;
  if (total === 0) return [];
  const used = diagnosis.accounting.filter((entry) => !entry.class.includes('free')).sort((a, b) => b.kiB - a.kiB);
  const cells = width - 2;
  const letters = new Set<string>();
  let line = '';
  let drawn = 0;
  const legend: string[] = [];
  for (const [index, entry] of used.filter((e) => e.kiB >= total * 0.005).entries()) {
    const letter = Array.from(`${entry.class.replace(/[^a-z]/g, '')}0123456789`).find((c) => !letters.has(c)) ?? '?';
    letters.add(letter);
    const count = Math.min(cells - drawn, Math.max(1, Math.round((entry.kiB / total) * cells)));
    drawn += count;
    const tint = (text: string): string =>
      colour ? `\u001b[${barColours[index % barColours.length] ?? 37}m${text}\u001b[0m` : text;
    line += tint(letter.repeat(count));
    legend.push(`${tint(letter)} ${entry.class} ${sizeText(entry.kiB)}`);
  }
  const free = diagnosis.accounting.filter((entry) => entry.class.includes('free'));
  legend.push(`. free ${sizeText(free.reduce((sum, entry) => sum + entry.kiB, 0))}`);
  return [`[${line}${'.'.repeat(cells - drawn)}]`, ...legendLines(legend, width)];
}

function legendLines(entries: readonly string[], width: number): string[] {
  const lines: string[] = [];
  let line = '';
  let length = 0;
  for (const entry of entries) {
    const visible = entry.replace(/\u001b\[\d+m/g, '').length;
    if (length > 0 && length + 3 + visible > width) {
      lines.push(line);
      line = '';
      length = 0;
    }
    line += length > 0 ? `   ${entry}` : entry;
    length += (length > 0 ? 3 : 0) + visible;
  }
  return [...lines, line];
}

/** Breaks at spaces; a word longer than the line is left whole. Later lines of indented text are indented two more. */
export function wrapText(text: string, width: number, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent === '' ? '' : `${indent}  `;
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line].join('\n');
}
