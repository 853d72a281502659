/** The private answers that list things: help, hosts, status, history. Our own words and figures; host text is escaped. */
import type { Deps } from '../deps.ts';
import { openStates, endedStates } from './states.ts';
import { sizeText } from '../memory/sizes.ts';
import type { RequestRecord } from '../requests/types.ts';
import { stateWords, verdictWords } from './blocks/words.ts';
import { linked, linkToCard, type Surface } from './surface.ts';
import { cut, escapeMrkdwn, mrkdwn, oneLine } from './text.ts';

const listedAtMost = 30;

export function helpText(): string {
  return [
    '*Reclaim* gives a box its memory back: it looks, says what holds the memory, proposes an exact plan, and acts only on what people approve.',
    '`/reclaim HOST` (or several): look at a box and propose a plan',
    '`/reclaim all` or `/reclaim @group`: look at many boxes, with one summary and a plan where there is something to do',
    '`/reclaim status`: open requests',
    '`/reclaim hosts`: the boxes I know',
    '`/reclaim history` or `/reclaim history HOST`: what was done before',
    '`/reclaim cancel HOST`: take your open request back',
    '`/reclaim silence HOST 8h`: count alerts of a box, but post none for so long (`off` ends it)',
    '`/reclaim help`: this',
  ].join('\n');
}

export async function hostsText({ config, store }: Deps): Promise<string> {
  const hosts = [...config.hosts.values()];
  if (hosts.length === 0) return 'No hosts are configured. Add one under `hosts` in reclaim.yaml.';
  const lines = await Promise.all(
    hosts.slice(0, listedAtMost).map(async (host) => {
      const [last] = await store.list({ host: host.name, limit: 1 });
      const also = host.aliases.length === 0 ? '' : ` (also ${host.aliases.join(', ')})`;
      const groups = host.groups.length === 0 ? '' : ` ${host.groups.map((g) => `@${g}`).join(' ')}`;
      const state = last === undefined ? 'never looked at' : lastLook(last);
      return `• ${mrkdwn([{ bold: host.name }, `${also}${groups}: ${state}`])}`;
    }),
  );
  if (hosts.length > listedAtMost) lines.push(`and ${hosts.length - listedAtMost} more`);
  return lines.join('\n');
}

/** Verdict and figures of a record in a few words. */
export function lastLook(record: RequestRecord): string {
  if (record.diagnosis === undefined) return stateWords(record);
  const { availableKiB, totalKiB } = record.run?.report?.after ?? record.diagnosis.memory;
  return `${sizeText(availableKiB)} of ${sizeText(totalKiB)} available, ${verdictWords[record.diagnosis.verdict]}, ${stateWords(record)}`;
}

export async function statusText(surface: Surface): Promise<string> {
  const open = await surface.deps.store.list({ states: openStates, limit: listedAtMost });
  if (open.length === 0) return 'No request is open.';
  const lines = await Promise.all(
    open.map(async (record) => {
      const link = linked(await linkToCard(surface, record), 'card');
      return `• ${mrkdwn([{ bold: record.host }, `: ${stateWords(record)}, asked for by `, { who: record.requester.id }])} ${link}`;
    }),
  );
  return lines.join('\n');
}

export async function historyText({ store }: Deps, host: string | null): Promise<string> {
  const ended = await store.list({ states: endedStates, limit: 10, ...(host === null ? {} : { host }) });
  if (ended.length === 0)
    return host === null ? 'Nothing was done yet.' : `Nothing was done on ${escapeMrkdwn(host)} yet.`;
  return ended
    .map((record) => {
      const report = record.run?.report;
      const gain =
        report === undefined
          ? ''
          : `: used before ${sizeText(report.before.usedKiB)}, after ${sizeText(report.after.usedKiB)}`;
      return `• ${mrkdwn([{ at: record.updatedAt, style: 'day_time' }, ' ', { bold: record.host }, ` ${stateWords(record)}${gain}, asked for by `, { who: record.requester.id }, ` · ${cut(oneLine(record.id), 40)}`])}`;
    })
    .join('\n');
}
