/**
 * The picture of where the memory is: a stacked bar of the look, and before and after of a run. Pure: an SVG and the words
 * that say the same. It has a ground of its own, so that it reads in light and dark; letters stand in the bar and in the
 * legend, so that it reads without colours; type is large enough for a phone, where it is shown at half its size.
 */
import type { Diagnosis, Memory, RunReport } from '../../memory/contract.ts';
import { freeSize } from '../../memory/free-table.ts';
import { percentOf, rangeText, sizeText } from '../../memory/sizes.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, oneLine } from '../text.ts';
import { memoryWords } from './words.ts';

export interface Picture {
  readonly filename: string;
  readonly title: string;
  /** The same in words, for those who do not see it: at most 1000 characters, which is what Slack takes. */
  readonly altText: string;
  readonly svg: string;
}

interface Segment {
  readonly name: string;
  readonly kiB: number;
  readonly fill: string;
  /** In the bar and in the legend; empty for what is free. */
  readonly letter: string;
}

const width = 720;
const margin = 28;
const barWidth = width - 2 * margin;
const barHeight = 72;
const ink = '#f2f3f5';
const soft = '#b9bec6';
const ground = '#1b1f24';
/** Told apart also by people who do not see red and green (Okabe and Ito), light enough for dark letters. */
const fills = ['#f0a04b', '#63b3ed', '#cfa0e0', '#57c7a5', '#f2d94e', '#a7b0bd'] as const;
const freeFill = 'url(#free)';
const shownAtMost = 5;
const altChars = 1000;

