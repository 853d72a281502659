/**
 * kill -9 of gateway and workers at every change of state: right before and right after each one the table knows, all
 * processes stand at their points and are killed there. Then one new worker starts. Nothing may be lost, nothing done
 * twice, and every request must come to a true end within a minute, an interrupted run within 40 s.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestJobs } from '../../jobs/index.ts';
import { type Backend, openBackend } from '../../src/backend.ts';
import { auditEvents } from '../../src/requests/audit.ts';
import { chainProblems } from '../../src/requests/chain.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import { isOpen } from '../../src/requests/state.ts';
import type { RequestRecord } from '../../src/requests/types.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { systemClock as clock } from '../../src/system-clock.ts';
import { TestDirectory } from '../requests/fixtures.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';
import { captureOf, type Crash, crashes, crashPolicy } from './crash-world.ts';

const log = pino({ level: 'silent' });
const policy = { policy: crashPolicy, policyVersion: 'p1' };

describe.skipIf(!has('redis-server'))('kill -9 at every change of state', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-crash-'));
  const effects = join(folder, 'effects');
  const children: ChildProcess[] = [];
  const said: string[] = [];
  const ids = new Map<string, string>();
  let server: RedisServer, backend: Backend;

  beforeAll(async () => {
    writeFileSync(effects, '');
    server = await redisServer();
    backend = await openBackend({ queueUrl: server.url, clock, log });
  });
  afterAll(async () => {
    await kill();
    await backend.close(1_000);
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  async function kill(): Promise<void> {
    for (const child of children.splice(0)) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  }

  async function start(role: string): Promise<ChildProcess> {
    const program = join(import.meta.dirname, 'crash-process.ts');
    const args = ['--import', 'tsx', program, server.url, role, effects];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => {
        reject(new Error(`the ${role} ended before it was ready`));
      });
      child.stdout.on('data', (chunk: Buffer) => {
        said.push(...chunk.toString().split('\n'));
        if (said.includes('ready')) resolve();
      });
    });
    return child;
  }

  const nowhere = { look: () => Promise.resolve(), run: () => Promise.resolve() };
  /** Brings a request of this host to where the change begins. */
  async function seed({ from, to, host }: Crash): Promise<string> {
    const requests = requestService({ store: backend.store, clock, log, policy, enqueue: nowhere });
    const { record } = await requests.ask({ host, requester: { id: 'UANN' }, surface: 'slack', channel: 'C1' });
    const { id } = record;
    ids.set(host, id);
    if (from === 'draft') return id;
    const thought = think(captureOf(host), defaultThinkOptions);
    let at = await requests.looked(id, { thought, hostKey: 'SHA256:k' });
    if (from !== 'pending') {
      const decision = { id, person: { id: 'UAAA' }, surface: 'slack', verdict: 'approve' } as const;
      at = await requests.decide(decision, new TestDirectory());
    }
    if (to === 'unknown') at = (await requests.claim(id, 'a worker long gone')) ?? at;
    const past = new Date(clock.now() - 1000).toISOString();
    const over: Partial<RequestRecord> = {
      ...(to === 'expired' ? { pendingUntil: past, unusedUntil: past } : {}),
      ...(to === 'unknown' && at.run !== undefined ? { run: { ...at.run, aliveUntil: past } } : {}),
      ...(from === 'approved' && to === 'superseded' ? { policyVersion: 'an older one' } : {}),
    };
    await backend.store.update({ record: { ...at, ...over, version: at.version + 1 } });
    return id;
  }

  /** Who makes the change: a click in Slack, or a job of a worker. */
  async function push({ from, to, host }: Crash, id: string, gateway: ChildProcess): Promise<void> {
    const jobs = requestJobs(backend.queue);
    if (from === 'draft' && to !== 'cancelled' && to !== 'blocked') await jobs.look(id);
    else if (to === 'running' || (from === 'running' && to !== 'unknown') || to === 'superseded') await jobs.run(id);
    else {
      const acts: Record<string, string> = { denied: 'deny', cancelled: 'cancel', unknown: 'ask', blocked: 'look' };
      const act = acts[to] ?? 'approve';
      gateway.stdin?.write(`${JSON.stringify({ act, id, host })}\n`);
    }
  }

  const recordOf = async (host: string): Promise<RequestRecord> => (await backend.store.get(ids.get(host) ?? ''))!;
  const killsOf = (host: string): number =>
    readFileSync(effects, 'utf8')
      .split('\n')
      .filter((l) => l === host).length;

  it('loses nothing, does nothing twice, and every request comes to a true end within a minute', async () => {
    const seeded = await Promise.all(crashes.map(seed));
    const [gateway] = await Promise.all([start('gateway'), start('worker'), start('worker')]);
    for (const [n, crash] of crashes.entries()) await push(crash, seeded[n]!, gateway);
    await expect
      .poll(() => crashes.map((c) => c.host).filter((host) => !said.includes(`stopped at ${host}`)), {
        timeout: 40_000,
        interval: 50,
      })
      .toEqual([]);
    await kill();

    // What was written stands, what was not is as it was.
    for (const { point, from, to, host } of crashes) {
      expect([host, (await recordOf(host)).state]).toEqual([host, point === 'before' ? from : to]);
    }
    said.splice(0);
    await start('after the crash');
    const restartedAt = clock.now();
    const requests = requestService({ store: backend.store, clock, log, policy, enqueue: requestJobs(backend.queue) });
    const endedAt = new Map<string, number>();
    await expect
      .poll(
        async () => {
          for (const { host } of crashes) {
            const { id, state } = await recordOf(host);
            if (!isOpen(state) && !endedAt.has(host)) endedAt.set(host, clock.now() - restartedAt);
            // A card from before the crash still takes a click.
            const click = { id, person: { id: 'UAAA' }, surface: 'slack', verdict: 'deny' } as const;
            if (state === 'pending') await requests.decide(click, new TestDirectory()).catch(() => undefined);
          }
          return crashes.map((c) => c.host).filter((host) => !endedAt.has(host));
        },
        { timeout: 60_000, interval: 250 },
      )
      .toEqual([]);

    for (const { point, to, host } of crashes) {
      const record = await recordOf(host);
      const kills = killsOf(host);
      if (point === 'after' && !isOpen(record.state) && !['pending', 'approved', 'running'].includes(to)) {
        expect([host, record.state]).toEqual([host, to]);
      }
      expect(kills, `${host} kills`).toBeLessThanOrEqual(1);
      if (['denied', 'cancelled', 'expired', 'superseded', 'blocked', 'failed'].includes(record.state)) {
        expect(kills, `${host} is ${record.state}`).toBe(0);
      }
      if (record.state === 'succeeded') expect(kills, host).toBe(record.plan === null ? 0 : 1);
      // The newest state is still to be shown, or shown: nothing of it was lost with the process.
      const card = await backend.store.delivery(`${record.id}.card`);
      expect(card?.revision, host).toBeGreaterThan(0);
    }
    // Approved before the crash and never begun: it runs after it. Begun and cut off: never a second time.
    expect((await recordOf('after-pending-approved')).state).toBe('succeeded');
    expect((await recordOf('before-approved-running')).state).toBe('succeeded');
    for (const host of ['after-approved-running', 'before-running-succeeded', 'before-running-failed']) {
      expect([host, (await recordOf(host)).state]).toEqual([host, 'unknown']);
      expect(endedAt.get(host), host).toBeLessThan(40_000);
    }
    expect(killsOf('before-running-succeeded')).toBe(1);
    const events = [];
    for await (const event of auditEvents(backend.store)) events.push(event);
    expect(chainProblems(events)).toEqual([]);
  }, 150_000);
});
