/**
 * The life of an incident, pure: what an alert, its repeat, its end, a request in its thread, a measurement or the clock
 * does to it. Each function answers the next record with the views to show again, or null when nothing changes.
 */
import { percentOf, sizeText } from '../../memory/sizes.ts';
import type { Alert } from '../parsers/alert.ts';
import type { Figure, Incident, IncidentState, TopicView } from '../topics.ts';

/** state -> where it may go. Closed is final: what fires then is a new incident. */
export const incidentMoves = {
  open: ['diagnosed', 'reclaiming', 'recovered', 'resolved', 'closed'],
  diagnosed: ['open', 'reclaiming', 'recovered', 'resolved', 'closed'],
  reclaiming: ['open', 'diagnosed', 'recovered', 'resolved', 'closed'],
  recovered: ['open', 'reclaiming', 'closed'],
  resolved: ['open', 'reclaiming', 'recovered', 'closed'],
  closed: [],
} as const satisfies Record<IncidentState, readonly IncidentState[]>;

export const isOver = (state: IncidentState): boolean =>
  state === 'recovered' || state === 'resolved' || state === 'closed';

/** From alerts.watch, or its defaults where nothing is watched. Shares in per cent of all memory. */
export interface IncidentSettings {
  readonly availableBelow: number;
  readonly recoverAbove: number;
  readonly reopenWithinMs: number;
  /** Measured again so long after a reclaim. */
  readonly measureAgainMinutes: readonly number[];
}

export interface IncidentMove {
  readonly topic: Incident;
  readonly deliver: readonly TopicView[];
}

const fingerprintsAtMost = 50;
const toldAtMost = 20;
/** After a reclaim a sender may repeat what it saw before; only what fires later than this is news. */
const staleRepeatMs = 10 * 60_000;
/** An alert nobody repeats or ends for so long is given up. */
const forgottenMs = 24 * 3_600_000;
/** For a job that is late. */
const lateMs = 2 * 60_000;

export const shareOf = (figure: Pick<Figure, 'availableKiB' | 'totalKiB'>): number =>
  figure.totalKiB === 0 ? 0 : (figure.availableKiB / figure.totalKiB) * 100;

export const minutesText = (minutes: number): string =>
  minutes < 1 ? `${Math.round(minutes * 60)} s` : `${Math.round(minutes)} min`;

export const figureText = (figure: Pick<Figure, 'availableKiB' | 'totalKiB'>): string =>
  `${sizeText(figure.availableKiB)} of ${sizeText(figure.totalKiB)} available (${percentOf(figure.availableKiB, figure.totalKiB)} %)`;

const iso = (ms: number): string => new Date(ms).toISOString();

export interface Told {
  readonly channel: string;
  readonly ts: string;
}

/** Where, when and under what circumstances an alert came in. */
export interface Arrival {
  readonly nowMs: number;
  readonly told?: Told;
  readonly silence?: { readonly until: string; readonly by: string };
  /** Such as: the sender cut off more alerts of this group. */
  readonly note?: string;
  /** How the readings of the watcher came to this. */
  readonly trend?: string;
}

export type Fired = Pick<Alert, 'fingerprint' | 'title' | 'source'>;

export function openIncident(id: string, host: string, channel: string, alert: Fired, arrival: Arrival): IncidentMove {
  const at = iso(arrival.nowMs);
  const topic: Incident = {
    kind: 'incident',
    id,
    version: 1,
    slot: `incident.${host}`,
    channel,
    createdAt: at,
    updatedAt: at,
    host,
    state: 'open',
    reason: `Looking at ${host}.`,
    title: alert.title,
    source: alert.source,
    count: 1,
    lastFiredAt: at,
    firing: [alert.fingerprint],
    told: arrival.told === undefined ? [] : [{ ...arrival.told, fingerprint: alert.fingerprint }],
    ...(arrival.note === undefined ? {} : { note: arrival.note }),
    ...(arrival.trend === undefined ? {} : { trend: arrival.trend }),
    reopened: 0,
    checks: [],
  };
  return { topic, deliver: ['incident'] };
}

