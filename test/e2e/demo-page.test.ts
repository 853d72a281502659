/**
 * The demo as a visitor sees it: the page in a real browser, two people played by one, this machine as the box. Set
 * SCREENSHOTS to a folder to keep pictures of each stage.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from '../../src/demo/process-facts.ts';
import { channel, hostName, people, startWorld, type DemoWorld } from '../../src/demo/world.ts';

const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const mayRun = existsSync(executablePath) || process.env['CI'] === 'true';
if (!mayRun) console.warn('LEFT OUT: the demo in a browser needs chromium (set CHROMIUM to its path)');

describe.skipIf(!mayRun)('the demo in a browser', () => {
  let browser: Browser, page: Page, world: DemoWorld;
  const complaints: string[] = [];

  beforeAll(async () => {
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    [browser, world] = await Promise.all([chromium.launch({ executablePath, args }), startWorld({ logLevel: 'warn' })]);
    page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.on('pageerror', (error) => complaints.push(error.message));
  }, 90_000);

  afterAll(async () => {
    await browser.close();
    await world.close();
  });

  async function picture(name: string): Promise<void> {
    const folder = process.env['SCREENSHOTS'];
    if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
  }

  it('goes from the command to the measured result, by two people, and spares the look-alikes', async () => {
    await page.goto(`${world.slack.url}/?as=${people.asker.id}`);
    await page.locator('#composer-text').fill(`/reclaim ${hostName}`);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /^Approve/ }).waitFor({ timeout: 60_000 });
    await picture('1-report');

    // The asker may not approve her own request, and is told so where she looks.
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('On gpu-box-3: end 9 processes').waitFor();
    await picture('2-confirm');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Approve/ })
      .click();
    await page.getByText('Only visible to you').first().waitFor();
    await picture('3-refused');
    expect(world.box.now().lingering.every(isAlive)).toBe(true);

    await page.locator('.persona', { hasText: people.approver.realName }).click();
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Approve/ })
      .click();
    await page.getByText('Memory before and after').waitFor({ timeout: 90_000 });
    await picture('4-result');

    expect(await page.getByRole('button', { name: /^(Approve|Deny|Cancel)/ }).count()).toBe(0);
    const card = world.slack.messages(channel.id)[0]!;
    expect(card.text).toMatch(/before .* after .* expected .* measured /);
    expect(world.box.now().lingering.filter(isAlive)).toEqual([]);
    expect(world.box.now().innocent.every(isAlive)).toBe(true);

    await page.setViewportSize({ width: 390, height: 844 });
    await picture('5-phone');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 1280, height: 1000 });
    await picture('6-dark');
    expect(complaints).toEqual([]);
  }, 180_000);
});
