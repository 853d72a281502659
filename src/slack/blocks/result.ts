/** A run while it works and when it has ended: steps with expected and measured, before and after, what is left. */
import type { RichTextBlock } from '@slack/types';
import type { Finding, Memory, RunReport, StepReport, TargetResult } from '../../memory/contract.ts';
import { freeSize } from '../../memory/free-table.ts';
import { deltaText, rangeText, sizeText } from '../../memory/sizes.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { columns, cut, oneLine, type Piece } from '../text.ts';
import { rich, type RichPart } from './elements.ts';
import { processesOf, stepTitle } from './plan.ts';
import { classWords, resultWords, stepMarks, stepStateWords } from './words.ts';

const stepsShown = 10;

/** `79 ended after TERM, 1 already gone`. */
function resultsInWords(step: StepReport): string {
  const counts = new Map<TargetResult, number>();
  for (const target of step.targets) {
    if (target.result !== undefined) counts.set(target.result, (counts.get(target.result) ?? 0) + 1);
  }
  if (step.action === 'drop_caches') return '';
  return [...counts].map(([result, n]) => `${n} ${resultWords[result]}`).join(', ');
}

function measuredText(step: StepReport): string {
  if (step.measured === undefined) return 'measured: not measured';
  const { freeKiB, availableKiB, byClass } = step.measured;
  const classes = Object.entries(byClass)
    .filter(([, kiB]) => Math.abs(kiB) >= 1024)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
    .slice(0, 3)
    .map(([name, kiB]) => `${name.replaceAll('_', ' ')} ${deltaText(-kiB)}`);
  const where = classes.length === 0 ? '' : ` (${classes.join(', ')})`;
  return `measured: ${sizeText(freeKiB)} to free, ${sizeText(availableKiB)} to available${oneLine(where)}`;
}

/** What became of its targets, what was expected and what was measured: a line each. */
export function stepFacts(step: StepReport): string[] {
  const results = resultsInWords(step);
  return [
    ...(results === '' ? [] : [results]),
    `expected: ${rangeText(step.expectedFreeKiB)} to free, ${rangeText(step.expectedAvailableKiB)} to available`,
    ...(step.state === 'not_run' || step.state === 'skipped' ? [] : [measuredText(step)]),
  ];
}

export function stepLines(step: StepReport, n: number, record: RequestRecord): Piece[] {
  const reason = step.reason === undefined ? '' : `: ${cut(oneLine(step.reason), 200)}`;
  return [
    { bold: `${stepMarks[step.state]} ${n}. ${stepTitle(step, processesOf(record))}` },
    ` – ${stepStateWords[step.state]}${reason}`,
    ...stepFacts(step).map((fact) => `\n${fact}`),
  ];
}

const figures: readonly (readonly [string, (memory: Memory) => number])[] = [
  ['total', (m) => m.totalKiB],
  ['used', (m) => m.usedKiB],
  ['free', (m) => m.freeKiB],
  ['shared', (m) => m.sharedKiB],
  ['buff/cache', (m) => m.buffCacheKiB],
  ['available', (m) => m.availableKiB],
  ['swap used', (m) => m.swapUsedKiB],
];

const signed = (kiB: number): string => (kiB === 0 ? '0' : `${kiB < 0 ? '-' : '+'}${freeSize(Math.abs(kiB))}`);

/** The figures of `free -h` one below the other, so that before, after and change stand side by side on a phone too. */
export function beforeAfter({ before, after }: RunReport): RichTextBlock {
  const hasSwap = before.swapTotalKiB > 0 || after.swapTotalKiB > 0;
  const rows = figures
    .filter(([name]) => hasSwap || name !== 'swap used')
    .map(([name, of]) => [name, freeSize(of(before)), freeSize(of(after)), signed(of(after) - of(before))]);
  const table = columns([['', 'before', 'after', 'change'], ...rows], ['left', 'right', 'right', 'right']);
  return rich([{ line: [{ bold: 'Memory before and after' }] }, { pre: table }]);
}

export function stepResults(report: RunReport, record: RequestRecord): RichTextBlock | null {
  if (report.steps.length === 0) return null;
  const parts: RichPart[] = [{ line: [{ bold: 'Steps, expected against measured' }] }];
  for (const [i, step] of report.steps.slice(0, stepsShown).entries()) {
    parts.push({ line: stepLines(step, i + 1, record) });
  }
  const more = report.steps.length - stepsShown;
  if (more > 0) parts.push({ line: [`and ${more} more steps, all in the receipt`] });
  return rich(parts);
}

/** Findings of the look before acting that no finished step was for: they are as they were. */
function notDealtWith({ diagnosis, steps }: RunReport): Finding[] {
  const actions = new Set<string>(steps.filter((step) => step.state === 'done').map((step) => step.action));
  return diagnosis.findings.filter((f) => !actions.has(f.action) && f.kiB >= 256 * 1024).slice(0, 4);
}

/** What no step of ours caused, what is left and why, and how to avoid it next time. */
export function afterwards(report: RunReport): RichTextBlock | null {
  const parts: RichPart[] = [];
  const { freeKiB, availableKiB } = report.other;
  if (Math.abs(freeKiB) >= 64 * 1024 || Math.abs(availableKiB) >= 64 * 1024) {
    parts.push({
      line: [
        { bold: 'Other activity on the box meanwhile: ' },
        `${deltaText(freeKiB)} free, ${deltaText(availableKiB)} available. Not ours.`,
      ],
    });
  }
  const left = notDealtWith(report);
  const stayed = report.steps.flatMap((s) =>
    s.targets.filter((t) => t.result === 'still_there' || t.result === 'respawned'),
  );
  if (left.length > 0 || stayed.length > 0) {
    parts.push({ line: [{ bold: 'What is left, and why' }] });
    const lines = left.map((f) => [
      `${sizeText(f.kiB)} ${classWords[f.class]}: ${cut(oneLine(f.evidence[0] ?? 'it was not part of the plan'), 200)}`,
    ]);
    if (stayed.length > 0) lines.push([`${stayed.length} targets of the plan stayed or came back`]);
    parts.push({ list: lines });
  }
  if (report.advice.length > 0) {
    parts.push({ line: [{ bold: 'How to avoid it next time' }] });
    parts.push({ list: report.advice.slice(0, 6).map((a) => [cut(oneLine(a), 700)]) });
  }
  return parts.length === 0 ? null : rich(parts);
}

/** One line for notifications and the thread: figures only, no host text. */
export function gainSentence(report: RunReport): string {
  const { before, after } = report;
  return (
    `used before ${sizeText(before.usedKiB)}, after ${sizeText(after.usedKiB)}; ` +
    `available before ${sizeText(before.availableKiB)}, after ${sizeText(after.availableKiB)}. ` +
    report.steps
      .filter((s) => s.measured !== undefined)
      .map(
        (s) =>
          `${s.action.replaceAll('_', ' ')}: expected ${rangeText(s.expectedFreeKiB)}, measured ${sizeText(s.measured?.freeKiB ?? 0)}`,
      )
      .slice(0, 5)
      .join('; ')
  ).trim();
}
