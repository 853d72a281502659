/** The road to this machine keeps the promises of a road: caps, time limits, nothing in an argument list. */
import { describe, expect, it } from 'vitest';
import { LocalTransport } from '../../src/ssh/local.ts';

const options = { timeoutMs: 10_000, maxBytes: 1024 * 1024, privileged: true };
const road = new LocalTransport('here', { privilege: 'root' });
const run = (script: string, more: Partial<Parameters<LocalTransport['run']>[1]> = {}) =>
  road.run(Buffer.from(script), { ...options, ...more });

describe('the road to this machine', () => {
  it('brings back status, signal and both streams', async () => {
    const output = await run('printf out; printf err >&2; exit 3');
    expect([output.code, String(output.stdout), String(output.stderr)]).toEqual([
      3,
      String(Buffer.from('out')),
      String(Buffer.from('err')),
    ]);
    expect((await run('kill -9 $$')).signal).toBe('SIGKILL');
  });

  it('reads on behind its caps, so that a noisy command ends', async () => {
    const output = await run('yes | head -c 3000000; yes | head -c 3000000 >&2; echo end', { maxBytes: 1000 });
    expect([output.code, output.stdout.length, output.truncated]).toEqual([0, 1000, true]);
    expect(output.stderr.length).toBe(64 * 1024);
  });

  it('shows the script in no argument list', async () => {
    const output = await run('secret=4711; tr "\\0" " " </proc/$$/cmdline');
    expect(Buffer.from(output.stdout).toString().trim()).toBe('sh -s');
  });

  it('stops waiting when the time is up or the work is called off', async () => {
    const late = await run('echo begun; exec sleep 2', { timeoutMs: 300 });
    expect([late.timedOut, late.lost, Buffer.from(late.stdout).toString()]).toEqual([true, false, 'begun\n']);
    const called = new AbortController();
    const off = run('echo begun; exec sleep 2', {
      signal: called.signal,
      onStdout: () => {
        called.abort();
      },
    });
    expect(await off).toMatchObject({ lost: true, timedOut: false, code: null });
  });

  it('says that there is no shell', async () => {
    const nowhere = new LocalTransport('here', { privilege: 'root', shell: ['/no/such/shell'] });
    await expect(nowhere.run(Buffer.from(''), options)).rejects.toMatchObject({ code: 'host_program_failed' });
  });
});
