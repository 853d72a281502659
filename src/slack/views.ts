/** Submitted dialogs. A refusal is shown in the dialog itself, where the person is looking. */
import type { AckFn, App, ViewResponseAction, ViewSubmitAction } from '@slack/bolt';
import { z } from 'zod';
import { findHost } from '../config/hosts.ts';
import { asReclaimError, ReclaimError } from '../errors.ts';
import type { Decision } from '../requests/service.ts';
import { tickable, untickedAfter } from './blocks/chooser.ts';
import { callbackIds, readMemory, type ModalMemory } from './blocks/dialog-memory.ts';
import { lookAtModal, sayingModal } from './blocks/modals.ts';
import { openView } from './actions.ts';
import { checkChannel } from './channels.ts';
import { askFor } from './commands.ts';
import { words } from './command-text.ts';
import { acknowledge, isFirst, personOf, type Surface } from './surface.ts';

type Ack = AckFn<ViewResponseAction>;

const saying = (title: string, text: string): ViewResponseAction => ({
  response_action: 'update',
  view: sayingModal(title, text),
});

/** Slack waits three seconds for the answer of a dialog: what takes longer is finished behind a plain sentence. */
const patienceMs = 2300;

async function decided(
  surface: Surface,
  ack: Ack,
  body: ViewSubmitAction,
  work: () => Promise<string | null>,
): Promise<void> {
  const { clock, log } = surface.deps;
  if (!(await isFirst(surface, `view.${body.view.id}.${body.view.hash}`))) {
    await acknowledge(surface, () => ack());
    return;
  }
  const answer = work().then(
    (said): ViewResponseAction | null => (said === null ? null : saying('Recorded', said)),
    (thrown: unknown): ViewResponseAction => {
      const error = asReclaimError(thrown);
      if (error.code === 'internal') log.error({ err: thrown }, 'a dialog failed');
      return saying('Not done', error.userText);
    },
  );
  const late = clock
    .sleep(patienceMs)
    .then((): ViewResponseAction => saying('Taking longer', 'Your answer is being recorded; the card will show it.'));
  const response = await Promise.race([answer, late]);
  await acknowledge(surface, () => (response === null ? ack() : ack(response)));
  await answer;
}

function memoryOf(body: ViewSubmitAction): ModalMemory {
  const memory = readMemory(body.view.private_metadata);
  if (memory === null)
    throw new ReclaimError('request_unknown', 'This dialog is out of date. Nothing was done. Open it again.');
  return memory;
}

async function recordOf(surface: Surface, memory: ModalMemory) {
  const record = await surface.deps.store.get(memory.id);
  if (record === null || record.channel !== memory.channel) {
    throw new ReclaimError('request_unknown', 'There is no such request (any more). Nothing was done.');
  }
  return record;
}

const reasonOf = (body: ViewSubmitAction): { reason?: string } => {
  const typed = body.view.state.values.reason?.reason?.value?.trim() ?? '';
  return typed === '' ? {} : { reason: typed };
};

const decisionOf = (body: ViewSubmitAction, memory: ModalMemory) => ({
  id: memory.id,
  person: personOf(body.user.id, body.user.team_id ?? body.team?.id),
  surface: 'slack' as const,
  digest: memory.digest,
});

/** The part that stays: what was unticked, in the words of the request service. */
async function withoutUnticked(surface: Surface, body: ViewSubmitAction, memory: ModalMemory): Promise<Decision> {
  const record = await recordOf(surface, memory);
  const decision: Decision = { ...decisionOf(body, memory), verdict: 'approve' };
  // A different plan is refused by its digest; positions mean nothing in it.
  if (record.plan === null || record.digest !== memory.digest) return decision;
  const all = tickable(record.plan);
  const off = untickedAfter(record, record.plan, memory, body.view.state.values);
  if (off.length === all.length) {
    throw new ReclaimError(
      'usage',
      'Nothing is ticked, so there is nothing to approve. Use Deny instead. Nothing was done.',
    );
  }
  return { ...decision, without: off.flatMap((position) => all[position]?.key ?? []) };
}

export function registerViews(app: App, surface: Surface): void {
  const { requests } = surface.deps;

  app.view<ViewSubmitAction>(callbackIds.choose, async ({ ack, body }) => {
    await decided(surface, ack, body, async () => {
      const memory = memoryOf(body);
      await requests.decide(await withoutUnticked(surface, body, memory), surface.directory);
      return null;
    });
  });

  app.view<ViewSubmitAction>(callbackIds.deny, async ({ ack, body }) => {
    await decided(surface, ack, body, async () => {
      const memory = memoryOf(body);
      await recordOf(surface, memory);
      const { id, person } = decisionOf(body, memory);
      await requests.decide({ id, person, surface: 'slack', verdict: 'deny', ...reasonOf(body) }, surface.directory);
      return null;
    });
  });

  app.view<ViewSubmitAction>(callbackIds.breakGlass, async ({ ack, body }) => {
    await decided(surface, ack, body, async () => {
      const memory = memoryOf(body);
      await recordOf(surface, memory);
      await requests.decide(
        { ...decisionOf(body, memory), verdict: 'approve', breakGlass: true, ...reasonOf(body) },
        surface.directory,
      );
      return null;
    });
  });

  registerLookAt(app, surface);
}

const lookAtMemory = z.object({ channel: z.string() });

/** The message shortcut "Look at this box": the names in the message are offered first. */
function registerLookAt(app: App, surface: Surface): void {
  const { config, log } = surface.deps;
  app.shortcut({ callback_id: 'reclaim_look_at', type: 'message_action' }, async ({ ack, shortcut }) => {
    await acknowledge(surface, () => ack());
    const names = [...config.hosts.keys()];
    const found = words(shortcut.message.text ?? '').flatMap((word) => {
      try {
        return [findHost(config, word).name];
      } catch {
        return [];
      }
    });
    if (names.length === 0) {
      log.info('the shortcut was used, but no hosts are configured');
      return;
    }
    await openView(surface, shortcut.trigger_id, lookAtModal(names, found, shortcut.channel.id)).catch(() => undefined);
  });

  app.view<ViewSubmitAction>(callbackIds.lookAt, async ({ ack, body }) => {
    await decided(surface, ack, body, async () => {
      const { channel } = lookAtMemory.parse(JSON.parse(body.view.private_metadata));
      const host = findHost(config, body.view.state.values.host?.host?.selected_option?.value ?? '').name;
      await checkChannel(surface.client, channel);
      return await askFor(surface, {
        host,
        channel,
        person: personOf(body.user.id, body.user.team_id ?? body.team?.id),
      });
    });
  });
}