const attribute = (text: string): string =>
  oneLine(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');

interface Words {
  readonly size: number;
  readonly fill?: string;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly bold?: boolean;
}

function words(x: number, y: number, text: string, { size, fill = ink, anchor = 'start', bold = false }: Words) {
  const weight = bold ? ' font-weight="bold"' : '';
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${fill}" text-anchor="${anchor}"${weight}>${attribute(text)}</text>`;
}

function swatch(x: number, y: number, segment: Segment): string {
  return (
    `<rect x="${x}" y="${y}" width="34" height="34" rx="5" fill="${segment.fill}" stroke="${soft}" stroke-width="1"/>` +
    (segment.letter === ''
      ? ''
      : words(x + 17, y + 26, segment.letter, { size: 24, fill: ground, anchor: 'middle', bold: true }))
  );
}

/** One bar for the whole memory. Edges are rounded from sums, so that widths neither leave gaps nor run over. */
function bar(y: number, segments: readonly Segment[], totalKiB: number): string {
  let from = 0;
  const parts = segments.map((segment) => {
    const left = Math.round((from / totalKiB) * barWidth);
    from += segment.kiB;
    const right = Math.min(barWidth, Math.round((from / totalKiB) * barWidth));
    if (right <= left) return '';
    const box = `<rect x="${margin + left}" y="${y}" width="${right - left}" height="${barHeight}" fill="${segment.fill}"/>`;
    const edge = `<rect x="${margin + right - 1}" y="${y}" width="2" height="${barHeight}" fill="${ground}"/>`;
    const middle = margin + (left + right) / 2;
    const letter =
      segment.letter === '' || right - left < 30
        ? ''
        : words(middle, y + barHeight / 2 + 11, segment.letter, {
            size: 30,
            fill: ground,
            anchor: 'middle',
            bold: true,
          });
    return box + edge + letter;
  });
  const frame = `<rect x="${margin}" y="${y}" width="${barWidth}" height="${barHeight}" rx="6" fill="none" stroke="${soft}" stroke-width="2"/>`;
  return parts.join('') + frame;
}

function sheet(height: number, body: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="DejaVu Sans">`,
    '<defs><pattern id="free" width="14" height="14" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
    `<rect width="14" height="14" fill="#2c323a"/><rect width="3" height="14" fill="#4a525d"/></pattern></defs>`,
    `<rect width="${width}" height="${height}" rx="16" fill="${ground}"/>`,
    ...body,
    '</svg>',
  ].join('\n');
}

/** The largest classes by name, the rest as one, what is free last. */
function segmentsOf(diagnosis: Diagnosis): Segment[] {
  const isFree = (name: string): boolean => name === 'free' || name === 'per_cpu_free';
  const taken = diagnosis.accounting.filter((a) => !isFree(a.class) && a.kiB > 0).sort((a, b) => b.kiB - a.kiB);
  const worthIt = taken.filter((a) => a.kiB >= diagnosis.memory.totalKiB / 200).slice(0, shownAtMost);
  const sum = (parts: readonly { kiB: number }[]): number => parts.reduce((total, part) => total + part.kiB, 0);
  const restKiB = sum(taken) - sum(worthIt);
  const segments = worthIt.map((a, i) => ({
    name: memoryWords(a.class),
    kiB: a.kiB,
    fill: fills[i] ?? fills[0],
    letter: 'ABCDE'[i] ?? '',
  }));
  const freeKiB = sum(diagnosis.accounting.filter((a) => isFree(a.class)));
  return [
    ...segments,
    ...(restKiB > 0 ? [{ name: 'everything else', kiB: restKiB, fill: fills[5], letter: '…' }] : []),
    { name: 'free', kiB: freeKiB, fill: freeFill, letter: '' },
  ];
}

const shareText = (kiB: number, totalKiB: number): string => {
  const percent = percentOf(kiB, totalKiB);
  return percent === 0 && kiB > 0 ? '<1 %' : `${percent} %`;
};

function lookPicture(record: RequestRecord, diagnosis: Diagnosis): Picture {
  const { totalKiB } = diagnosis.memory;
  const segments = segmentsOf(diagnosis);
  const title = `Where the ${sizeText(totalKiB)} of ${record.host} are`;
  const rowHeight = 50;
  const legendTop = 100 + barHeight + 28;
  const rows = segments.flatMap((segment, i) => {
    const y = legendTop + i * rowHeight;
    return [
      swatch(margin, y, segment),
      words(margin + 50, y + 27, cut(segment.name, 24), { size: 27 }),
      words(width - margin - 108, y + 27, sizeText(segment.kiB), { size: 27, anchor: 'end', bold: true }),
      words(width - margin, y + 27, shareText(segment.kiB, totalKiB), { size: 25, fill: soft, anchor: 'end' }),
    ];
  });
  const plan = record.plan === null ? '' : plannedText(record.plan.steps);
  const bottom = legendTop + segments.length * rowHeight;
  const svg = sheet(bottom + (plan === '' ? 14 : 54), [
    words(margin, 58, cut(title, 44), { size: 31, bold: true }),
    bar(88, segments, totalKiB),
    ...rows,
    ...(plan === '' ? [] : [words(margin, bottom + 26, plan, { size: 25, fill: soft })]),
  ]);
  const said = segments.map((s) => `${s.name} ${sizeText(s.kiB)} (${shareText(s.kiB, totalKiB)})`).join(', ');
  return {
    filename: `reclaim-${safe(record.id)}-memory.png`,
    title,
    altText: cut(`Stacked bar. ${title}: ${said}.${plan === '' ? '' : ` ${plan}.`}`, altChars),
    svg,
  };
}

function plannedText(steps: NonNullable<RequestRecord['plan']>['steps']): string {
  const range = steps.reduce(
    (sum, s) => ({ low: sum.low + s.expectedFreeKiB.low, high: sum.high + s.expectedFreeKiB.high }),
    { low: 0, high: 0 },
  );
  return range.high <= 0 ? '' : `The plan would move ${rangeText(range)} to free`;
}

/** What nobody else can have, what is cache the kernel gives to whoever asks, what is free: these sum to the total. */
function stateOf({ totalKiB, freeKiB, availableKiB }: Memory): Segment[] {
  const available = Math.min(totalKiB, Math.max(0, availableKiB));
  const free = Math.min(available, Math.max(0, freeKiB));
  return [
    { name: 'not available', kiB: totalKiB - available, fill: fills[0], letter: 'A' },
    { name: 'cache, available to all', kiB: available - free, fill: fills[1], letter: 'B' },
    { name: 'free', kiB: free, fill: freeFill, letter: '' },
  ];
}

function resultPicture(record: RequestRecord, { before, after }: RunReport): Picture {
  const title = `${record.host}: memory before and after`;
  const was = stateOf(before);
  const is = stateOf(after);
  const rowHeight = 52;
  const legendTop = 420;
  const columnsAt = [width - margin - 158, width - margin] as const;
  const rows = is.flatMap((segment, i) => {
    const y = legendTop + i * rowHeight;
    return [
      swatch(margin, y, segment),
      words(margin + 50, y + 27, segment.name, { size: 27 }),
      words(columnsAt[0], y + 27, sizeText(was[i]?.kiB ?? 0), { size: 27, fill: soft, anchor: 'end' }),
      words(columnsAt[1], y + 27, sizeText(segment.kiB), { size: 27, anchor: 'end', bold: true }),
    ];
  });
  const barTitle = (y: number, label: string, memory: Memory): string =>
    words(margin, y, label, { size: 28, bold: true }) +
    words(width - margin, y, `used ${freeSize(memory.usedKiB)}, available ${freeSize(memory.availableKiB)}`, {
      size: 26,
      fill: soft,
      anchor: 'end',
    });
  const svg = sheet(legendTop + is.length * rowHeight + 14, [
    words(margin, 58, cut(title, 44), { size: 31, bold: true }),
    barTitle(112, 'before', before),
    bar(126, was, before.totalKiB),
    barTitle(250, 'after', after),
    bar(264, is, after.totalKiB),
    words(columnsAt[0], legendTop - 26, 'before', { size: 25, fill: soft, anchor: 'end' }),
    words(columnsAt[1], legendTop - 26, 'after', { size: 25, fill: soft, anchor: 'end' }),
    ...rows,
  ]);
  const said = is.map((s, i) => `${s.name} before ${sizeText(was[i]?.kiB ?? 0)}, after ${sizeText(s.kiB)}`).join('; ');
  return {
    filename: `reclaim-${safe(record.id)}-before-after.png`,
    title,
    altText: cut(`Two stacked bars. ${title}, of ${sizeText(after.totalKiB)}: ${said}.`, altChars),
    svg,
  };
}

const safe = (text: string): string => text.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 60);

/** Null when there is nothing to draw: no look yet, or figures that make no sense. */
export function pictureOf(record: RequestRecord): Picture | null {
  const report = record.run?.report;
  if (report !== undefined && record.state !== 'running') {
    const drawn = report.before.totalKiB > 0 && report.after.totalKiB > 0;
    // A run that changed nothing has no before and after; the picture of the look is in the thread already.
    const acted = report.steps.some((s) => s.state === 'done' || s.state === 'failed' || s.state === 'unknown');
    return drawn && acted ? resultPicture(record, report) : null;
  }
  const { diagnosis } = record;
  return diagnosis === undefined || diagnosis.memory.totalKiB <= 0 ? null : lookPicture(record, diagnosis);
}
