/** The ways to root over a real sshd: granted sudo, the installed helper, its forced command, and none of them. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../../src/cli/cli.ts';
import type { Box } from '../../src/box.ts';
import type { HostConfig } from '../../src/config/schema.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { boxOver } from '../../src/ssh/host-program.ts';
import { install, planInstallation } from '../../src/ssh/install.ts';
import { systemClock } from '../../src/system-clock.ts';
import { bootId, Crowd, isAlive, targetOf } from '../host/real-box.ts';
import { code, createFixture, refusal, sh, text } from './road-fixture.ts';
import { haveSshd, isRoot, makeKey, makeUser, startSshd, type Sshd, type TestUser } from './sshd.ts';

const fixture = createFixture();
const crowd = new Crowd();
let sshd: Sshd;
let user: TestUser;

/** A path as the server and its sessions see it: it has folders of its own, so that this machine's stay as they are. */
const inside = (path: string) => `/proc/${sshd.pid}/root${path}`;
const helper = '/usr/local/sbin/reclaim-host';
const rule = '/etc/sudoers.d/reclaim';

const host = (overrides: Partial<HostConfig> = {}) =>
  fixture.host({
    ...{ port: sshd.port, user: user.name, privilege: 'helper' },
    knownHosts: [fixture.knownHosts(sshd.knownHosts())],
    ...overrides,
  });
async function open(overrides: Partial<HostConfig> = {}): Promise<Box> {
  const config = host(overrides);
  const transport = await fixture.transport(config);
  return boxOver(transport, { privilege: config.privilege, clock: systemClock });
}
const look = async (overrides: Partial<HostConfig>) => {
  const box = await open(overrides);
  const capture = await box.collect({ scope: 'full', windowSeconds: 0 });
  await box.close();
  return capture;
};
/** Sudo as an administrator grants it for the agentless way. */
const grant = (line: string) => {
  writeFileSync(inside('/etc/sudoers.d/agentless'), line === '' ? '' : `${user.name} ALL=(root) NOPASSWD: ${line}\n`, {
    mode: 0o440,
  });
};
const place = async (overrides: Partial<HostConfig> = {}) => {
  const config = host(overrides);
  await install(fixture.road([config]), config, await planInstallation(config));
};

afterAll(() => fixture.end());