function next(incident: Incident, nowMs: number, patch: Partial<Incident>): Incident {
  const to = patch.state;
  const allowed: readonly IncidentState[] = incidentMoves[incident.state];
  if (to !== undefined && to !== incident.state && !allowed.includes(to)) {
    throw new Error(`incident ${incident.id}: no way from ${incident.state} to ${to}`);
  }
  return { ...incident, ...patch, version: incident.version + 1, updatedAt: iso(nowMs) };
}

const without = (incident: Incident, ...keys: readonly (keyof Incident)[]): Incident => {
  const copy = { ...incident };
  for (const key of keys) Reflect.deleteProperty(copy, key);
  return copy;
};

const added = <T>(list: readonly T[], item: T, same: (a: T) => boolean, most: number): T[] =>
  [...list.filter((each) => !same(each)), item].slice(-most);

/** The same alert again, another one for the same host, or one that comes back: it folds in, or reopens the thread. */
export function fire(incident: Incident, alert: Fired, arrival: Arrival): IncidentMove | null {
  if (incident.state === 'closed') return null;
  const { nowMs, told, silence } = arrival;
  const patch = {
    count: incident.count + 1,
    lastFiredAt: iso(nowMs),
    firing: added(incident.firing, alert.fingerprint, (f) => f === alert.fingerprint, fingerprintsAtMost),
    told:
      told === undefined
        ? incident.told
        : added(
            incident.told,
            { ...told, fingerprint: alert.fingerprint },
            (t) => t.ts === told.ts && t.channel === told.channel,
            toldAtMost,
          ),
    ...(arrival.note === undefined ? {} : { note: arrival.note }),
    ...(arrival.trend === undefined ? {} : { trend: arrival.trend }),
  };
  const stale =
    incident.state === 'recovered' &&
    incident.reclaim !== undefined &&
    incident.firing.includes(alert.fingerprint) &&
    alert.source !== 'watch' &&
    nowMs - Date.parse(incident.reclaim.at) < staleRepeatMs;
  if (silence !== undefined || stale || !isOver(incident.state)) {
    // A box that could not be looked at is tried again with the next alert.
    const again = silence === undefined && incident.state === 'open' && incident.requestState === 'failed';
    const base = again ? without(incident, 'request', 'requestState') : incident;
    return { topic: next(base, nowMs, patch), deliver: silence === undefined ? ['incident'] : [] };
  }
  return { topic: next(reopenable(incident), nowMs, { ...patch, ...reopening(incident) }), deliver: ['incident'] };
}

const reopenable = (incident: Incident): Incident =>
  without(incident, 'endedAt', 'request', 'requestState', 'ruleWrong', 'reclaim');

const reopening = (incident: Incident) =>
  ({
    state: 'open',
    reopened: incident.reopened + 1,
    checks: [],
    reason: `It fires again. Looking at ${incident.host} anew.`,
  }) satisfies Partial<Incident>;

/** Whoever sent it says that it is over. Others may still fire; then only that is noted. */
export function resolve(incident: Incident, fingerprints: readonly string[], nowMs: number): IncidentMove | null {
  const firing = incident.firing.filter((f) => !fingerprints.includes(f));
  if (firing.length === incident.firing.length) return null;
  if (isOver(incident.state)) return { topic: next(incident, nowMs, { firing }), deliver: [] };
  if (firing.length > 0) {
    const reason = `${incident.reason} One alert is resolved, ${firing.length === 1 ? 'another still fires' : `${firing.length} still fire`}.`;
    return { topic: next(incident, nowMs, { firing, reason: firstSentences(reason) }), deliver: ['incident'] };
  }
  // What runs is not over because an alert is; its end says how it went.
  if (incident.state === 'reclaiming') return { topic: next(incident, nowMs, { firing }), deliver: [] };
  const waiting = incident.requestState === 'pending' ? ' The plan in this thread still waits for approval.' : '';
  const reason = `Whoever sent the alert says that it is resolved.${waiting}`;
  const patch = { state: 'resolved', firing, reason, endedAt: iso(nowMs) } as const;
  return { topic: next(incident, nowMs, patch), deliver: ['incident', 'incident_end'] };
}

