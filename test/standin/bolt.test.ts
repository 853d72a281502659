import { afterEach, describe, expect, it } from 'vitest';
import type { LocalSlack } from '../../src/standin/local-slack.ts';
import { channel, priya, sam, startApp, startWorld } from './world.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function world(): Promise<LocalSlack> {
  const slack = await startWorld();
  cleanups.push(() => slack.close());
  return slack;
}

const button = (label: string, actionId: string, more: object = {}) => ({
  type: 'button' as const,
  text: { type: 'plain_text' as const, text: label },
  action_id: actionId,
  value: 'r1',
  ...more,
});

const dialog = {
  title: { type: 'plain_text' as const, text: 'Sure?' },
  text: { type: 'plain_text' as const, text: 'It will be done.' },
  confirm: { type: 'plain_text' as const, text: 'Yes' },
  deny: { type: 'plain_text' as const, text: 'No' },
};

describe('a Bolt app on the local Slack', () => {
  it('takes a slash command, posts a card, takes a confirmed click and edits the card', async () => {
    const slack = await world();
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ command, ack, client }) => {
        await ack({ response_type: 'ephemeral', text: `Looking at ${command.text}.` });
        await client.chat.postMessage({
          channel: command.channel_id,
          text: 'card',
          blocks: [{ type: 'actions', elements: [button('Approve', 'approve', { confirm: dialog })] }],
          metadata: { event_type: 'request', event_payload: { id: 'r1' } },
        });
      });
      app.action('approve', async ({ ack, body, client }) => {
        await ack();
        if (body.type !== 'block_actions') return;
        await client.chat.update({
          channel: body.channel?.id ?? '',
          ts: body.message?.ts ?? '',
          text: `approved by <@${body.user.id}>`,
          blocks: [],
        });
      });
    });
    cleanups.push(stop);

    const asker = slack.actAs(priya);
    expect((await asker.command(channel, '/reclaim gpu-box-3')).outcome).toBe('acked');
    expect(asker.ephemerals(channel).map((m) => m.text)).toEqual(['Looking at gpu-box-3.']);
    const card = await slack.waitFor('the card', () => slack.messages(channel)[0]);
    expect(card.metadata).toEqual({ event_type: 'request', event_payload: { id: 'r1' } });

    await expect(slack.actAs(sam).click(card, 'Approve')).rejects.toThrow('asks for confirmation');
    await slack.actAs(sam).click(card, 'Approve', { confirm: true });
    await slack.waitFor('the edit', () => card.text === `approved by <@${sam}>`);
    await expect(slack.actAs(sam).click(card, 'Approve', { confirm: true })).rejects.toThrow('no "Approve" to click');
  });

  it('opens a modal, shows its errors, and closes it when the answer is good', async () => {
    const slack = await world();
    const heard: unknown[] = [];
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, body, client }) => {
        await ack();
        await client.views.open({
          trigger_id: body.trigger_id,
          view: {
            type: 'modal',
            callback_id: 'why',
            private_metadata: 'r1',
            title: { type: 'plain_text', text: 'Deny' },
            submit: { type: 'plain_text', text: 'Deny' },
            blocks: [
              {
                type: 'input',
                block_id: 'reason',
                label: { type: 'plain_text', text: 'Reason' },
                element: { type: 'plain_text_input', action_id: 'text' },
              },
              {
                type: 'input',
                block_id: 'pids',
                optional: true,
                label: { type: 'plain_text', text: 'Which' },
                element: {
                  type: 'checkboxes',
                  action_id: 'pids',
                  options: [1, 2].map((n) => ({
                    text: { type: 'plain_text' as const, text: `pid ${n}` },
                    value: String(n),
                  })),
                  initial_options: [{ text: { type: 'plain_text', text: 'pid 1' }, value: '1' }],
                },
              },
            ],
          },
        });
      });
      app.view('why', async ({ ack, view }) => {
        const reason = view.state.values['reason']?.['text']?.value ?? '';
        if (reason === 'no') return ack({ response_action: 'errors', errors: { reason: 'Say more.' } });
        heard.push(
          reason,
          view.state.values['pids']?.['pids']?.selected_options?.map((o) => o.value),
          view.private_metadata,
        );
        return ack();
      });
    });
    cleanups.push(stop);

    const approver = slack.actAs(sam);
    await approver.command(channel, '/reclaim x');
    const modal = await slack.waitFor('the modal', () => approver.modal());
    expect((await approver.submit(modal)).errors).toEqual({ reason: 'Please complete this required field.' });
    expect((await approver.submit(modal, { text: 'no' })).errors).toEqual({ reason: 'Say more.' });
    expect((await approver.submit(modal, { text: 'still training', pids: ['2'] })).errors).toEqual({});
    expect(approver.modal()).toBeUndefined();
    expect(heard).toEqual(['still training', ['2'], 'r1']);
  });

  it('tells the person when the app is not there, or does not answer within three seconds', async () => {
    const slack = await world();
    const asker = slack.actAs(priya);
    expect((await asker.command(channel, '/reclaim x')).outcome).toBe('dispatch_failed');
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', () => Promise.resolve());
    });
    cleanups.push(stop);
    expect((await asker.command(channel, '/reclaim x')).outcome).toBe('operation_timeout');
    expect(asker.ephemerals(channel).map((m) => m.text)).toEqual([
      '/reclaim failed: the app is not connected (dispatch_failed).',
      '/reclaim failed: the app took longer than 3 seconds to answer (operation_timeout).',
    ]);
  });

  it('publishes a Home tab when somebody opens it', async () => {
    const slack = await world();
    const { stop } = await startApp(slack, (app) => {
      app.event('app_home_opened', async ({ event, client }) => {
        await client.views.publish({ user_id: event.user, view: { type: 'home', blocks: [{ type: 'divider' }] } });
      });
    });
    cleanups.push(stop);
    const asker = slack.actAs(priya);
    await asker.openHome();
    const home = await slack.waitFor('the Home tab', () => asker.home());
    expect(home.body['blocks']).toMatchObject([{ type: 'divider' }]);
  });

  it('shares an uploaded file in a thread', async () => {
    const slack = await world();
    const { app, stop } = await startApp(slack, () => undefined);
    cleanups.push(stop);
    const posted = await app.client.chat.postMessage({ channel, text: 'root' });
    await app.client.files.uploadV2({
      channel_id: channel,
      thread_ts: posted.ts ?? '',
      filename: 'plan.txt',
      content: 'pid 1\n',
    });
    const reply = await slack.waitFor('the file', () => slack.thread(channel, posted.ts ?? '')[1]);
    expect(reply.files[0]?.bytes.toString()).toBe('pid 1\n');
    const shown = await fetch(`${slack.url}/files/${reply.files[0]?.id}/plan.txt`);
    expect(await shown.text()).toBe('pid 1\n');
  });
});
