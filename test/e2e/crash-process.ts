/**
 * One process of the bot for the crash test, on a real Redis. It stops dead right before or right after the one change of
 * state its host is named for (`before-pending-approved`), says so, and waits there to be killed.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { z } from 'zod';
import { requestJobs } from '../../jobs/index.ts';
import { lookJob } from '../../jobs/look.ts';
import { runJob } from '../../jobs/run.ts';
import { sweepEveryMs, sweepJob } from '../../jobs/sweep.ts';
import { openBackend } from '../../src/backend.ts';
import type { Config } from '../../src/config/schema.ts';
import { ReclaimError } from '../../src/errors.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import type { Store } from '../../src/requests/store.ts';
import { systemClock as clock } from '../../src/system-clock.ts';
import { depsWith } from '../queue/deps.ts';
import { TestDirectory } from '../requests/fixtures.ts';
import { boxOf, captureOf, crashPolicy } from './crash-world.ts';

const [url = '', role = '', effects = ''] = process.argv.slice(2);
const log = pino({ level: 'silent' });
const say = (line: string) => process.stdout.write(`${line}\n`);
const { store: real, queue } = await openBackend({ queueUrl: url, clock, log });

async function stopAt(point: string, host: string, from: string, to: string): Promise<void> {
  if (role === 'after the crash' || host !== `${point}-${from}-${to}`) return;
  say(`stopped at ${host}`);
  await new Promise(() => undefined);
}

const store: Store = new Proxy(real, {
  get(target, name) {
    const value: unknown = Reflect.get(target, name);
    if (name !== 'update') return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    return async (change: Parameters<Store['update']>[0]) => {
      const { id, host, state } = change.record;
      const from = (await target.get(id))?.state ?? '';
      if (from !== state) await stopAt('before', host, from, state);
      const written = await target.update(change);
      if (from !== state && written.ok) await stopAt('after', host, from, state);
      return written;
    };
  },
});

const policy = { policy: crashPolicy, policyVersion: 'p1' };
const requests = requestService({ store, clock, log, policy, enqueue: requestJobs(queue) });
const openBox = (host: string) => {
  if (/-(draft|running)-failed$/.test(host)) {
    return Promise.reject(new ReclaimError('ssh_refused', `${host} does not take connections. Nothing was done.`));
  }
  return Promise.resolve(
    boxOf(host, () => {
      appendFileSync(effects, `${host}\n`);
    }),
  );
};
const config = { policy: crashPolicy } as Config;
const deps = depsWith({ store, clock, log, requests, openBox, config, queue, instance: `${role} ${process.pid}` });

const order = z.object({ act: z.enum(['approve', 'deny', 'cancel', 'ask', 'look']), id: z.string(), host: z.string() });
const ana = { id: 'UANN' };
/** What people do in Slack, told on stdin by the test. */
async function obey(line: string): Promise<void> {
  const { act, id, host } = order.parse(JSON.parse(line));
  const surface = 'slack' as const;
  if (act === 'cancel') await requests.cancel(id, ana, surface);
  else if (act === 'look') {
    // A look that names no boot: nothing in it can be pinned.
    const thought = { ...think(captureOf(host), defaultThinkOptions), bootId: '' };
    await requests.looked(id, { thought, hostKey: 'SHA256:k' });
  } else if (act === 'ask') await requests.ask({ host, requester: ana, surface, channel: 'C1' });
  else await requests.decide({ id, person: { id: 'UAAA' }, surface, verdict: act }, new TestDirectory());
}

if (role === 'gateway') {
  createInterface({ input: process.stdin }).on('line', (line) => {
    obey(line).catch((error: unknown) => say(`refused ${String(error)}`));
  });
} else if (role === 'worker') await queue.work([lookJob, runJob], deps);
else {
  await queue.work([lookJob, runJob, sweepJob], deps);
  await queue.schedule(sweepJob, {}, { id: 'sweep', everyMs: sweepEveryMs });
}
say('ready');
