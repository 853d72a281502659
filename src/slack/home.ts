/** The Home tab: every box with its last known state, the open requests, the last reclaim. Pure. */
import type { HomeView, KnownBlock } from '@slack/types';
import { percentOf, sizeText } from '../memory/sizes.ts';
import type { RequestRecord } from '../requests/types.ts';
import { context, header, sentence } from './blocks/elements.ts';
import { stateWords, verdictWords } from './blocks/words.ts';
import type { Piece } from './text.ts';

export interface HomeFacts {
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
  for (const host of facts.hosts.slice(0, hostsShown)) blocks.push(...hostBlocks(host, facts.records));
  const more = facts.hosts.length - hostsShown;
  if (more > 0) blocks.push(context([`and ${more} more: /reclaim hosts`]));
  blocks.push(context(['Look at a box with /reclaim HOST in a channel I am in.']));
  return { type: 'home', blocks };
}
