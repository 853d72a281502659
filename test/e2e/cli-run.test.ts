/** `reclaim run` as somebody types it: the program as a process, a real OpenSSH server, real leftovers, the same policy as in the channel. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { makeLeftovers, type Leftovers } from '../../src/demo/leftovers.ts';
import { isAlive } from '../../src/demo/process-facts.ts';
import { runReportSchema } from '../../src/memory/contract.ts';
import { freePort, has } from '../requests/servers.ts';
import { makeKey, startSshd, type Sshd } from '../ssh/sshd.ts';

const root = resolve(import.meta.dirname, '../..');
const me = userInfo().username;

describe.skipIf(!has('sshd'))('reclaim run', { timeout: 90_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-cli-run-'));
  let sshd: Sshd, leftovers: Leftovers, identity: string;
  let serial = 0;

  beforeAll(async () => {
    const key = makeKey(folder);
    identity = key.file;
    sshd = await startSshd({ authorized: [key.publicKey] });
    writeFileSync(join(folder, 'known_hosts'), sshd.knownHosts());
    leftovers = await makeLeftovers({ totalMiB: 300, cacheMiB: 0 });
  }, 60_000);
  afterAll(async () => {
    await leftovers.dispose();
    await sshd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs the program with a policy of its own and an empty store; nobody sits at the terminal. */
  async function reclaim(
    args: string[],
    policy: object,
    more: { channel?: string; port?: number; data?: string } = {},
  ): Promise<{ code: number | null; out: string; err: string; data: string }> {
    const data = more.data ?? join(folder, `data-${(serial += 1)}`);
    const file = `${data}.yaml`;
    const host = {
      ...{ address: '127.0.0.1', port: more.port ?? sshd.port, user: me, identity },
      privilege: userInfo().uid === 0 ? 'root' : 'none',
    };
    writeFileSync(
      file,
      stringify({
        defaults: { knownHosts: [join(folder, 'known_hosts')] },
        hosts: { 'gpu-box-3': host },
        policy: { grace: '3s', ...policy },
        ...(more.channel === undefined ? {} : { alerts: { channel: more.channel } }),
      }),
    );
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args, '--config', file], {
      cwd: root,
      env: { ...process.env, RECLAIM_DATA_DIR: data, QUEUE_URL: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    await once(child, 'close');
    return { code: child.exitCode, out, err, data };
  }
  const run = (flags: string[], ...rest: [object, { channel?: string; port?: number }?]) =>
    reclaim(['run', 'gpu-box-3', ...flags], ...rest);
  const untouched = () => leftovers.processes.every(isAlive);

  const mine = { approvers: ['U0ME'], people: { [me]: 'U0ME' }, self_approval: 'always' };

  it('refuses a Unix user nobody mapped, and touches nothing', async () => {
    const said = await run(['--yes', '--json'], { approvers: ['U0ME'] });
    expect(said.code).toBe(3);
    expect(runReportSchema.parse(JSON.parse(said.out))).toMatchObject({ outcome: 'refused', steps: [] });
    expect(said.err).toMatch(/reclaim: .*Nothing was done/);
    expect(untouched()).toBe(true);
  });

  it('refuses the asker where he may not approve his own, and where nobody may approve', async () => {
    const own = await run(['--yes'], { ...mine, self_approval: 'never' });
    expect(own).toMatchObject({ code: 3 });
    expect(own.err).toMatch(/You asked for this yourself.*Nothing was done/);
    const nobody = await run(['--yes'], { people: { [me]: 'U0ME' } });
    expect(nobody).toMatchObject({ code: 3 });
    expect(nobody.err).toMatch(/approver/);
    expect(untouched()).toBe(true);
  });

  it('asks, and where nobody can answer does nothing', async () => {
    const said = await run([], mine);
    expect(said).toMatchObject({ code: 3 });
    expect(said.err).toMatch(/no terminal.*--yes.*Nothing was done/s);
    expect(untouched()).toBe(true);
  });

  it('hands over to the channel what one person may not decide alone', async () => {
    const two = { ...mine, approvers: ['U0ME', 'U0BO'], required: { kill: 2, kill_others: 2 } };
    const said = await run(['--yes'], two, { channel: 'C0GPU' });
    expect(said).toMatchObject({ code: 3 });
    expect(said.err).toMatch(/Your approval counts.*waits in Slack channel C0GPU/s);
    const history = await reclaim(['history', '--json'], two, { channel: 'C0GPU', data: said.data });
    expect(JSON.parse(history.out)).toMatchObject({ requests: [{ state: 'pending' }] });
    const alone = await run(['--yes'], two);
    expect(alone).toMatchObject({ code: 3 });
    expect(alone.err).toMatch(/withdrawn.*alerts\.channel/s);
    expect(untouched()).toBe(true);
  });

  it('tells a box that is not there by its exit code', async () => {
    const said = await run(['--yes', '--json'], mine, { port: await freePort() });
    expect(said).toMatchObject({ code: 4, out: '' });
    expect(said.err).toMatch(/Nothing was done/);
  });

  it('shows on a dry run what it would do, by the same path, and does nothing', async () => {
    const said = await run(['--dry-run', '--json'], mine);
    expect(said.code).toBe(0);
    const report = runReportSchema.parse(JSON.parse(said.out));
    expect(report).toMatchObject({ outcome: 'dry_run', steps: [{ action: 'kill', state: 'not_run' }, {}] });
    expect(untouched()).toBe(true);
  });

  it('ends exactly what it showed, measures it, and is in the history with its receipt', async () => {
    const said = await run(['--yes', '--json'], mine);
    expect(said.err).toMatch(/asking 9 processes to end/);
    const report = runReportSchema.parse(JSON.parse(said.out));
    expect(report.outcome).toBe('succeeded');
    expect(said.code).toBe(0);
    expect(report.steps[0]?.targets).toHaveLength(9);
    expect(leftovers.processes.filter(isAlive)).toEqual([]);
    expect(leftovers.lookalikes.every(isAlive)).toBe(true);
    const history = await reclaim(['history', 'gpu-box-3'], mine, { data: said.data });
    expect(history.out).toMatch(/gpu-box-3.*succeeded/s);
  });
});
