/** Silences: alerts of a host are counted, not posted, until a time, and everybody sees who said so. */
import { ReclaimError } from '../errors.ts';
import { silenced } from './incident/state.ts';
import type { IncidentParts } from './incidents.ts';
import { attemptsAtMost, changeTopic, inSlot, liveTopics, newTopicId, tooBusy } from './topic-changes.ts';
import type { Silence } from './topics.ts';

export const longestSilenceMs = 7 * 86_400_000;

const iso = (ms: number): string => new Date(ms).toISOString();

/** `8h`, `90m`, `2d` -> milliseconds. @throws ReclaimError usage */
export function silenceMs(text: string): number {
  const match = /^(\d{1,6})(m|min|h|d)$/i.exec(text.trim());
  const unit = { m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 }[match?.[2]?.toLowerCase() ?? ''];
  const ms = Number(match?.[1] ?? 0) * (unit ?? 0);
  if (ms > 0 && ms <= longestSilenceMs) return ms;
  const shown = Array.from(text).slice(0, 20).join('');
  throw new ReclaimError(
    'usage',
    `"${shown}" is no time to be silent for: write 1h, 8h or 24h, and 7d at most. Nothing was changed.`,
  );
}

/** The silence of a host that is in force now. */
export async function silenceOf({ store, clock }: IncidentParts, host: string): Promise<Silence | null> {
  const silence = await inSlot(store.topics, 'silence', host);
  return silence !== null && Date.parse(silence.until) > clock.now() ? silence : null;
}

/** Begins a silence, or replaces the one there is. */
export async function beginSilence(
  parts: IncidentParts,
  { host, by, forMs }: { host: string; by: string; forMs: number },
): Promise<Silence> {
  const { topics } = parts.store;
  for (let n = 0; n < attemptsAtMost; n += 1) {
    const nowMs = parts.clock.now();
    const said = { until: iso(nowMs + forMs), by, updatedAt: iso(nowMs) };
    const there = await inSlot(topics, 'silence', host);
    const topic: Silence =
      there === null
        ? {
            ...{ kind: 'silence', id: newTopicId('q'), version: 1, slot: `silence.${host}`, channel: null, host },
            createdAt: iso(nowMs),
            ...said,
          }
        : { ...there, ...said, version: there.version + 1 };
    const written = there === null ? await topics.create({ topic }) : await topics.update({ topic });
    if (!written.ok) continue;
    await told(parts, topic, by, 'silenced', `Alerts of ${host} are silent until ${topic.until}.`);
    return topic;
  }
  throw tooBusy();
}

/** @throws ReclaimError request_closed when there is none */
export async function endSilence(parts: IncidentParts, host: string, by: string): Promise<void> {
  const silence = await silenceOf(parts, host);
  if (silence === null) {
    throw new ReclaimError('request_closed', `Alerts of ${host} are not silent, so nothing was changed.`);
  }
  await lift(parts, silence);
  await told(parts, silence, by, 'silence_ended', `Alerts of ${host} are posted again.`);
}

async function lift(parts: IncidentParts, silence: Silence): Promise<void> {
  const at = iso(parts.clock.now());
  await changeTopic(parts.store.topics, 'silence', silence.id, (current) =>
    current.slot === null
      ? null
      : { topic: { ...current, slot: null, until: at, updatedAt: at, version: current.version + 1 }, deliver: [] },
  );
  await showOn(parts, silence.host, undefined);
}

async function showOn(parts: IncidentParts, host: string, silence: Silence | undefined): Promise<void> {
  const { topics } = parts.store;
  const live = await inSlot(topics, 'incident', host);
  if (live === null) return;
  const shown = silence === undefined ? undefined : { until: silence.until, by: silence.by };
  await changeTopic(topics, 'incident', live.id, (current) => silenced(current, shown, parts.clock.now()));
}

async function told(parts: IncidentParts, silence: Silence, who: string, what: string, why: string): Promise<void> {
  const event = { at: iso(parts.clock.now()), request: silence.id, host: silence.host, who, what, why };
  await parts.store.appendEvents([{ ...event, surface: 'slack' }]);
  if (what === 'silenced') await showOn(parts, silence.host, silence);
}

/** Ends what ran out. */
export async function endDueSilences(parts: IncidentParts): Promise<void> {
  for (const silence of await liveTopics(parts.store.topics, 'silence')) {
    if (Date.parse(silence.until) <= parts.clock.now()) await lift(parts, silence);
  }
}
