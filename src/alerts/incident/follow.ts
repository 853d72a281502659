/** How an incident follows the request in its thread: diagnosed, being reclaimed, and how that ended. Pure. */
import type { Diagnosis } from '../../memory/contract.ts';
import { percentOf, sizeText } from '../../memory/sizes.ts';
import type { RequestRecord } from '../../requests/types.ts';
import type { Figure, Incident } from '../topics.ts';
import { figureText, type IncidentMove, type IncidentSettings, isOver, moved, shareOf } from './state.ts';

export interface Seen {
  readonly settings: IncidentSettings;
  readonly nowMs: number;
  /** The smallest share available that the watcher read in the last half hour; null when it did not look. */
  readonly lowestShare: number | null;
}

/** With this much available nobody is short of memory, whatever fired. */
const plentyShare = 25;

/** Null while nothing about the request changed. */
export function follow(incident: Incident, request: RequestRecord, seen: Seen): IncidentMove | null {
  if (incident.state === 'closed') return null;
  if (incident.request === request.id && incident.requestState === request.state) return null;
  const patch = { ...patchFor(incident, request, seen), request: request.id, requestState: request.state };
  const ended = request.run !== undefined && ['succeeded', 'failed', 'unknown'].includes(request.state);
  const end = ended && patch.state === 'recovered';
  return { topic: moved(incident, seen.nowMs, patch), deliver: end ? ['incident', 'incident_end'] : ['incident'] };
}

function patchFor(incident: Incident, request: RequestRecord, seen: Seen): Partial<Incident> {
  switch (request.state) {
    case 'draft':
      return isOver(incident.state) ? {} : { state: 'open', reason: `Looking at ${incident.host}.` };
    case 'pending':
      return diagnosed(incident, request, seen, 'The plan in this thread waits for approval.');
    case 'approved':
    case 'running':
      return { state: 'reclaiming', reason: 'People approved the plan in this thread; it runs.' };
    case 'succeeded':
    case 'failed':
    case 'unknown':
      if (request.run !== undefined) return ended(request, seen);
      if (request.state === 'succeeded') return diagnosed(incident, request, seen, '');
      return isOver(incident.state) ? {} : { reason: request.reason };
    default: {
      const reason = `${request.reason} Look again for a new plan.`;
      return isOver(incident.state) && incident.state !== 'reclaiming' ? {} : { state: 'diagnosed', reason };
    }
  }
}

const figureOf = (diagnosis: Diagnosis, at: string): Figure => ({
  at,
  availableKiB: diagnosis.memory.availableKiB,
  totalKiB: diagnosis.memory.totalKiB,
});

function diagnosed(incident: Incident, request: RequestRecord, seen: Seen, then: string): Partial<Incident> {
  const { diagnosis } = request;
  if (diagnosis === undefined) return {};
  const now = figureOf(diagnosis, request.lookedAt ?? request.updatedAt);
  const wrong = ruleWrong(incident, diagnosis, seen);
  const found = { now, ...(wrong === null ? {} : { ruleWrong: wrong }) };
  if (isOver(incident.state)) return found;
  return { ...found, state: 'diagnosed', reason: `${diagnosis.headline}${then === '' ? '' : ` ${then}`}` };
}

/** Why nothing is wrong although something fired; null when the box is short, or when we fired ourselves. */
export function ruleWrong(incident: Incident, diagnosis: Diagnosis, seen: Pick<Seen, 'lowestShare'>): string | null {
  const { availableKiB, totalKiB, buffCacheKiB, sharedKiB } = diagnosis.memory;
  if (incident.source === 'watch' || totalKiB === 0 || shareOf({ availableKiB, totalKiB }) < plentyShare) return null;
  const plenty = `${percentOf(availableKiB, totalKiB)} % is available (${sizeText(availableKiB)} of ${sizeText(totalKiB)})`;
  if (seen.lowestShare !== null && seen.lowestShare < plentyShare) {
    return `It is over by itself: ${plenty} now, after ${Math.round(seen.lowestShare)} % a while ago.`;
  }
  if (/\boom|out of memory/i.test(incident.title.replace(/([a-z])([A-Z])/g, '$1 $2'))) {
    return `${plenty} now. The kernel may have ended something before; the details are in this thread.`;
  }
  const cacheKiB = Math.max(0, buffCacheKiB - sharedKiB);
  const cache =
    cacheKiB > totalKiB * 0.2
      ? ` It probably counts ${sizeText(cacheKiB)} of cache as used, which programs get when they ask.`
      : '';
  return `The alert rule was wrong: ${plenty}.${cache}`;
}

function ended(request: RequestRecord, { settings, nowMs }: Seen): Partial<Incident> {
  const report = request.run?.report;
  const at = new Date(nowMs).toISOString();
  if (report === undefined) return { state: 'diagnosed', reason: request.reason };
  const before: Figure = { at, availableKiB: report.before.availableKiB, totalKiB: report.before.totalKiB };
  const after: Figure = { at, availableKiB: report.after.availableKiB, totalKiB: report.after.totalKiB };
  const reclaim = { request: request.id, at, before, after };
  const base = { now: after, checks: [], reclaim };
  const gained = Math.max(0, after.availableKiB - before.availableKiB);
  if (request.state === 'succeeded' && shareOf(after) >= settings.recoverAbove) {
    const reason = `Reclaimed: ${sizeText(gained)} more is available, ${figureText(after)}.`;
    return { ...base, state: 'recovered', reason, endedAt: at };
  }
  const reason =
    request.state === 'succeeded'
      ? `Reclaimed ${sizeText(gained)}, but the box is still short: ${figureText(after)}.`
      : `${request.reason} ${figureText(after)}.`;
  return { ...base, state: 'diagnosed', reason };
}
