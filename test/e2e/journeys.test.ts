/** Whole journeys on the demo's page, by several people at once and on bad days. Real browser, real processes, real box. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '../../src/demo/process-facts.ts';
import { channel, hostName, people, startWorld, type DemoWorld } from '../../src/demo/world.ts';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const mayRun = existsSync(executablePath) || process.env['CI'] === 'true';
if (!mayRun) console.warn('LEFT OUT: journeys in a browser need chromium (set CHROMIUM to its path)');

type Person = keyof typeof people;

describe.skipIf(!mayRun)('on the page', () => {
  let browser: Browser;
  let world: DemoWorld;
  const complaints: string[] = [];

  beforeAll(async () => {
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    browser = await chromium.launch({ executablePath, args });
  });
  afterAll(() => browser.close());
  beforeEach(() => {
    complaints.length = 0;
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
    await world.close();
    expect(complaints).toEqual([]);
  }, 60_000);

  /** A page of one's own, as on one's own machine. */
  async function pageOf(person: Person): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${world.slack.url}/?as=${people[person].id}`);
    return page;
  }

  async function ask(policy: Record<string, unknown> = {}): Promise<Page> {
    world = await startWorld({ logLevel: 'silent', policy });
    const page = await pageOf('asker');
    await page.locator('#composer-text').fill(`/reclaim ${hostName}`);
    await page.keyboard.press('Enter');
    await button(page, /^Approve/).waitFor();
    return page;
  }

  const button = (page: Page, name: RegExp): Locator => page.locator('#log').getByRole('button', { name });
  const inDialog = (page: Page, name: RegExp): Locator => page.getByRole('dialog').getByRole('button', { name });
  const told = (page: Page, sentence: RegExp) =>
    page.getByText('Only visible to you').locator('..').getByText(sentence);
  const card = () => world.slack.messages(channel.id)[0]!;
  const decisions = (page: Page) =>
    page.locator('#log').getByRole('button', { name: /^(Approve|Deny|Cancel|Choose|Mine)/ });
  const living = () => world.box.now().lingering.filter(isAlive).length;
  const results = () => world.slack.thread(channel.id, card().ts).filter((m) => /measured/.test(m.text));
  const picture = async (page: Page, name: string): Promise<void> => {
    const folder = process.env['SCREENSHOTS'];
    if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
  };

  it('two people who approve at the same moment make one run, and the slower one is told', async () => {
    const asker = await ask({ required: { kill: 1, kill_others: 1 } });
    const [bo, chen] = await Promise.all([pageOf('approver'), pageOf('second')]);
    for (const page of [bo, chen]) {
      await button(page, /^Approve/).click();
      await inDialog(page, /^Approve/).waitFor();
    }
    await Promise.all([bo, chen].map((page) => inDialog(page, /^Approve/).click()));
    await asker.getByText('Memory before and after').waitFor();
    const won = await Promise.all([bo, chen].map((page) => told(page, /^Approved for/).count()));
    expect(won.reduce((sum, count) => sum + count, 0)).toBe(1);
    const slower = won[0] === 1 ? chen : bo;
    await picture(slower, 'race-loser');
    await told(slower, /^Already approved by/)
      .first()
      .waitFor();
    expect(living()).toBe(0);
    expect(world.box.now().innocent.every(isAlive)).toBe(true);
    expect(await decisions(asker).count()).toBe(0);
  }, 120_000);

  it('a plan for two people waits as "1 of 2", and one person counts once', async () => {
    const asker = await ask({ required: { kill: 2, kill_others: 2 } });
    const bo = await pageOf('approver');
    for (const said of [/1 of 2/, /already/i]) {
      await button(bo, /^Approve/).click();
      await inDialog(bo, /^Approve/).click();
      await bo.getByText(said).first().waitFor();
    }
    expect(living()).toBeGreaterThan(0);
    await picture(bo, 'one-of-two');
    const chen = await pageOf('second');
    await button(chen, /^Approve/).click();
    await inDialog(chen, /^Approve/).click();
    await asker.getByText('Memory before and after').waitFor();
    expect(living()).toBe(0);
  }, 120_000);

  it('a denial takes a reason in a dialog, shows it on the card, and nothing was done', async () => {
    const asker = await ask();
    const bo = await pageOf('approver');
    await button(bo, /^Deny/).click();
    await bo
      .getByRole('dialog')
      .getByLabel(/Reason/)
      .fill('Ben still needs the objects of this build');
    await picture(bo, 'deny-dialog');
    await inDialog(bo, /^Deny/).click();
    await asker
      .getByText(/denied, nothing was done/)
      .first()
      .waitFor();
    await asker
      .getByText(/Ben still needs the objects/)
      .first()
      .waitFor();
    expect(await decisions(asker).count()).toBe(0);
    expect(living()).toBe(world.box.now().lingering.length);
    await picture(asker, 'denied');
  }, 120_000);

  it('a request nobody answers expires on its card, and nothing was done', async () => {
    const asker = await ask({ pending_ttl: '5s' });
    await asker
      .getByText(/expired, nothing was done/)
      .first()
      .waitFor();
    await expect.poll(() => decisions(asker).count()).toBe(0);
    expect(living()).toBe(world.box.now().lingering.length);
    await picture(asker, 'expired');
  }, 120_000);

  it('what is unticked in the dialog lives on, and only the rest ends', async () => {
    await ask();
    const bo = await pageOf('approver');
    await button(bo, /^Choose/).click();
    const ticks = bo.getByRole('dialog').getByRole('checkbox');
    await ticks.first().waitFor();
    const spared = bo
      .getByRole('dialog')
      .getByRole('checkbox', { name: /pid \d+/ })
      .last();
    const pid = Number(
      /pid (\d+)/.exec((await spared.getAttribute('aria-label')) ?? (await spared.locator('..').innerText()))?.[1],
    );
    expect(world.box.now().lingering.map((p) => p.pid)).toContain(pid);
    await spared.uncheck();
    await picture(bo, 'chooser');
    await inDialog(bo, /^Approve ticked/).click();
    await bo.getByText('Memory before and after').waitFor();
    expect(
      world.box
        .now()
        .lingering.filter(isAlive)
        .map((p) => p.pid),
    ).toEqual([pid]);
    await picture(bo, 'partly');
  }, 120_000);

  it('a stranger is refused kindly, and the asker withdraws with one click', async () => {
    const asker = await ask();
    const sam = await pageOf('stranger');
    await button(sam, /^Approve/).click();
    await inDialog(sam, /^Approve/).click();
    await told(sam, /approve/)
      .first()
      .waitFor();
    await button(sam, /^Cancel/).click();
    await expect.poll(() => sam.getByText('Only visible to you').count()).toBe(2);
    await picture(sam, 'stranger');
    await button(asker, /^Cancel/).click();
    await asker
      .getByText(/cancelled, nothing was done/)
      .first()
      .waitFor();
    expect(living()).toBe(world.box.now().lingering.length);
  }, 120_000);

  it('a day on which Slack fails in every way costs nothing but time: one run, one result', async () => {
    const asker = await ask();
    await asker.locator('#faults summary').click();
    const flip = (name: RegExp) => asker.locator('#faults').getByRole('button', { name }).click();
    for (const name of [/twice/, /Rate-limit/, /503/, /took effect/]) await flip(name);
    const bo = await pageOf('approver');
    await button(bo, /^Approve/).click();
    await inDialog(bo, /^Approve/).click();
    await flip(/Cut the socket/);
    await asker.getByText('Memory before and after').waitFor({ timeout: 90_000 });
    await flip(/All well/);
    await expect.poll(() => results().length, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(new Set(results().map((m) => m.text)).size).toBe(results().length);
    expect(living()).toBe(0);
    expect(world.slack.messages(channel.id).filter((m) => m.text.startsWith(`${hostName}: `))).toHaveLength(1);
    await picture(asker, 'bad-day');
  }, 180_000);
});
