/**
 * A real memory hog on this machine under the watcher: the incident opens, the diagnosis names the hog, people approve, its
 * memory comes back, the incident ends. Measured again later, the box is short once more, and it goes on. All of it in one
 * thread. Only Slack is a stand-in.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { startDemoBox } from '../../src/demo/box.ts';
import { makeLeftovers, type Leftovers } from '../../src/demo/leftovers.ts';
import { isAlive } from '../../src/demo/process-facts.ts';
import { buttonLabels, messageText } from '../../src/demo/transcript.ts';
import { serve, type Server } from '../../src/serve.ts';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import type { Message } from '../../src/standin/model.ts';

const channel = 'C0ALERTS';
const host = 'gpu-box-3';
const hogMiB = 1536;

/** Available memory of this machine, in per cent. */
function availablePercent(): number {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
  return (of('MemAvailable') / of('MemTotal')) * 100;
}

describe('a memory hog under the watcher', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-incident-'));
  let box: Awaited<ReturnType<typeof startDemoBox>>,
    slack: LocalSlack,
    server: Server,
    hog: Leftovers | undefined,
    second: Leftovers | undefined;

  function config(alerts: Record<string, unknown>): Config {
    const yaml = {
      hosts: {
        [host]: {
          ...{ address: '127.0.0.1', port: box.port, user: box.user, identity: box.identityFile },
          ...{ knownHosts: [join(folder, 'known_hosts')], privilege: userInfo().uid === 0 ? 'root' : 'sudo' },
        },
      },
      policy: { approvers: ['U0BO'], grace: '3s', required: { kill_others: 1 } },
      alerts,
    };
    writeFileSync(join(folder, 'reclaim.yaml'), stringify(yaml));
    const env = {
      ...{ SLACK_BOT_TOKEN: 'xoxb-e2e', SLACK_APP_TOKEN: 'xapp-e2e', SLACK_API_URL: slack.apiUrl },
      ...{ HTTP_PORT: '0', LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error', RECLAIM_DATA_DIR: join(folder, 'data') },
    };
    return loadConfig({ cwd: folder, env });
  }

  beforeAll(async () => {
    box = await startDemoBox({ folder });
    writeFileSync(join(folder, 'known_hosts'), `${box.knownHostsLine}\n`);
    slack = await startLocalSlack({
      people: [{ id: 'U0BO', name: 'bo', realName: 'Bo' }],
      channels: [{ id: channel, name: 'alerts' }],
      botToken: 'xoxb-e2e',
      appToken: 'xapp-e2e',
    });
    server = await serve(config({ channel }), 'all');
  }, 90_000);
  afterAll(async () => {
    await hog?.dispose();
    await second?.dispose();
    await server.stop();
    await slack.close();
    await box.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  const roots = (): Message[] => slack.messages(channel).filter((m) => m.threadTs === undefined);

  it('opens, names the hog, asks, frees, ends, is measured again, and reopens when it came back, all in one thread', async () => {
    // The bot is up and counts in what is available now; the hog takes some 6 % of 24 GiB from there.
    const share = (hogMiB * 1024 * 100) / Number(/(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);
    const present = availablePercent();
    const watch = {
      ...{ every: '1s', for: 2 },
      available_below: `${(present - share * 0.6).toFixed(1)}%`,
      recover_above: `${(present - share * 0.45).toFixed(1)}%`,
    };
    const measure_again_after = ['2s', '40s'];
    expect(await server.reload(() => config({ channel, watch, measure_again_after }))).toBe('done');
    hog = await makeLeftovers({ totalMiB: hogMiB, cacheMiB: 0 });

    const root = await slack.waitFor(
      'the incident',
      () => roots().find((m) => m.text.startsWith(`${host}: memory alert`)),
      {
        timeoutMs: 60_000,
      },
    );
    expect(messageText(root)).toMatch(/Memory is short: .* available/);
    const card = await slack.waitFor(
      'the plan in its thread',
      () => slack.thread(channel, root.ts).find((m) => buttonLabels(m).some((label) => label.startsWith('Approve'))),
      { timeoutMs: 60_000 },
    );
    for (const process of hog.processes) expect(messageText(card)).toContain(String(process.pid));
    await slack.waitFor('the root to say so', () => /waiting for approval/.test(root.text));

    await slack.actAs('U0BO').click(card, 'Approve', { confirm: true });
    await slack.waitFor('the incident to end', () => root.text.startsWith(`${host}: recovered`), { timeoutMs: 90_000 });
    expect(hog.processes.filter(isAlive)).toEqual([]);
    expect(hog.lookalikes.every(isAlive)).toBe(true);
    await slack.waitFor('the end in the thread', () =>
      slack.thread(channel, root.ts).find((m) => m.ts !== root.ts && m.text.includes('recovered')),
    );
    expect(roots()).toEqual([root]);

    const said = (words: RegExp) =>
      slack.waitFor(
        `the thread to say ${words}`,
        () => slack.thread(channel, root.ts).find((m) => words.test(messageText(m))),
        {
          timeoutMs: 60_000,
        },
      );
    await said(/2 s after/);
    // From here on nobody watches: what is found is found by measuring again.
    const asleep = { ...watch, every: '1h' };
    expect(await server.reload(() => config({ channel, watch: asleep, measure_again_after }))).toBe('done');
    second = await makeLeftovers({ totalMiB: hogMiB, cacheMiB: 0 });
    await said(/40 s after.*came back|came back.*40 s after/s);
    await slack.waitFor('the same root to be open again', () => root.text.startsWith(`${host}: memory alert`));
    expect(roots()).toEqual([root]);
  }, 240_000);
});
