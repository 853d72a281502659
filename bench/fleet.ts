/**
 * `/reclaim all` over 500 stand-in hosts from one process: real store, queue and jobs, the local Slack, recorded boxes.
 * 470 answer in 200 ms, 20 of those have a leftover build, 20 refuse, 10 never answer. Promised: all that live have
 * answered within two minutes on two busy cores although ten are dead, every host is accounted for, and the channel is not flooded.
 * Usage: npx tsx bench/fleet.ts [hosts, default 500]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startGateway } from '../src/slack/gateway.ts';
import { openFleet, type Kind } from '../test/alerts/fleet-world.ts';
import { channel, priya, startWorld } from '../test/standin/world.ts';

const [count = 500] = process.argv.slice(2).map(Number);
const hosts = Array.from({ length: count }, (_, i) => `box-${String(i).padStart(4, '0')}`);
const share = (part: number) => Math.floor((count * part) / 500);
const kinds = new Map<string, Kind>();
for (const [i, host] of hosts.entries()) {
  if (i < share(10)) kinds.set(host, 'dead');
  else if (i < share(30)) kinds.set(host, 'down');
  else if (i < share(50)) kinds.set(host, 'leftover');
}
const folder = mkdtempSync(join(tmpdir(), 'reclaim-bench-fleet-'));
const slack = await startWorld();
const env = { SLACK_BOT_TOKEN: 'xoxb-local', SLACK_APP_TOKEN: 'xapp-local', SLACK_API_URL: slack.apiUrl };
const world = await openFleet({
  ...{ queueUrl: 'pglite:memory://', folder, hosts, env, collectMs: 200 },
  kindOf: (host) => kinds.get(host) ?? 'fine',
});
const { topics } = world.deps.store;
const gateway = await startGateway(world.deps, {
  botToken: env.SLACK_BOT_TOKEN,
  appToken: env.SLACK_APP_TOKEN,
  apiUrl: slack.apiUrl,
});
try {
  await world.work();
  let edits = 0;
  slack.onChange((change) => {
    if (change.type === 'message_changed') edits += 1;
  });
  let rssMiB = 0;
  const startedAt = performance.now();
  const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(1);
  await slack.actAs(priya).command(channel, '/reclaim all');
  const living = count - share(10);
  let livingAt = '';
  for (;;) {
    await sleep(500);
    rssMiB = Math.max(rssMiB, process.memoryUsage().rss / 1024 / 1024);
    const [sweep] = await topics.live('sweep');
    const rows = sweep === undefined ? [] : await topics.rows(sweep.id);
    if (livingAt === '' && rows.length >= living) livingAt = seconds();
    if (livingAt !== '' && sweep === undefined) break;
    if (performance.now() - startedAt > 240_000) break;
  }
  const endedAt = seconds();
  // The last edit and the file follow within seconds.
  const summary = await slack.waitFor(
    'the summary to be whole',
    () =>
      slack
        .messages(channel)
        .find((m) => m.text.includes(': done') && m.text.includes(`${count} of ${count} answered`)),
    { timeoutMs: 60_000 },
  );
  const posted = slack.messages(channel).length;
  process.stdout.write(
    `  ${count} hosts: the ${living} living answered in ${livingAt} s, the sweep ended after ${endedAt} s (a dead host gets 60 s)\n` +
      `  peak memory of this process ${Math.round(rssMiB)} MiB, with its database and the local Slack in it\n` +
      `  ${posted} messages posted, ${edits} edits\n` +
      `  ${summary.text.slice(0, 200)}\n`,
  );
  if (Number(livingAt) > 120 || livingAt === '' || posted > 120) process.exitCode = 1;
} finally {
  await gateway.stop();
  await world.close();
  await slack.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
