/** The embedded database: one owner per folder, others through its socket. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openBackend, openStore } from '../../src/backend.ts';
import { takeLock } from '../../src/requests/lock.ts';
import { connectStore, storeSocketPath } from '../../src/requests/store-socket.ts';
import { draftOf, TestClock } from './fixtures.ts';

const clock = new TestClock();
const log = pino({ level: 'silent' });
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'reclaim-embedded-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe('the lock of a data folder', () => {
  it('is held by one living process, named to the next', () => {
    const letGo = takeLock(join(dir, 'lock'));
    expect(() => takeLock(join(dir, 'lock'))).toThrow(`Process ${process.pid} has the store`);
    letGo();
    takeLock(join(dir, 'lock'))();
  });

  it('is taken over from the dead, from a reused pid, and from nonsense', async () => {
    const child = spawn('true');
    await once(child, 'exit');
    for (const left of [{ pid: child.pid, startTime: '1' }, { pid: process.pid, startTime: '1' }, 'nonsense']) {
      writeFileSync(join(dir, 'lock'), JSON.stringify(left));
      const letGo = takeLock(join(dir, 'lock'));
      expect(JSON.parse(readFileSync(join(dir, 'lock'), 'utf8'))).toMatchObject({ pid: process.pid });
      letGo();
    }
  });
});

// Opening the embedded database takes seconds, and several times that on a busy machine.
it('is reached by a pipe on Windows, by a socket in its folder elsewhere', () => {
  expect(storeSocketPath('/srv/reclaim/store', 'win32')).toMatch(/^\\\\\.\\pipe\\reclaim-[0-9a-f]{24}$/);
  expect(storeSocketPath('/srv/reclaim/store', 'darwin')).toBe('/srv/reclaim/store.sock');
  expect(storeSocketPath(`/srv/${'x'.repeat(100)}`, 'linux')).toMatch(/reclaim-[0-9a-f]{24}\.sock$/);
});

describe('the embedded store', { timeout: 120_000 }, () => {
  it('is shared by its owner through a socket only its user may open, and survives the owner', async () => {
    const queueUrl = `pglite:${join(dir, 'store')}`;
    const owner = await openBackend({ queueUrl, clock, log });
    const path = storeSocketPath(join(dir, 'store'));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await expect(openBackend({ queueUrl, clock, log })).rejects.toMatchObject({ code: 'store_busy' });

    const guest = await openStore({ queueUrl, clock });
    let wake = () => {};
    const woken = new Promise<void>((resolve) => (wake = resolve));
    guest.onDelivery(() => {
      wake();
    });
    const made = draftOf({});
    expect(await guest.create(made)).toEqual({ ok: true, record: made.record });
    await woken;
    expect(await owner.store.get('r1')).toEqual(made.record);
    expect(await guest.create(draftOf({ id: 'r2' }))).toMatchObject({ why: 'host_busy', current: { id: 'r1' } });
    expect(await guest.events({ request: 'r1', limit: 5 })).toHaveLength(1);
    expect((await guest.claimDeliveries('me', 1000, 5)).map((d) => d.view)).toEqual(['card']);
    await guest.settleDelivery('r1.card', 'me', { delivered: 1, messageTs: '1.5' });
    expect(await guest.delivery('r1.card')).toMatchObject({ messageTs: '1.5' });
    expect(await guest.undelivered()).toEqual({ count: 0, oldestAt: null });
    await guest.ping();

    await owner.close(1_000);
    await expect(guest.get('r1')).rejects.toMatchObject({ code: 'store_down' });
    expect(await connectStore(path)).toBeNull();
    const alone = await openStore({ queueUrl, clock });
    expect(await alone.get('r1')).toEqual(made.record);
    await alone.close();
    await (await openStore({ queueUrl, clock })).close();
  });

  it('refuses what another release has written', async () => {
    const queueUrl = `pglite:${join(dir, 'store')}`;
    await (await openStore({ queueUrl, clock })).close();
    const { openPglitePool } = await import('../../src/sql/pglite-pool.ts');
    const pool = await openPglitePool(join(dir, 'store'));
    await pool.query('UPDATE reclaim.meta SET version = 99');
    await pool.close();
    await expect(openStore({ queueUrl, clock })).rejects.toMatchObject({ code: 'store_schema' });
    await expect(openStore({ queueUrl, clock })).rejects.toMatchObject({ code: 'store_schema' });
  });
});
