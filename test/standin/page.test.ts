import { existsSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LocalSlack } from '../../src/standin/local-slack.ts';
import { channel, priya, sam, startApp, startWorld } from './world.ts';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const mayRun = existsSync(executablePath) || process.env['CI'] === 'true';
if (!mayRun) console.warn('LEFT OUT: the tests of the page need chromium (set CHROMIUM to its path)');

const plain = (text: string) => ({ type: 'plain_text' as const, text });
const hostile = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>';

describe.skipIf(!mayRun)('the page', () => {
  let browser: Browser;
  let slack: LocalSlack;
  let page: Page;
  const complaints: string[] = [];
  const stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    browser = await chromium.launch({ executablePath, args });
  });
  afterAll(() => browser.close());

  beforeEach(async () => {
    slack = await startWorld({
      commands: [{ command: '/reclaim', hint: 'HOST', description: 'Look at a box', example: '/reclaim gpu-box-3' }],
    });
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.on('pageerror', (e) => complaints.push(e.message));
    page.on('console', (m) => {
      if (m.type() === 'error') complaints.push(m.text());
    });
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await page.close();
    await slack.close();
    expect(complaints.splice(0)).toEqual([]);
  });

  const open = async () => {
    await page.goto(`${slack.url}/?as=${priya}`);
    await page.getByText('You are Priya N.').waitFor();
  };

  async function startJourney(): Promise<void> {
    const confirm = {
      title: plain('Reclaim it?'),
      text: plain('41 processes end.'),
      confirm: plain('Yes, reclaim'),
      deny: plain('Not yet'),
    };
    const { stop } = await startApp(slack, (app) => {
      app.command('/reclaim', async ({ ack, command, client }) => {
        await ack();
        const elements = [
          {
            type: 'button' as const,
            text: plain('Approve'),
            action_id: 'approve',
            value: '1',
            style: 'primary' as const,
            confirm,
          },
          { type: 'button' as const, text: plain('Deny'), action_id: 'deny', value: '1' },
        ];
        const blocks = [
          { type: 'header' as const, text: plain(`Report on ${command.text}`) },
          { type: 'actions' as const, elements },
        ];
        await client.chat.postMessage({ channel: command.channel_id, text: 'report', blocks });
      });
      app.action('approve', async ({ ack, body, client }) => {
        await ack();
        if (body.type !== 'block_actions' || !body.channel || !body.message) return;
        if (body.user.id === priya) {
          await client.chat.postEphemeral({
            channel: body.channel.id,
            user: priya,
            text: 'You asked, so you cannot approve.',
          });
        } else {
          await client.chat.update({
            channel: body.channel.id,
            ts: body.message.ts,
            text: `Approved by <@${body.user.id}>.`,
            blocks: [],
          });
        }
      });
      app.action('deny', async ({ ack, body, client }) => {
        await ack();
        if (body.type !== 'block_actions') return;
        const input = {
          type: 'input' as const,
          block_id: 'why',
          label: plain('Reason'),
          element: { type: 'plain_text_input' as const, action_id: 'text' },
        };
        await client.views.open({
          trigger_id: body.trigger_id,
          view: { type: 'modal', callback_id: 'deny', title: plain('Deny'), submit: plain('Send'), blocks: [input] },
        });
      });
      app.view('deny', ({ ack, view }) =>
        view.state.values['why']?.['text']?.value === 'no'
          ? ack({ response_action: 'errors', errors: { why: 'Say more.' } })
          : ack(),
      );
    });
    stops.push(stop);
  }

  it('lets one visitor play two people: ask, be refused, become another, confirm, read the result', async () => {
    await startJourney();
    await open();
    await page.keyboard.type('/re');
    expect(await page.locator('#composer-text').inputValue()).toBe('');
    await page.locator('#composer-text').fill('/re');
    await page.getByRole('option', { name: '/reclaim' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('gpu-box-3');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Report on gpu-box-3' }).waitFor();

    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog').getByText('41 processes end.').waitFor();
    await page.getByRole('button', { name: 'Not yet' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('button', { name: 'Yes, reclaim' }).click();
    await page.getByText('You asked, so you cannot approve.').waitFor();
    await page.getByText('Only visible to you').waitFor();

    await page.locator('.persona', { hasText: 'Sam K.' }).click();
    await page.getByPlaceholder('Message as Sam').waitFor();
    expect(await page.getByText('You asked, so you cannot approve.').count()).toBe(0);
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('button', { name: 'Yes, reclaim' }).click();
    await page.getByText('Approved by @Sam K..').waitFor();
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    await page.getByText('(edited)').waitFor();
  });

  it('shows a modal, its errors beside the field, and closes it with Escape', async () => {
    await startJourney();
    await open();
    await slack.actAs(priya).command(channel, '/reclaim x');
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByLabel('Reason').fill('no');
    await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click();
    await page.getByText('Say more.').waitFor();
    expect(await page.getByLabel('Reason').inputValue()).toBe('no');
    await page.keyboard.press('Escape');
    await slack.waitFor('the modal to close', () => slack.actAs(priya).modal() === undefined);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('never lets text become markup, wherever it stands', async () => {
    await open();
    const table = { type: 'table', block_id: 't', rows: [[{ type: 'raw_text', text: hostile }]] };
    const rich = {
      type: 'rich_text',
      block_id: 'r',
      elements: [{ type: 'rich_text_preformatted', elements: [{ type: 'text', text: hostile }] }],
    };
    slack.postAsApp(hostile, channel, hostile);
    slack.postAsApp('alerts', channel, '', [
      { type: 'section', block_id: 's', text: { type: 'mrkdwn', text: `*${hostile}* <javascript:alert(1)|click>` } },
      table,
      rich,
    ]);
    slack.actAs(sam).say(channel, 'the end');
    await page.getByText('the end').waitFor();
    expect(await page.evaluate('window.hurt')).toBeUndefined();
    expect(await page.locator('#log img, #log script, #log a').count()).toBe(0);
    expect(await page.locator('#log pre').textContent()).toBe(hostile);
  });

  it('keeps replies in their thread and shows the live box beside it', async () => {
    await open();
    const root = slack.actAs(sam).say(channel, 'root *bold* `code` <@U0PRIYA>');
    slack.actAs(priya).say(channel, 'a reply', root.ts);
    await page.getByRole('button', { name: /1 reply/ }).click();
    await page.getByLabel('Thread').getByText('a reply').first().waitFor();
    expect(await page.locator('#log').getByText('a reply').count()).toBe(0);
    expect(await page.locator('#log strong').textContent()).toBe('bold');
    expect(await page.locator('#log .mention').textContent()).toBe('@Priya N.');
    await page.locator('.box-figure strong').waitFor();
    expect(await page.locator('.box-figure strong').textContent()).toMatch(/^[\d.]+ [MG]i$/);
    await page.keyboard.press('Escape');
    await page.locator('#thread').waitFor({ state: 'hidden' });
  });

  it('fits a phone without scrolling sideways, people and box a tap away', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open();
    const wide = Array.from({ length: 7 }, () => ({ type: 'raw_text', text: 'a wide cell of text' }));
    slack.postAsApp('alerts', channel, '', [{ type: 'table', block_id: 't', rows: [wide] }]);
    await page.locator('table').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    await page.getByRole('button', { name: 'Channels and people' }).click();
    await page.locator('.persona', { hasText: 'Sam K.' }).click();
    await page.getByPlaceholder('Message as Sam').waitFor();
    await page.locator('#box-chip').click();
    await page.locator('.free-table').waitFor();
    await page.getByRole('button', { name: 'Back to the channel' }).click();
    await page.locator('.free-table').waitFor({ state: 'hidden' });
  });
});
