/** The Home tab: every box with its last known state, the open requests, the last reclaim. Pure. */
import type { HomeView, KnownBlock } from '@slack/types';
import type { Incident } from '../alerts/topics.ts';
import type { Sample } from '../alerts/watch/sample.ts';
import { percentOf, sizeText } from '../memory/sizes.ts';
import type { RequestRecord } from '../requests/types.ts';
import { actions, button, context, header, sentence } from './blocks/elements.ts';
import { incidentWords } from './blocks/incident.ts';
import { stateWords, verdictWords } from './blocks/words.ts';
import type { Piece } from './text.ts';

export const homeActionIds = {
  refresh: 'reclaim_home_refresh',
  next: 'reclaim_home_next',
  previous: 'reclaim_home_previous',
} as const;

export interface HomeFacts {
  /** From 0; beyond the last page the last one is shown. */
  readonly page?: number;
  readonly hosts: readonly string[];
  /** Newest first, any host. */
  readonly records: readonly RequestRecord[];
  /** The last day of readings by host, oldest first, of the boxes of this page; empty where nothing is watched. */
  readonly days?: ReadonlyMap<string, readonly Sample[]>;
  /** Those that are not over. */
  readonly incidents?: readonly Incident[];
  /** What is wrong with this deployment, in sentences. */
  readonly notices?: readonly string[];
}

/** Below Slack's 100 blocks per view, with room for the headings. */
const hostsShown = 40;
const barChars = 20;

function usageBar(record: RequestRecord): string {
  const memory = record.run?.report?.after ?? record.diagnosis?.memory;
  if (memory === undefined) return '';
  const taken = memory.totalKiB - memory.availableKiB;
  const filled = Math.min(barChars, Math.round((percentOf(taken, memory.totalKiB) / 100) * barChars));
  return `[${'#'.repeat(filled)}${'-'.repeat(barChars - filled)}] ${sizeText(memory.availableKiB)} of ${sizeText(memory.totalKiB)} available`;
}

const levels = '▁▂▃▄▅▆▇█';
const trendChars = 24;
const dayMs = 86_400_000;

/** Share taken, hour by hour up to the newest reading, with the extremes in words: nothing hangs on the signs. */
function trendLine(day: readonly Sample[]): Piece[][] {
  const newest = day.at(-1);
  if (newest === undefined || day.length < 2) return [];
  const taken = (s: Sample): number => percentOf(s.totalKiB - s.availableKiB, s.totalKiB);
  const hours = Array.from({ length: trendChars }, (): number[] => []);
  for (const sample of day) {
    const age = Math.floor(((newest.at - sample.at) / dayMs) * trendChars);
    hours[trendChars - 1 - age]?.push(taken(sample));
  }
  const signs = hours.map((shares) =>
    // The worst moment of an hour is what somebody felt.
    shares.length === 0 ? '·' : (levels[Math.min(7, Math.floor((Math.max(...shares) / 100) * 8))] ?? '·'),
  );
  const least = day.reduce((a, b) => (b.availableKiB < a.availableKiB ? b : a), newest);
  return [
    [
      `Taken, last 24 h: ${signs.join('')} least available ${sizeText(least.availableKiB)} `,
      { at: new Date(least.at).toISOString(), style: 'day_time' },
      `, now ${sizeText(newest.availableKiB)} of ${sizeText(newest.totalKiB)}`,
    ],
  ];
}

function hostBlocks(host: string, { records, days, incidents }: HomeFacts): KnownBlock[] {
  const mine = records.filter((r) => r.host === host);
  const seen = mine.find((r) => r.diagnosis !== undefined);
  const open = mine.find((r) => ['draft', 'pending', 'approved', 'running'].includes(r.state));
  const last = mine.find((r) => r.run?.report !== undefined);
  const lines: Piece[][] = [];
  if (seen?.diagnosis === undefined) lines.push(['Never looked at.']);
  else {
    // After a run the figures are those measured at its end, and the verdict of the look before it is history.
    const isMeasured = seen.run?.report !== undefined;
    lines.push([
      `${usageBar(seen)}, ${isMeasured ? 'measured after a reclaim' : verdictWords[seen.diagnosis.verdict]}, as of `,
      { at: isMeasured ? seen.updatedAt : (seen.lookedAt ?? seen.updatedAt), style: 'day_time' },
    ]);
  }
  lines.push(...trendLine(days?.get(host) ?? []));
  for (const incident of incidents?.filter((each) => each.host === host) ?? []) {
    const request = mine.find((r) => r.id === incident.request) ?? null;
    lines.push([
      { bold: 'Incident: ' },
      `${incidentWords(incident, request)}, since `,
      { at: incident.createdAt, style: 'day_time' },
    ]);
  }
  if (open !== undefined)
    lines.push([{ bold: 'Open request: ' }, `${stateWords(open)}, asked for by `, { who: open.requester.id }]);
  if (last?.run?.report !== undefined) {
    const { before, after } = last.run.report;
    lines.push([
      'Last reclaim ',
      { at: last.updatedAt, style: 'day_time' },
      `: used before ${sizeText(before.usedKiB)}, after ${sizeText(after.usedKiB)}`,
    ]);
  }
  return [sentence({ bold: host }), context(...lines)];
}

/** The hosts of one page; `asked` beyond the last page is the last. */
export function pageOf(hosts: readonly string[], asked: number) {
  const pages = Math.max(1, Math.ceil(hosts.length / hostsShown));
  const page = Math.min(pages - 1, Math.max(0, asked));
  return { page, pages, hosts: hosts.slice(page * hostsShown, (page + 1) * hostsShown) };
}

export function homeView(facts: HomeFacts): HomeView {
  const blocks: KnownBlock[] = (facts.notices ?? []).map((text) => sentence({ bold: 'Attention: ' }, text));
  blocks.push(header('Boxes'));
  if (facts.hosts.length === 0) blocks.push(sentence('No hosts are configured yet.'));
  const { page, pages, hosts: shown } = pageOf(facts.hosts, facts.page ?? 0);
  for (const host of shown) blocks.push(...hostBlocks(host, facts));
  if (pages > 1) blocks.push(context([`Page ${page + 1} of ${pages}, ${facts.hosts.length} boxes in all.`]));
  const turn = (label: string, action: string, to: number) => button({ label, action, value: String(to) });
  blocks.push(
    actions('home', [
      ...(page > 0 ? [turn('Previous page', homeActionIds.previous, page - 1)] : []),
      ...(page < pages - 1 ? [turn('Next page', homeActionIds.next, page + 1)] : []),
      turn('Refresh', homeActionIds.refresh, page),
    ]),
  );
  blocks.push(context(['Look at a box with /reclaim HOST in a channel I am in.']));
  return { type: 'home', blocks };
}