/** Notes about resolves pile up behind a reason; two sentences are enough. */
const firstSentences = (text: string): string => {
  const said = text.split(/(?<=\.) /);
  return said.length <= 2 ? text : [said[0], said.at(-1)].join(' ');
};

/** The watcher, or a look after a reclaim, measured enough available memory. */
export function recover(incident: Incident, figure: Figure, nowMs: number): IncidentMove | null {
  if (incident.state === 'recovered' || incident.state === 'closed' || incident.state === 'reclaiming') return null;
  const waiting = incident.requestState === 'pending' ? ' The plan in this thread still waits for approval.' : '';
  const reason = `Recovered: ${figureText(figure)}.${waiting}`;
  const firing = incident.firing.filter((f) => f !== watchFingerprint);
  const patch = { state: 'recovered', reason, now: figure, firing, endedAt: iso(nowMs) } as const;
  return { topic: next(incident, nowMs, patch), deliver: ['incident', 'incident_end'] };
}

export const watchFingerprint = 'watch';

/** A measurement after a reclaim: it held, or it came back. Below the limit it reopens. */
export function checked(
  incident: Incident,
  check: Incident['checks'][number],
  settings: IncidentSettings,
  nowMs: number,
): IncidentMove | null {
  if (incident.reclaim === undefined || incident.checks.some((c) => c.minutes === check.minutes)) return null;
  const checks = [...incident.checks, check].sort((a, b) => a.minutes - b.minutes);
  const { figure } = check;
  const base = { checks, ...(figure === undefined ? {} : { now: figure }) };
  const refilled = figure !== undefined && shareOf(figure) < settings.availableBelow;
  if (!refilled || !isOver(incident.state) || incident.state === 'closed') {
    return { topic: next(incident, nowMs, base), deliver: ['incident', 'incident_after'] };
  }
  const patch = {
    ...reopening(incident),
    ...base,
    reason: `It came back: ${figureText(figure)}, ${minutesText(check.minutes)} after the reclaim. Looking anew.`,
  };
  const kept = without(incident, 'endedAt', 'request', 'requestState', 'ruleWrong');
  return { topic: next(kept, nowMs, patch), deliver: ['incident', 'incident_after'] };
}

export function silenced(incident: Incident, silence: Incident['silence'], nowMs: number): IncidentMove | null {
  if (incident.state === 'closed') return null;
  if (silence === undefined) {
    if (incident.silence === undefined) return null;
    return { topic: next(without(incident, 'silence'), nowMs, {}), deliver: ['incident'] };
  }
  return { topic: next(incident, nowMs, { silence }), deliver: ['incident'] };
}

/** What the clock does: over for longer than it could reopen, or forgotten by whoever sent it. */
export function closeByClock(incident: Incident, settings: IncidentSettings, nowMs: number): IncidentMove | null {
  if (incident.state === 'closed') return null;
  const { reclaim, endedAt } = incident;
  if (isOver(incident.state) && endedAt !== undefined) {
    const dueMs = Math.max(
      Date.parse(endedAt) + settings.reopenWithinMs,
      reclaim === undefined
        ? 0
        : Date.parse(reclaim.at) + Math.max(0, ...settings.measureAgainMinutes) * 60_000 + lateMs,
    );
    if (nowMs < dueMs) return null;
    return { topic: next(incident, nowMs, { state: 'closed', slot: null }), deliver: ['incident'] };
  }
  if (incident.state === 'reclaiming' || nowMs - Date.parse(incident.lastFiredAt) < forgottenMs) return null;
  const reason = 'Closed: nobody repeated or resolved the alert for a day.';
  return { topic: next(incident, nowMs, { state: 'closed', slot: null, reason }), deliver: ['incident'] };
}

/** For src/alerts/incident/follow.ts: moves along the table. */
export const moved = next;
