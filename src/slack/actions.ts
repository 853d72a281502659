/** Clicks on a card. A button carries the request's id; what it may do is decided by the request service, now. */
import type { App, BlockAction, ButtonAction, RespondFn } from '@slack/bolt';
import type { ModalView } from '@slack/types';
import { ReclaimError } from '../errors.ts';
import { targetKey } from '../memory/story.ts';
import type { Person, RequestRecord } from '../requests/types.ts';
import { actionIds, digestOfBlockId } from './blocks/card.ts';
import { chooseModal, pageActionIds, turned, untickedAfter } from './blocks/chooser.ts';
import { fitsMemory, freshMemory, readMemory, type ModalMemory } from './blocks/dialog-memory.ts';
import { breakGlassModal, denyModal, sayingModal } from './blocks/modals.ts';
import { isFinal } from './blocks/words.ts';
import { acknowledge, answering, isFirst, personOf, queueWords, type Surface, type Whisper } from './surface.ts';

interface Click {
  readonly record: RequestRecord;
  readonly person: Person;
  readonly digest: string | undefined;
  readonly triggerId: string;
  readonly whisper: Whisper;
}

type ClickBody = BlockAction<ButtonAction>;

/** The workspace of the person who clicked: not always the one the app lives in. */
function clicker(body: ClickBody): Person {
  return personOf(body.user.id, body.user.team_id ?? body.team?.id);
}

export function whisperer(respond: RespondFn, body: Pick<BlockAction, 'user' | 'channel'>, surface: Surface): Whisper {
  return async (text) => {
    const channel = body.channel?.id;
    try {
      await respond({ response_type: 'ephemeral', replace_original: false, text });
    } catch (error) {
      if (channel === undefined) throw error;
      await surface.client.chat.postEphemeral({ channel, user: body.user.id, text });
    }
  };
}

/** @throws ReclaimError when the click does not belong to the request's own card. */
async function requestOf(
  surface: Surface,
  id: string | undefined,
  channel: string | undefined,
): Promise<RequestRecord> {
  const record = id === undefined ? null : await surface.deps.store.get(id);
  if (record === null) {
    surface.deps.log.warn(
      { request: id },
      'a click on a request unknown here: is there a second instance on this app?',
    );
    throw new ReclaimError(
      'request_unknown',
      'There is no such request here (any more). Nothing was done, and the card stays as it is: another Reclaim on the same Slack app may have it. Click again, or ask again with /reclaim.',
    );
  }
  if (record.channel !== channel) {
    throw new ReclaimError(
      'not_allowed',
      'This request belongs to another channel. Nothing was done. Decide on its card there.',
    );
  }
  return record;
}

function onClick(app: App, surface: Surface, actionId: string, work: (click: Click) => Promise<void>): void {
  app.action<ClickBody>(actionId, async ({ ack, body, action, respond }) => {
    await acknowledge(surface, () => ack());
    const whisper = whisperer(respond, body, surface);
    await answering(surface, whisper, async () => {
      if (!(await isFirst(surface, `click.${body.user.id}.${action.action_ts}.${action.action_id}`))) return;
      const record = await requestOf(surface, action.value, body.channel?.id);
      await work({
        record,
        person: clicker(body),
        digest: digestOfBlockId(action.block_id),
        triggerId: body.trigger_id,
        whisper,
      });
    });
  });
}

const approveWords = (record: RequestRecord, before: RequestRecord, waits: string | null): string => {
  if (record.state === 'pending') {
    return `Your approval of ${before.host} counts. ${record.required} people are needed in all.`;
  }
  if (waits !== null) return `Approved for ${before.host}. ${waits}`;
  return `Approved for ${before.host}. It starts now, and the card shows every step.`;
};

