/** An incident in the channel: the root message, edited to the present state, and what is said in its thread. Pure. */
import type { Button } from '@slack/types';
import { sizeText } from '../../memory/sizes.ts';
import { figureText, isOver, minutesText } from '../../alerts/incident/state.ts';
import type { Incident } from '../../alerts/topics.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, limits, mrkdwn, oneLine, plural, type Piece } from '../text.ts';
import { actions, button, context, fit, header, rich, sentence, type Message } from './elements.ts';
import type { Rendered } from './render.ts';
import { stateWords } from './words.ts';

export const incidentActionIds = {
  lookAgain: 'reclaim_incident_look',
  silence1h: 'reclaim_silence_1h',
  silence8h: 'reclaim_silence_8h',
  silence24h: 'reclaim_silence_24h',
  endSilence: 'reclaim_silence_end',
} as const;

const sourceWords: Record<Incident['source'], string> = {
  watch: 'our own watcher',
  alertmanager: 'Alertmanager',
  grafana: 'Grafana',
  netdata: 'Netdata',
  zabbix: 'Zabbix',
  datadog: 'Datadog',
  message: 'a message of another bot',
};

export function incidentWords(incident: Incident, request: RequestRecord | null): string {
  switch (incident.state) {
    case 'open':
      return 'memory alert, looking';
    case 'diagnosed':
      return request === null || request.state === 'succeeded'
        ? 'memory alert, diagnosed'
        : `memory alert, ${stateWords(request)}`;
    case 'reclaiming':
      return 'memory alert, being reclaimed';
    case 'recovered':
      return 'recovered';
    case 'resolved':
      return 'resolved elsewhere';
    case 'closed':
      return incident.endedAt === undefined
        ? 'closed'
        : incident.reclaim === undefined
          ? 'resolved, closed'
          : 'recovered, closed';
  }
}

const headline = (incident: Incident, request: RequestRecord | null): string =>
  `${incident.host}: ${incidentWords(incident, request)}`;

function figures(incident: Incident): Piece[][] {
  const fired: Piece[] = [
    incident.count === 1 ? 'Fired once, ' : `Fired ${incident.count} times, first `,
    { at: incident.createdAt, style: 'day_time' },
    ...(incident.count === 1 ? [] : [', last ', { at: incident.lastFiredAt, style: 'time' } as const]),
    `, told by ${sourceWords[incident.source]}.`,
    ...(incident.reopened === 0
      ? []
      : [` Reopened ${incident.reopened === 1 ? 'once' : `${incident.reopened} times`}.`]),
  ];
  const now: Piece[] =
    incident.now === undefined
      ? []
      : [`${figureText(incident.now)}, measured `, { at: incident.now.at, style: 'time' }, '.'];
  return [
    fired,
    now,
    incident.trend === undefined ? [] : [incident.trend],
    incident.note === undefined ? [] : [incident.note],
  ].filter((line) => line.length > 0);
}

function silenceLine(incident: Incident): Piece[] | null {
  if (incident.silence === undefined) return null;
  return [
    { bold: 'Silenced until ' },
    { at: incident.silence.until, style: 'day_time' },
    ' by ',
    { who: incident.silence.by },
    '. Alerts of this host are counted, not posted.',
  ];
}

function buttons(incident: Incident): Button[] {
  const value = incident.id;
  const look = button({ label: 'Look again', action: incidentActionIds.lookAgain, value });
  if (incident.silence !== undefined) {
    return [look, button({ label: 'End silence', action: incidentActionIds.endSilence, value })];
  }
  return [
    look,
    button({ label: 'Silence 1 h', action: incidentActionIds.silence1h, value }),
    button({ label: 'Silence 8 h', action: incidentActionIds.silence8h, value }),
    button({ label: 'Silence 24 h', action: incidentActionIds.silence24h, value }),
  ];
}

export function incidentRoot(incident: Incident, request: RequestRecord | null): Message {
  const head = headline(incident, request);
  const silence = silenceLine(incident);
  const blocks = fit([
    { block: header(head) },
    { block: rich([{ line: [{ bold: cut(oneLine(incident.title), 300) }] }]) },
    { block: rich([{ line: [cut(oneLine(incident.reason), 900)] }]) },
    ...(incident.ruleWrong === undefined ? [] : [{ block: sentence({ bold: incident.ruleWrong }) }]),
    { block: context(...figures(incident), ...(silence === null ? [] : [silence])) },
    ...(incident.state === 'closed' ? [] : [{ block: actions(`incident.${incident.id}`, buttons(incident)) }]),
  ]);
  const pieces: Piece[] = [
    `${head}. ${cut(oneLine(incident.title), 300)}. ${cut(oneLine(incident.reason), 900)}`,
    ...(incident.ruleWrong === undefined ? [] : [` ${incident.ruleWrong}`]),
    ...(incident.count === 1 ? [] : [` Fired ${incident.count} times.`]),
    ...(silence === null ? [] : [' ', ...silence]),
  ];
  return { text: mrkdwn(pieces, limits.fallbackChars), blocks };
}

/** One reply that grows: 1, 5 and 15 minutes after the reclaim. */
export function incidentAfter(incident: Incident): Rendered {
  const { reclaim, checks } = incident;
  if (reclaim === undefined || checks.length === 0) return { kind: 'nothing' };
  const lines = checks.map((check): Piece[] => [
    { bold: `${minutesText(check.minutes)} after: ` },
    checkWords(incident, check),
  ]);
  const pieces: Piece[] = lines.flatMap((line, i): Piece[] => (i === 0 ? line : [' ', ...line]));
  const text = mrkdwn([`${incident.host} after the reclaim. `, ...pieces], limits.fallbackChars);
  return { kind: 'message', message: { text, blocks: [rich([{ list: lines }])] } };
}

function checkWords(incident: Incident, check: Incident['checks'][number]): string {
  const { reclaim } = incident;
  if (check.figure === undefined || reclaim === undefined) return check.why ?? 'not measured.';
  const gained = reclaim.after.availableKiB - reclaim.before.availableKiB;
  const lost = reclaim.after.availableKiB - check.figure.availableKiB;
  const figure = figureText(check.figure);
  if (gained <= 0 || lost < gained * 0.2) return `${figure}. It held.`;
  if (lost < gained * 0.8) return `${figure}. ${sizeText(lost)} of the ${sizeText(gained)} is in use again.`;
  return `${figure}. It came back: ${sizeText(lost)} is in use again.`;
}

/** Said in the thread, because an edited root notifies nobody. */
export function incidentEnd(incident: Incident, request: RequestRecord | null): Rendered {
  if (!isOver(incident.state)) return { kind: 'nothing' };
  const lasted = incident.endedAt === undefined ? 0 : Date.parse(incident.endedAt) - Date.parse(incident.createdAt);
  const took = `after ${plural(Math.max(1, Math.round(lasted / 60_000)), 'minute')}`;
  const pieces: Piece[] = [{ bold: headline(incident, request) }, `, ${took}. ${cut(oneLine(incident.reason), 900)}`];
  return { kind: 'message', message: { text: mrkdwn(pieces, limits.fallbackChars), blocks: [sentence(...pieces)] } };
}
