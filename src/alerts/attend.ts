/** Keeps an incident and the request in its thread together: asks for the look, follows what people and runs do, measures again. */
import type { RequestRecord } from '../requests/types.ts';
import { alertRequester } from '../requests/types.ts';
import { follow } from './incident/follow.ts';
import { closeByClock, isOver } from './incident/state.ts';
import type { IncidentParts } from './incidents.ts';
import { incidentSettings } from './settings.ts';
import { silenceOf } from './silences.ts';
import { changeTopic } from './topic-changes.ts';
import type { Incident } from './topics.ts';
import { lowestShare } from './watch/judge.ts';

/** How far back a dip explains an alert on a box that has plenty now. */
const dipMs = 30 * 60_000;

/** Brings one incident up to date, with `opened` as its newest request where one was just opened. Null when there is none. */
export async function attendIncident(
  parts: IncidentParts,
  id: string,
  opened?: RequestRecord,
): Promise<Incident | null> {
  const { store, clock } = parts;
  const incident = await store.topics.get(id);
  if (incident?.kind !== 'incident' || incident.state === 'closed')
    return incident?.kind === 'incident' ? incident : null;
  const settings = incidentSettings(parts.config);
  const record = opened ?? (await requestOf(parts, incident));
  const samples = await store.topics.samples(incident.host, clock.now() - dipMs);
  const after = await changeTopic(store.topics, 'incident', id, (current) => {
    const nowMs = clock.now();
    const seen = { settings, nowMs, lowestShare: lowestShare(samples) };
    const followed = record === null ? null : follow(current, record, seen);
    return followed ?? closeByClock(current, settings, nowMs);
  });
  if (after !== null) await measureAgain(parts, after, settings.measureAgainMinutes);
  return after;
}

async function requestOf(parts: IncidentParts, incident: Incident): Promise<RequestRecord | null> {
  const { request, host, state, channel } = incident;
  if (request !== undefined) return await parts.store.get(request);
  if (isOver(state) || !parts.config.hosts.has(host) || (await silenceOf(parts, host)) !== null) return null;
  const { record } = await parts.requests.ask({
    host,
    requester: { id: alertRequester },
    surface: 'alert',
    topic: incident.id,
    ...(channel === null ? {} : { channel }),
  });
  return record;
}

/** Puts up the measurements after a reclaim. Also what got lost on the way to the queue, because the ids are fixed. */
async function measureAgain(
  parts: IncidentParts,
  { id, reclaim, checks }: Incident,
  afterMinutes: readonly number[],
): Promise<void> {
  if (reclaim === undefined) return;
  const sinceMs = parts.clock.now() - Date.parse(reclaim.at);
  for (const minutes of afterMinutes) {
    if (checks.some((check) => check.minutes === minutes)) continue;
    const delayMs = Math.max(0, minutes * 60_000 - sinceMs);
    await parts.alertJobs.recheck({ id, request: reclaim.request, minutes }, delayMs).catch((error: unknown) => {
      parts.log.warn({ err: error, incident: id }, 'could not put up a measurement; it will be tried again');
    });
  }
}
