/** Clicks on incidents and questions. They look or silence; what changes a box is decided on the card in the thread. */
import type { App, BlockAction, BlockElementAction, RespondFn } from '@slack/bolt';
import { attendIncident } from '../alerts/attend.ts';
import { answerQuestion } from '../alerts/questions.ts';
import { beginSilence, endSilence } from '../alerts/silences.ts';
import type { Incident, Question } from '../alerts/topics.ts';
import { findHost } from '../config/hosts.ts';
import { ReclaimError } from '../errors.ts';
import type { Person } from '../requests/types.ts';
import { whisperer } from './actions.ts';
import { incidentActionIds } from './blocks/incident.ts';
import { questionActionIds } from './blocks/question.ts';
import { acknowledge, answering, isFirst, personOf, type Surface, type Whisper } from './surface.ts';

const hourMs = 3_600_000;

/** Guests and people of other workspaces silence nothing. @throws ReclaimError not_allowed, lookup_failed */
export async function mustBeMember({ directory }: Surface, { id, team }: Person): Promise<void> {
  const { standing } = await directory.person(id, team);
  if (standing === 'member') return;
  throw new ReclaimError('not_allowed', 'Only full members of this workspace may do that. Nothing was changed.');
}

type Body = BlockAction;

interface Click {
  readonly person: Person;
  readonly channel: string | undefined;
  readonly action: BlockElementAction;
  readonly whisper: Whisper;
}

function onClick(app: App, surface: Surface, actionId: string, work: (click: Click) => Promise<void>): void {
  app.action<Body>(actionId, async ({ ack, body, action, respond }) => {
    await acknowledge(surface, () => ack());
    const whisper: Whisper = privately(respond, body, surface);
    await answering(surface, whisper, async () => {
      if (!(await isFirst(surface, `click.${body.user.id}.${action.action_ts}.${action.action_id}`))) return;
      const person = personOf(body.user.id, body.user.team_id ?? body.team?.id);
      await mustBeMember(surface, person);
      await work({ person, channel: body.channel?.id, action, whisper });
    });
  });
}

const privately = (respond: RespondFn, body: Body, surface: Surface): Whisper => whisperer(respond, body, surface);

const gone = () => new ReclaimError('request_unknown', 'This is over, so there is nothing to do. Nothing was changed.');

async function incidentOf(surface: Surface, { action, channel }: Click): Promise<Incident> {
  const id = action.type === 'button' ? (action.value ?? '') : '';
  const topic = await surface.deps.store.topics.get(id);
  if (topic?.kind !== 'incident' || topic.channel !== channel || topic.state === 'closed') throw gone();
  return topic;
}

async function questionOf(surface: Surface, { action, channel }: Click): Promise<Question> {
  const id = action.block_id.replace(/^question\./, '');
  const topic = await surface.deps.store.topics.get(id);
  if (topic?.kind !== 'question' || topic.channel !== channel || topic.slot === null) throw gone();
  const { answer } = topic;
  if (answer !== undefined) {
    throw new ReclaimError('request_closed', `@${answer.by} answered already. Nothing was changed.`);
  }
  return topic;
}

export function registerAlertActions(app: App, surface: Surface): void {
  const { deps } = surface;
  const silences = [
    [incidentActionIds.silence1h, 1],
    [incidentActionIds.silence8h, 8],
    [incidentActionIds.silence24h, 24],
  ] as const;
  for (const [actionId, hours] of silences) {
    onClick(app, surface, actionId, async (click) => {
      const { host } = await incidentOf(surface, click);
      await beginSilence(deps, { host, by: click.person.id, forMs: hours * hourMs });
    });
  }

  onClick(app, surface, incidentActionIds.endSilence, async (click) => {
    const { host } = await incidentOf(surface, click);
    await endSilence(deps, host, click.person.id);
  });

  onClick(app, surface, incidentActionIds.lookAgain, async (click) => {
    const { id, host, channel } = await incidentOf(surface, click);
    const { record, existing } = await deps.requests.ask({
      ...{ host, requester: click.person, surface: 'slack', topic: id },
      ...(channel === null ? {} : { channel }),
    });
    await attendIncident(deps, id, record);
    if (existing) {
      throw new ReclaimError(
        'request_open',
        `${host} has a request open already (${record.state}). Nothing new was started.`,
      );
    }
  });

  onClick(app, surface, questionActionIds.host, async (click) => {
    const { id } = await questionOf(surface, click);
    const { action, person } = click;
    const said = action.type === 'static_select' ? action.selected_option.value : '';
    await answerQuestion(deps, id, { host: findHost(deps.config, said).name, by: person.id });
  });

  onClick(app, surface, questionActionIds.dismiss, async (click) => {
    const { id } = await questionOf(surface, click);
    await answerQuestion(deps, id, { host: null, by: click.person.id });
  });
}
