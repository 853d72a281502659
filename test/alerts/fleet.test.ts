/** Sweeps of the fleet: one summary, a request only where there is something, nobody waits for the dead, nothing gets lost. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { cardsAtMost, startSweep } from '../../src/alerts/sweeps.ts';
import type { Sweep, SweepRow } from '../../src/alerts/topics.ts';
import { renderTopic } from '../../src/slack/blocks/topic.ts';
import { has, redisServer } from '../requests/servers.ts';
import { openFleet, type FleetOptions, type FleetWorld, type Kind } from './fleet-world.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function folderFor(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `reclaim-fleet-${name}-`));
  ends.push(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

async function open(options: Omit<FleetOptions, 'folder' | 'queueUrl'> & { queueUrl?: string }): Promise<FleetWorld> {
  const world = await openFleet({ queueUrl: 'pglite:memory://', ...options, folder: folderFor('world') });
  ends.push(() => world.close());
  return world;
}

const sweepOf = (world: FleetWorld, hosts: readonly string[]) =>
  startSweep(world.deps, { requester: { id: 'U0PRIYA' }, channel: 'C1', asked: 'all', hosts });

async function ended(world: FleetWorld, id: string, timeout: number): Promise<{ sweep: Sweep; rows: SweepRow[] }> {
  await vi.waitFor(
    async () => {
      expect(await world.deps.store.topics.get(id)).toHaveProperty('endedAt');
    },
    { timeout, interval: 200 },
  );
  const sweep = await world.deps.store.topics.get(id);
  if (sweep?.kind !== 'sweep') throw new Error('no sweep');
  return { sweep, rows: await world.deps.store.topics.rows(id) };
}

const names = (n: number) => Array.from({ length: n }, (_, i) => `box-${String(i).padStart(3, '0')}`);

describe('a sweep', () => {
  it('says what each host answered, opens requests only where there is something to do, and waits for no dead host', async () => {
    const hosts = names(60);
    const kinds: Record<string, Kind> = {
      'box-003': 'dead',
      'box-004': 'down',
      'box-010': 'leftover',
      'box-011': 'leftover',
    };
    const world = await open({ hosts, kindOf: (host) => kinds[host] ?? 'fine', collectMs: 5, deadlineMs: 4_000 });
    await world.work();
    const { id } = await sweepOf(world, hosts);
    await vi.waitFor(
      async () => {
        expect(await world.deps.store.topics.rows(id)).toHaveLength(59);
      },
      { timeout: 30_000, interval: 50 },
    );
    const { sweep, rows } = await ended(world, id, 30_000);
    const of = (outcome: string) => rows.filter((row) => row.outcome === outcome).map((row) => row.host);
    expect(of('something')).toEqual(['box-010', 'box-011']);
    expect(of('unreachable')).toEqual(['box-003', 'box-004']);
    expect(of('fine')).toHaveLength(56);
    expect(rows.find((row) => row.host === 'box-003')?.text).toMatch(/No answer/);
    const asked = await world.deps.store.list({ limit: 100 });
    expect(asked.map((record) => record.host).sort()).toEqual(['box-010', 'box-011']);
    expect(asked.every((record) => record.topic === id && record.requester.id === 'U0PRIYA')).toBe(true);
    const shown = renderTopic(sweep, 'sweep', { rows, request: null });
    expect(shown.kind === 'message' && shown.message.text).toMatch(
      /60 of 60 answered · 2 with something to do · 56 with nothing · 2 unreachable/,
    );
    expect(renderTopic(sweep, 'sweep_file', { rows, request: null }).kind).toBe('file');
  }, 90_000);

  it('opens no more cards than people can read', async () => {
    const hosts = names(cardsAtMost + 10);
    const world = await open({ hosts, kindOf: () => 'leftover', collectMs: 1 });
    await world.work();
    const { id } = await sweepOf(world, hosts);
    const { rows } = await ended(world, id, 60_000);
    // Looks run side by side, so a few may be past the line; each of the others says how to get its plan.
    const cards = rows.filter((row) => row.request !== undefined).length;
    expect(cards).toBeGreaterThanOrEqual(cardsAtMost);
    for (const row of rows.filter((each) => each.request === undefined))
      expect(row.text).toContain(`/reclaim ${row.host}`);
  }, 90_000);
});

describe.skipIf(!has('redis-server'))('a worker that is killed in the middle of a sweep', () => {
  it('loses nothing: every host has its answer in the end', async () => {
    const redis = await redisServer();
    ends.push(() => redis.remove());
    const hosts = names(80);
    const world = await open({ queueUrl: redis.url, hosts, kindOf: () => 'fine', collectMs: 20 });
    const folder = join(folderFor('worker'), 'w');
    mkdirSync(folder);
    const program = join(import.meta.dirname, 'fleet-worker.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', program, redis.url, folder, hosts.join(',')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    ends.push(() => child.kill('SIGKILL'));
    const { id } = await sweepOf(world, hosts);
    let begun = 0;
    child.stdout.on('data', (chunk: Buffer) => (begun += chunk.toString().split('\n').length - 1));
    await vi.waitFor(
      () => {
        expect(begun).toBeGreaterThanOrEqual(40);
      },
      { timeout: 60_000, interval: 10 },
    );
    child.kill('SIGKILL');
    await once(child, 'exit');
    const before = (await world.deps.store.topics.rows(id)).length;
    expect(before).toBeLessThan(hosts.length);
    await world.work();
    const { rows } = await ended(world, id, 90_000);
    expect(rows.map((row) => row.host)).toEqual(hosts);
    expect(rows.every((row) => row.outcome === 'fine')).toBe(true);
  }, 180_000);
});