export function registerActions(app: App, surface: Surface): void {
  const { requests, config } = surface.deps;

  onClick(app, surface, actionIds.approve, async ({ record, person, digest, whisper }) => {
    if (digest === undefined) {
      throw new ReclaimError(
        'request_changed',
        'This button does not say which plan it stands for. Nothing was done. Decide on the newest card.',
      );
    }
    const decision = { id: record.id, person, surface: 'slack', verdict: 'approve', digest } as const;
    const after = await requests.decide(decision, surface.directory);
    const waits = after.state === 'approved' ? await queueWords(surface, `the run on ${after.host}`) : null;
    await whisper(approveWords(after, record, waits));
  });

  onClick(app, surface, actionIds.cancel, async ({ record, person }) => {
    await requests.cancel(record.id, person, 'slack');
  });

  onClick(app, surface, actionIds.keep, async ({ record, person, whisper }) => {
    const keys = ownKeys(record, config.policy.people, person.id);
    if (keys.length === 0) {
      throw new ReclaimError(
        'not_allowed',
        'None of the listed processes is known to be yours, so the plan stays as it is. policy.people in reclaim.yaml says who is who.',
      );
    }
    await requests.keep(record.id, person, keys, 'slack');
    await whisper(`Your processes (${keys.length}) are out of the plan for ${record.host}.`);
  });

  onClick(app, surface, actionIds.deny, async (click) => {
    openable(click.record);
    await openView(surface, click.triggerId, denyModal(click.record, memoryOf(click)));
  });

  onClick(app, surface, actionIds.choose, async (click) => {
    const plan = openable(click.record);
    await openView(surface, click.triggerId, chooseModal(click.record, plan, memoryOf(click)));
  });

  onClick(app, surface, actionIds.breakGlass, async (click) => {
    const plan = openable(click.record);
    await openView(surface, click.triggerId, breakGlassModal(click.record, plan, memoryOf(click)));
  });

  registerPages(app, surface);
}

/** Processes of the plan that run as a Unix user this person is known by. */
function ownKeys(record: RequestRecord, people: Readonly<Record<string, string>>, person: string): string[] {
  const planned = new Set(record.plan?.steps.flatMap((s) => (s.action === 'kill' ? s.targets.map(targetKey) : [])));
  const processes = record.diagnosis?.findings.flatMap((f) => f.processes ?? []) ?? [];
  const own = processes.filter(
    (p) => p.user !== null && Object.hasOwn(people, p.user) && people[p.user] === person && planned.has(targetKey(p)),
  );
  return [...new Set(own.map(targetKey))];
}

/** @throws ReclaimError when there is nothing (left) to decide: a dialog would promise what cannot happen. */
function openable(record: RequestRecord): NonNullable<RequestRecord['plan']> {
  if (record.state === 'pending' && record.plan !== null) return record.plan;
  const why = isFinal(record) ? `This request has ended (${record.state})` : `This request is ${record.state} already`;
  throw new ReclaimError('request_closed', `${why}, so there is nothing to decide. Nothing was done.`);
}

/** The dialog is bound to the plan that was on the card; a newer one refuses its submission. */
function memoryOf({ record, digest }: Click): ModalMemory {
  return freshMemory({ id: record.id, channel: record.channel ?? '', digest: digest ?? record.digest ?? '' });
}

export async function openView(surface: Surface, triggerId: string, view: ModalView): Promise<void> {
  try {
    await surface.client.views.open({ trigger_id: triggerId, view });
  } catch (error) {
    surface.deps.log.warn({ err: error }, 'a dialog could not be opened');
    throw new ReclaimError('slack_failed', 'Slack did not open the dialog in time. Nothing was done. Click again.', {
      cause: error,
    });
  }
}

const tooManyTicks =
  'so many single ticks were taken out that the next page would forget some. Untick whole groups instead, or deny.';

function pageAfter(
  record: RequestRecord | null,
  memory: ModalMemory,
  actionId: string,
  values: Parameters<typeof untickedAfter>[3],
): ModalView {
  const plan = record?.plan ?? null;
  if (record === null || plan === null || record.state !== 'pending' || record.digest !== memory.digest)
    return sayingModal('Not done', 'The request has changed or ended meanwhile. Nothing was done. See its card.');
  const wanted = turned(memory, actionId, untickedAfter(record, plan, memory, values));
  return fitsMemory(wanted) ? chooseModal(record, plan, wanted) : chooseModal(record, plan, memory, tooManyTicks);
}

/** Turning pages in the choose dialog: the ticks of the page on screen are kept before the next one is shown. */
function registerPages(app: App, surface: Surface): void {
  const { next, previous, back, open } = pageActionIds;
  const anyOf = new RegExp(`^(?:${next}|${previous}|${back}|${open}\\.\\d+)$`);
  app.action<ClickBody>(anyOf, async ({ ack, body, action }) => {
    await acknowledge(surface, () => ack());
    const { view } = body;
    const memory = view === undefined ? null : readMemory(view.private_metadata);
    if (view === undefined || memory === null) return;
    try {
      const record = await surface.deps.store.get(memory.id);
      const modal = pageAfter(record, memory, action.action_id, view.state.values);
      await surface.client.views.update({ view_id: view.id, hash: view.hash, view: modal });
    } catch (error) {
      surface.deps.log.warn({ err: error }, 'a page of the dialog could not be shown');
    }
  });
}