describe.skipIf(!haveSshd() || !isRoot)('privilege on a box', { timeout: 60_000 }, () => {
  beforeAll(async () => {
    user = makeUser('/bin/bash');
    sshd = await startSshd({ authorized: [fixture.key.publicKey], hidden: ['/usr/local/sbin', '/etc/sudoers.d'] });
  });
  afterAll(async () => {
    crowd.end();
    await sshd.stop();
    user.remove();
  });

  it('none: reads what the account may read, and the report says what that loses', async () => {
    const bystander = await crowd.named('cicc');
    for (const privilege of ['none', 'sudo', 'helper'] as const) {
      const capture = await look({ privilege });
      expect(capture.privileged).toBe(false);
      expect(JSON.stringify(capture.files['/proc/meminfo'])).toContain('MemTotal');
      const { partial } = think(capture, defaultThinkOptions).diagnosis;
      expect(partial.join(' ')).toMatch(/root|privilege|sudo/i);
    }
    const box = await open({ privilege: 'none' });
    const order = { bootId, graceMs: 500, protect: [], targets: [targetOf(bystander)] };
    expect(await box.kill(order)).toMatchObject([
      { result: 'refused', reason: expect.stringMatching(/no permission|could not be read/) as string },
    ]);
    expect(isAlive(bystander)).toBe(true);
    await box.close();
  });

  it('cannot be placed without root, and says who can', async () => {
    const error = await refusal(place());
    expect(error.code).toBe('host_privilege');
    expect(error.userText).toContain('host-install box --print');
    expect(existsSync(inside(helper))).toBe(false);
  });

  it('granted sudo reads everything', async () => {
    grant('/bin/sh -s');
    expect((await look({ privilege: 'sudo' })).privileged).toBe(true);
  });

  it('is not placed where others may write to a folder above it', async () => {
    const chmod = (mode: string) =>
      spawnSync('nsenter', ['-m', '-t', String(sshd.pid), 'chmod', mode, '/usr/local/sbin']);
    chmod('0777');
    const error = await refusal(place());
    expect(error.userText).toMatch(/\/usr\/local\/sbin is not root's, or others may write to it/);
    chmod('0755');
    expect(existsSync(inside(helper))).toBe(false);
  });

  it('a sudoers folder with a fault is not made worse: the line is taken out again', async () => {
    const broken = inside('/etc/sudoers.d/broken');
    // sudo itself skips a line it cannot read, so the way in still works.
    writeFileSync(broken, 'this is no rule\n', { mode: 0o440 });
    const error = await refusal(place());
    expect(error.userText).toContain('taken out again');
    expect(existsSync(inside(rule))).toBe(false);
    writeFileSync(broken, '');
  });

  it('is placed root-owned with one checked line, over whatever link was there', async () => {
    const victim = join(fixture.dir, 'victim');
    writeFileSync(victim, 'untouched');
    const link = inside(helper);
    if (!existsSync(link)) symlinkSync(victim, link);
    await place();
    expect(readFileSync(victim, 'utf8')).toBe('untouched');
    const facts = (path: string) => {
      const { uid, gid, mode } = statSync(inside(path));
      return { uid, gid, mode: (mode & 0o7777).toString(8) };
    };
    expect(facts(helper)).toEqual({ uid: 0, gid: 0, mode: '755' });
    expect(facts(rule)).toEqual({ uid: 0, gid: 0, mode: '440' });
    expect(readFileSync(inside(rule), 'utf8')).toBe(`${user.name} ALL=(root) NOPASSWD: ${helper} ""\n`);
    await place();
  });

  it('the helper reads and acts as root, and that is all the account may do', async () => {
    grant('');
    expect((await look({ privilege: 'helper' })).privileged).toBe(true);
    expect((await look({ privilege: 'sudo' })).privileged).toBe(false);
    const transport = await fixture.transport(host());
    for (const command of ['sudo -n /bin/sh -s', 'sudo -n id', `sudo -n ${helper} --help`]) {
      expect((await sh(transport, command)).code).not.toBe(0);
    }
    await transport.close();
    const target = await crowd.named('cicc');
    const box = await open();
    expect(await box.kill({ bootId, graceMs: 2_000, protect: [], targets: [targetOf(target)] })).toMatchObject([
      { result: 'exited' },
    ]);
    expect(await box.sync()).toMatchObject({ state: 'done' });
    await box.close();
  });

  it('a request the helper does not understand does nothing', async () => {
    const transport = await fixture.transport(host());
    for (const request of [
      '',
      'reclaim 1 abc',
      'rm -rf /',
      `reclaim 1 ${'a'.repeat(32)}\nverb sync\n`,
      'x'.repeat(3_000_000),
    ]) {
      const output = await transport.run(Buffer.from(request), {
        ...{ timeoutMs: 20_000, maxBytes: 10_000, privileged: true },
      });
      expect({ code: output.code, stdout: text(output.stdout) }).toEqual({ code: 64, stdout: '' });
    }
    await transport.close();
  });

  it('goes on when its session is gone, also below sudo', async () => {
    const targets = [
      await crowd.named('cicc'),
      await crowd.named('ninja', 'import signal\nsignal.signal(15, signal.SIG_IGN)'),
    ];
    const stop = new AbortController();
    const transport = await fixture.transport(host(), {});
    const box = boxOver(transport, {
      privilege: 'helper',
      clock: systemClock,
      signal: stop.signal,
      run: `helper-${process.pid}`,
    });
    const order = { bootId, graceMs: 1_000, protect: [], targets: targets.map(targetOf) };
    const killing = box.kill(order, () => {
      stop.abort(new Error('gone'));
      void transport.close();
    });
    expect(await code(killing)).toBe('ssh_lost');
    const again = await open();
    await expect
      .poll(async () => (await again.journal(`helper-${process.pid}`)).lines.at(-1)?.words, { timeout: 20_000 })
      .toEqual(['end', 'kill']);
    expect(targets.map((t) => t.signalCode)).toEqual(['SIGTERM', 'SIGKILL']);
    await again.close();
  });

  it('a forced command leaves its key the helper and nothing else', async () => {
    const bound = makeKey(fixture.dir);
    const { forcedLine } = await planInstallation(host({ identity: bound.file }));
    expect(forcedLine).toBe(`restrict,command="sudo -n ${helper}" ${bound.publicKey}`);
    appendFileSync(join(sshd.dir, 'authorized_keys'), `${forcedLine}\n`);
    expect((await look({ identity: bound.file })).privileged).toBe(true);
    const transport = await fixture.transport(host({ identity: bound.file }));
    const output = await sh(transport, 'id');
    expect(output.code).toBe(64);
    expect(text(output.stdout)).not.toContain('uid=');
    await transport.close();
  });
});

describe('reclaim host-install', () => {
  const run = async (user: string, ...args: string[]) => {
    const file = join(fixture.dir, 'reclaim.yaml');
    writeFileSync(file, `hosts:\n  box: { address: 192.0.2.1, user: "${user}", identity: ${fixture.key.file} }\n`);
    const said = { out: '', err: '' };
    const exit = await cli(['host-install', 'box', ...args, '--config', file], {
      out: (text) => (said.out += text),
      err: (text) => (said.err += text),
      ask: () => Promise.resolve(null),
      ...{ env: {}, cwd: fixture.dir, columns: 100, color: false, signal: new AbortController().signal },
    });
    return { exit, ...said };
  };

  it('prints a script and the lines, and reaches for no host', async () => {
    const { exit, out, err } = await run('reclaim');
    expect(exit).toBe(0);
    expect(out).toContain('reclaim ALL=(root) NOPASSWD: /usr/local/sbin/reclaim-host ""');
    expect(out).toContain('visudo -cqf');
    expect(err).toMatch(/nothing was done there yet.*privilege: helper.*restrict,command=/s);
  });

  it('gives root no sudoers line', async () => {
    const { out } = await run('root', '--print');
    expect(out).not.toContain('visudo');
  });

  it.each(['a b', '%wheel', 'x ALL=(ALL) ALL', 'ü'])(
    'refuses the account %j, which would mean something else in sudoers',
    async (user) => {
      const { exit, out, err } = await run(user);
      expect({ exit, out }).toEqual({ exit: 2, out: '' });
      expect(err).toMatch(/user/);
    },
  );
});
