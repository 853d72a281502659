/** A sweep of the fleet: one message that fills as hosts answer, and the whole table as a file in its thread. Pure. */
import type { Sweep, SweepRow } from '../../alerts/topics.ts';
import { percentOf, sizeText } from '../../memory/sizes.ts';
import { columns, cut, duration, limits, mrkdwn, oneLine, plural, type Piece } from '../text.ts';
import { context, fit, header, rich, type Message } from './elements.ts';
import type { Rendered } from './render.ts';

const somethingShown = 25;
const shortShown = 15;
const missingShown = 30;

const bytesWord = (row: SweepRow): string =>
  row.memory === undefined ? '' : `${sizeText(row.memory.availableKiB)} of ${sizeText(row.memory.totalKiB)}`;
const shareWord = (row: SweepRow): string =>
  row.memory === undefined ? '' : `${percentOf(row.memory.availableKiB, row.memory.totalKiB)}%`;

function tableOf(rows: readonly SweepRow[]): string {
  const cells = rows.map((row) => [
    cut(oneLine(row.host), 40),
    bytesWord(row),
    shareWord(row),
    row.reclaimableKiB === undefined ? '' : sizeText(row.reclaimableKiB),
    cut(oneLine(row.text), 70),
  ]);
  return columns(
    [['HOST', 'AVAILABLE', '', 'GIVES BACK', 'WHAT'], ...cells],
    ['left', 'right', 'right', 'right', 'left'],
  );
}

const share = (row: SweepRow): number =>
  row.memory === undefined ? 1 : row.memory.availableKiB / Math.max(1, row.memory.totalKiB);

interface Sorted {
  readonly something: SweepRow[];
  readonly missing: SweepRow[];
  readonly fine: SweepRow[];
}

function sorted(rows: readonly SweepRow[]): Sorted {
  const gives = (row: SweepRow) => row.reclaimableKiB ?? 0;
  return {
    something: rows
      .filter((r) => r.outcome === 'something' || r.outcome === 'busy')
      .sort((a, b) => gives(b) - gives(a)),
    missing: rows.filter((r) => r.outcome === 'unreachable' || r.outcome === 'unseen'),
    fine: rows.filter((r) => r.outcome === 'fine').sort((a, b) => share(a) - share(b)),
  };
}

function summary(sweep: Sweep, rows: readonly SweepRow[]): string {
  const { something, missing, fine } = sorted(rows);
  const open = sweep.hosts.length - rows.length;
  const parts = [
    `${rows.length} of ${sweep.hosts.length} answered`,
    `${something.length} with something to do`,
    `${fine.length} with nothing`,
    ...(missing.length === 0 ? [] : [`${missing.length} unreachable`]),
    ...(open === 0 ? [] : [`${open} still to come`]),
  ];
  return parts.join(' · ');
}

export function sweepMessage(sweep: Sweep, rows: readonly SweepRow[]): Message {
  const { something, missing, fine } = sorted(rows);
  const { endedAt } = sweep;
  const done = endedAt !== undefined;
  const head = `Sweep of ${cut(oneLine(sweep.asked), 60)}: ${done ? 'done' : 'looking'}`;
  const took = done ? `, ${duration(Date.parse(endedAt) - Date.parse(sweep.createdAt))}` : '';
  const short = fine.slice(0, shortShown);
  const lines: Piece[] = [{ bold: `${summary(sweep, rows)}${took}` }];
  const blocks = fit([
    { block: header(head) },
    { block: rich([{ line: lines }]) },
    ...(something.length === 0
      ? []
      : [
          {
            block: rich([
              {
                line: [
                  { bold: 'Something to do' },
                  something.length > somethingShown ? `, the largest ${somethingShown} of ${something.length}` : '',
                ],
              },
              { pre: tableOf(something.slice(0, somethingShown)) },
            ]),
          },
        ]),
    ...(missing.length === 0
      ? []
      : [
          {
            block: rich([
              { line: [{ bold: 'Not seen' }] },
              {
                list: missing
                  .slice(0, missingShown)
                  .map((r): Piece[] => [{ bold: r.host }, `: ${cut(oneLine(r.text), 140)}`]),
              },
              ...(missing.length > missingShown ? [{ line: [`and ${missing.length - missingShown} more`] }] : []),
            ]),
          },
        ]),
    ...(short.length === 0
      ? []
      : [
          {
            block: rich([
              {
                line: [
                  { bold: 'Nothing to do' },
                  fine.length > short.length ? `, the ${short.length} with the least available of ${fine.length}` : '',
                ],
              },
              { pre: tableOf(short) },
            ]),
            optional: true,
          },
        ]),
    {
      block: context([
        'Asked for by ',
        { who: sweep.requester.id },
        ' ',
        { at: sweep.createdAt, style: 'day_time' },
        ` · ${sweep.id}`,
      ]),
    },
  ]);
  const names = something
    .slice(0, 10)
    .map((r) => r.host)
    .join(', ');
  return {
    text: mrkdwn(
      [`${head}. ${summary(sweep, rows)}${took}.${names === '' ? '' : ` Something to do: ${names}.`}`],
      limits.fallbackChars,
    ),
    blocks,
  };
}

/** Every host with every word, once all have answered and the message could not hold them. */
export function sweepFile(sweep: Sweep, rows: readonly SweepRow[]): Rendered {
  const { something, missing, fine } = sorted(rows);
  if (sweep.endedAt === undefined || rows.length <= shortShown) return { kind: 'nothing' };
  const all = [...something, ...missing, ...fine];
  return {
    kind: 'file',
    file: {
      filename: `reclaim-sweep-${sweep.id}.txt`,
      title: cut(`Sweep of ${oneLine(sweep.asked)}`, 100),
      content: `${summary(sweep, rows)}\n\n${tableOf(all)}\n`,
      comment: mrkdwn([`All ${plural(rows.length, 'host')}.`]),
    },
  };
}
