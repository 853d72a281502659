/**
 * Alerts in, incidents out: maps each alert to a configured host, folds it into the host's incident or opens one, and asks
 * where no host or several could be meant. Safe to run anywhere, any number of times.
 */
import { z } from 'zod';
import type { Deps } from '../deps.ts';
import {
  type Arrival,
  closeByClock,
  fire,
  type Fired,
  type IncidentMove,
  openIncident,
  resolve,
} from './incident/state.ts';
import { attendIncident } from './attend.ts';
import { type Alert, alertSchema } from './parsers/alert.ts';
import { mapHost } from './parsers/hosts.ts';
import { askWhich, resolveQuestions } from './questions.ts';
import { incidentSettings } from './settings.ts';
import { silenceOf } from './silences.ts';
import { attemptsAtMost, changeTopic, inSlot, liveTopics, newTopicId, tooBusy } from './topic-changes.ts';
import type { Incident } from './topics.ts';

export type IncidentParts = Pick<Deps, 'store' | 'clock' | 'config' | 'log' | 'requests' | 'alertJobs'>;

const toldSchema = z.object({ channel: z.string(), ts: z.string() });

/** Alerts that came in together. */
export const receivedSchema = z.object({
  alerts: z.array(alertSchema),
  /** How many more the sender cut off. */
  truncated: z.number().int().nonnegative(),
  /** The message of another bot they were read from. */
  told: toldSchema.optional(),
  /** That message was edited: what fires in it is no news. */
  edited: z.boolean().optional(),
});
export type Received = z.infer<typeof receivedSchema>;

/** Where incidents are shown: alerts.channel, or else the channel the alert was seen in. */
export const channelFor = ({ config }: IncidentParts, received: Pick<Received, 'told'>): string | null =>
  config.alerts.channel ?? received.told?.channel ?? null;

/** One bad alert must not keep the others from being heard. */
export async function receive(parts: IncidentParts, received: Received): Promise<void> {
  for (const alert of received.alerts) {
    if (alert.state === 'resolved') await resolved(parts, alert, received.told);
    else await fired(parts, alert, received);
  }
}

async function fired(parts: IncidentParts, alert: Alert, received: Received): Promise<void> {
  const { config, log } = parts;
  const channel = channelFor(parts, received);
  if (channel === null) {
    log.error({ title: alert.title }, 'an alert has nowhere to go: alerts.channel is not set in reclaim.yaml');
    return;
  }
  const arrival: Arrival = {
    nowMs: parts.clock.now(),
    ...(received.told === undefined ? {} : { told: received.told }),
    ...(received.truncated === 0
      ? {}
      : { note: `The sender cut off ${received.truncated} more alerts of this group; their hosts are not known.` }),
  };
  const mapped = mapHost([...config.hosts.values()], alert);
  if (mapped.kind === 'known') {
    await raise(parts, { host: mapped.host, channel, alert, arrival, edited: received.edited === true });
    return;
  }
  // In a channel with all kinds of alerts, only those about memory are worth a question.
  if (received.told !== undefined && alert.about !== 'memory') return;
  const answered = await askWhich(parts, { alert, mapped, channel, arrival, edited: received.edited === true });
  if (answered !== null) await raise(parts, { host: answered, channel, alert, arrival, edited: false });
}

export interface Raised {
  readonly host: string;
  readonly channel: string;
  readonly alert: Fired;
  readonly arrival: Arrival;
  readonly edited: boolean;
}

/** Folds into the host's incident, or opens one and asks for a look. Null when it was silenced, or no news. */
export async function raise(parts: IncidentParts, raised: Raised): Promise<Incident | null> {
  const { topics } = parts.store;
  const { host, channel, alert } = raised;
  const silence = await silenceOf(parts, host);
  const arrival = silence === null ? raised.arrival : { ...raised.arrival, silence };
  for (let n = 0; n < attemptsAtMost; n += 1) {
    const live = await inSlot(topics, 'incident', host);
    if (live === null && silence !== null) {
      parts.log.info({ host, until: silence.until }, 'an alert of a silenced host');
      return null;
    }
    const move =
      live === null ? openIncident(newTopicId('i'), host, channel, alert, arrival) : fold(parts, live, raised, arrival);
    if (move === null) return live;
    const written = live === null ? await topics.create(move) : await topics.update(move);
    if (!written.ok || move.topic.state === 'closed') continue;
    return silence === null ? await attendIncident(parts, move.topic.id) : move.topic;
  }
  throw tooBusy();
}

function fold(parts: IncidentParts, live: Incident, raised: Raised, arrival: Arrival): IncidentMove | null {
  const { told } = arrival;
  if (raised.edited && live.told.some((t) => t.ts === told?.ts && t.channel === told.channel)) return null;
  return closeByClock(live, incidentSettings(parts.config), arrival.nowMs) ?? fire(live, raised.alert, arrival);
}

/** An end is matched by fingerprint, or by the message that told of the beginning; the host need not be said again. */
async function resolved(parts: IncidentParts, alert: Alert, told: Received['told']): Promise<void> {
  const { topics } = parts.store;
  const nowMs = parts.clock.now();
  const mapped = mapHost([...parts.config.hosts.values()], alert);
  for (const incident of await liveTopics(topics, 'incident')) {
    // One rule can fire for many hosts: where the end names one, it is the end for that one.
    if (mapped.kind === 'known' && mapped.host !== incident.host) continue;
    const byMessage = incident.told.filter((t) => t.ts === told?.ts && t.channel === told.channel);
    const fingerprints = [alert.fingerprint, ...byMessage.map((t) => t.fingerprint)];
    if (!incident.firing.some((f) => fingerprints.includes(f))) continue;
    await changeTopic(topics, 'incident', incident.id, (current) => resolve(current, fingerprints, nowMs));
  }
  await resolveQuestions(parts, alert.fingerprint, told);
}
