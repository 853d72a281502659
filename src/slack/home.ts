/** The Home tab: every box with its last known state, the open requests, the last reclaim. Pure. */
import type { HomeView, KnownBlock } from '@slack/types';
import { percentOf, sizeText } from '../memory/sizes.ts';
import type { RequestRecord } from '../requests/types.ts';
import { actions, button, context, header, sentence } from './blocks/elements.ts';
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

function hostBlocks(host: string, records: readonly RequestRecord[]): KnownBlock[] {
  const mine = records.filter((r) => r.host === host);
  const seen = mine.find((r) => r.diagnosis !== undefined);
  const open = mine.find((r) => ['draft', 'pending', 'approved', 'running'].includes(r.state));
  const last = mine.find((r) => r.run?.report !== undefined);
  const lines: Piece[][] = [];
  if (seen?.diagnosis === undefined) lines.push(['Never looked at.']);
  else {
    lines.push([
      `${usageBar(seen)}, ${verdictWords[seen.diagnosis.verdict]}, as of `,
      { at: seen.run?.report === undefined ? (seen.lookedAt ?? seen.updatedAt) : seen.updatedAt, style: 'day_time' },
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

export function homeView(facts: HomeFacts): HomeView {
  const blocks: KnownBlock[] = (facts.notices ?? []).map((text) => sentence({ bold: 'Attention: ' }, text));
  blocks.push(header('Boxes'));
  if (facts.hosts.length === 0) blocks.push(sentence('No hosts are configured yet.'));
  const pages = Math.max(1, Math.ceil(facts.hosts.length / hostsShown));
  const page = Math.min(pages - 1, Math.max(0, facts.page ?? 0));
  const shown = facts.hosts.slice(page * hostsShown, (page + 1) * hostsShown);
  for (const host of shown) blocks.push(...hostBlocks(host, facts.records));
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
