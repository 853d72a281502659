/** Jump hosts, ssh config files, and one connection shared and kept between jobs: over real sshds. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HostConfig } from '../../src/config/schema.ts';
import { openSshTransport } from '../../src/ssh/ssh-transport.ts';
import { routeOf } from '../../src/ssh/ssh-config.ts';
import { offerTrust } from '../../src/ssh/trust.ts';
import { code, createFixture, refusal, sh, text } from './road-fixture.ts';
import { freePort, haveSshd, makeKey, startSshd, type Sshd } from './sshd.ts';

const fixture = createFixture();
const { dir, key } = fixture;
let box: Sshd;
let bastion: Sshd;

const at = (server: Sshd, overrides: Partial<HostConfig> = {}) =>
  fixture.host({ port: server.port, knownHosts: [fixture.knownHosts(server.knownHosts())], ...overrides });
const viaBastion = (overrides: Partial<HostConfig> = {}) => at(box, { jump: 'bastion', ...overrides });
const connections = (server: Sshd) => server.log().match(/Connection from/g)?.length ?? 0;

describe.skipIf(!haveSshd())('the road', () => {
  beforeAll(async () => {
    [box, bastion] = await Promise.all([
      startSshd({ authorized: [key.publicKey] }),
      startSshd({ authorized: [key.publicKey] }),
    ]);
  });
  afterAll(async () => {
    await fixture.end();
    await Promise.all([box.stop(), bastion.stop()]);
  });

  describe('over a jump host', () => {
    it('goes on to the box, and leaves nothing open when the job ends', async () => {
      const host = viaBastion();
      const road = fixture.road([host, at(bastion, { name: 'bastion' })]);
      const transport = await openSshTransport(road, host);
      const output = await sh(transport, 'echo $SSH_CONNECTION');
      expect(text(output.stdout)).toMatch(new RegExp(` ${box.port}\\n$`));
      await transport.close();
      await expect.poll(() => bastion.log()).toMatch(/Received disconnect|Disconnected from/);
    });

    it('shares the jump host’s connection between the boxes behind it', async () => {
      const before = connections(bastion);
      const hosts = ['a', 'b', 'c'].map((name) => viaBastion({ name }));
      const road = fixture.road([...hosts, at(bastion, { name: 'bastion' })]);
      const leases = await Promise.all(hosts.map((host) => road.lease(host.name)));
      expect(connections(bastion) - before).toBe(1);
      for (const lease of leases) lease.release();
    });

    it('verifies each hop under its own name', async () => {
      const strange = at(bastion, { name: 'bastion', knownHosts: [fixture.knownHosts('')] });
      const first = await refusal(fixture.road([viaBastion(), strange]).lease('box'));
      expect(first.code).toBe('ssh_host_key_unknown');
      expect(first.userText).toContain('reclaim trust bastion');
      const wrong = viaBastion({ knownHosts: [fixture.knownHosts(bastion.knownHosts(`[127.0.0.1]:${box.port}`))] });
      const second = await refusal(fixture.road([wrong, at(bastion, { name: 'bastion' })]).lease('box'));
      expect(second.code).toBe('ssh_host_key_changed');
      expect(second.userText).toContain('reclaim trust box');
    });

    it('says that the jump host could not go on', async () => {
      const dead = viaBastion({ port: await freePort() });
      const error = await refusal(fixture.road([dead, at(bastion, { name: 'bastion' })]).lease('box'));
      expect(error.code).toBe('ssh_refused');
      expect(error.userText).toContain('jump host bastion');
    });

    it('says that the jump host may not go on', async () => {
      const strict = await startSshd({ authorized: [key.publicKey], config: ['AllowTcpForwarding no'] });
      const error = await refusal(fixture.road([viaBastion(), at(strict, { name: 'bastion' })]).lease('box'));
      await strict.stop();
      expect(error.code).toBe('ssh_exec_refused');
      expect(error.userText).toContain('AllowTcpForwarding');
    });

    it('refuses to go round in circles', async () => {
      const a = at(box, { name: 'a', jump: 'b' });
      const b = at(bastion, { name: 'b', jump: 'a' });
      expect(await code(fixture.road([a, b]).lease('a'))).toBe('ssh_config_invalid');
    });

    it('fetches a key to trust', async () => {
      const host = viaBastion({ knownHosts: [join(dir, 'behind', 'known_hosts')] });
      const road = fixture.road([host, at(bastion, { name: 'bastion' })]);
      await (await offerTrust(road, 'box')).add();
      (await road.lease('box')).release();
    });

    it('ends the command as lost when the jump host goes away', async () => {
      const doomed = await startSshd({ authorized: [key.publicKey] });
      const host = viaBastion();
      const road = fixture.road([host, at(doomed, { name: 'bastion' })]);
      const jump = await road.lease('bastion');
      const transport = await openSshTransport(road, host);
      const running = sh(transport, 'echo up; sleep 20', {
        onStdout: () => {
          jump.item.close();
        },
      });
      expect(await running).toMatchObject({ lost: true, code: null });
      await doomed.stop();
    });
  });

  describe('kept between jobs', () => {
    it('is one connection for jobs at once and, with an idle limit, for jobs after each other', async () => {
      const before = connections(box);
      const host = at(box);
      const road = fixture.road([host], { limits: { idleMs: 5_000 } });
      for (let job = 0; job < 3; job += 1) {
        const both = await Promise.all([openSshTransport(road, host), openSshTransport(road, host)]);
        await Promise.all(both.map((transport) => sh(transport, 'true')));
        await Promise.all(both.map((transport) => transport.close()));
      }
      expect(connections(box) - before).toBe(1);
    });

    it('is given up after the idle limit, and at once without one', async () => {
      for (const idleMs of [50, 0]) {
        const host = at(box);
        const road = fixture.road([host], { limits: { idleMs } });
        const lease = await road.lease('box');
        const closed = new Promise<void>((resolve) => {
          lease.item.onClosed(resolve);
        });
        lease.release();
        await closed;
        expect(lease.item.alive).toBe(false);
        const next = await road.lease('box');
        expect(next.item).not.toBe(lease.item);
        next.release();
      }
    });

    it('is replaced unseen when it died or froze while it lay idle', async () => {
      const host = at(box);
      const road = fixture.road([host], { limits: { idleMs: 60_000, channelMs: 500, keepaliveMs: 60_000 } });
      const first = await openSshTransport(road, host);
      const { stdout } = await sh(first, 'echo $PPID');
      const frozen = Number(text(stdout));
      await first.close();
      process.kill(frozen, 'SIGSTOP');
      const second = await openSshTransport(road, host);
      const output = await sh(second, 'echo $PPID');
      process.kill(frozen, 'SIGCONT');
      expect(output.code).toBe(0);
      expect(Number(text(output.stdout))).not.toBe(frozen);
    });
  });

  it('makes a jump host’s connection anew when it froze while it lay idle', { timeout: 20_000 }, async () => {
    const host = viaBastion();
    const limits = { idleMs: 60_000, lookupMs: 0, dialMs: 600, keepaliveMs: 60_000 };
    const road = fixture.road([host, at(bastion, { name: 'bastion' })], { limits });
    const jump = await road.lease('bastion');
    const output = await jump.item.run('exec sh -s', Buffer.from('echo $PPID'), {
      ...{ timeoutMs: 5_000, maxBytes: 100, privileged: false },
    });
    jump.release();
    const frozen = Number(text(output.stdout));
    process.kill(frozen, 'SIGSTOP');
    try {
      const lease = await road.lease('box');
      expect(lease.item.alive).toBe(true);
      lease.release();
    } finally {
      process.kill(frozen, 'SIGCONT');
    }
  });

  describe('by an ssh config file', () => {
    function config(lines: readonly string[]): string {
      const file = join(dir, `config-${Math.random().toString(36).slice(2)}`);
      writeFileSync(file, lines.join('\n'));
      return file;
    }
    const named = (sshConfig: string, overrides: Partial<HostConfig> = {}) =>
      fixture.host({ address: 'gpu', port: 22, sshConfig, ...overrides });

    it('takes what nobody wrote in reclaim.yaml, and only that', async () => {
      const file = config(['Host gpu', 'HostName 127.0.0.1', 'Port 2200', 'User carol', 'HostKeyAlias gpu-alias']);
      const open = await routeOf(named(file, { defaulted: ['user', 'port'] }));
      expect(open).toMatchObject({ address: '127.0.0.1', port: 2200, user: 'carol', hostKeyAlias: 'gpu-alias' });
      const written = await routeOf(named(file, { user: 'bot' }));
      expect(written).toMatchObject({ address: '127.0.0.1', port: 22, user: 'bot' });
      const silent = await routeOf(
        named(config(['Host other', 'User x']), { user: 'bot', defaulted: ['user', 'port'] }),
      );
      expect(silent).toMatchObject({ address: 'gpu', port: 22, user: 'bot', proxyJump: [] });
    });

    it('reads the plain part without an ssh client, and refuses the rest', async () => {
      const plain = config(['Host gpu *.example !no', '  HostName = 10.0.0.9', '  ProxyJump b@jump:2222,last']);
      expect(await routeOf(named(plain), '/no/ssh')).toMatchObject({
        address: '10.0.0.9',
        proxyJump: ['b@jump:2222', 'last'],
      });
      for (const line of ['Include other', 'Match host gpu']) {
        expect(await code(routeOf(named(config([line])), '/no/ssh'))).toBe('ssh_config_invalid');
      }
    });

    it('follows Include and Match as ssh does', async () => {
      const inner = config(['Match originalhost gpu', '  HostName 127.0.0.2']);
      expect(await routeOf(named(config([`Include ${inner}`])))).toMatchObject({ address: '127.0.0.2' });
    });

    it.each([
      ['is missing', () => join(dir, 'no-config')],
      ['is wrong', () => config(['Host gpu', 'NoSuchWord 1'])],
      ['uses ProxyCommand', () => config(['Host gpu', 'ProxyCommand nc %h %p'])],
    ])('refuses a file that %s', async (_what, file) => {
      const error = await refusal(routeOf(named(file())));
      expect(error.code).toBe('ssh_config_invalid');
      expect(error.userText).toContain('Nothing was connected');
    });

    it('goes over its ProxyJump hosts, one after the other', async () => {
      const second = await startSshd({ authorized: [key.publicKey] });
      const both = fixture.knownHosts(bastion.knownHosts() + second.knownHosts() + box.knownHosts());
      const jumps = `127.0.0.1:${bastion.port},127.0.0.1:${second.port}`;
      const file = config(['Host gpu', '  HostName 127.0.0.1', `  Port ${box.port}`, `  ProxyJump ${jumps}`]);
      const host = named(file, { knownHosts: [both], defaulted: ['port'] });
      const output = await sh(await fixture.transport(host), 'echo there');
      expect(text(output.stdout)).toBe('there\n');
      expect(connections(second)).toBe(1);
      await second.stop();
    });

    it('takes its IdentityFile where reclaim.yaml names none', async () => {
      const other = makeKey(dir);
      const file = config(['Host gpu', `  IdentityFile "${other.file}"`]);
      expect(await routeOf(named(file, { defaulted: ['identity'] }))).toMatchObject({ identity: other.file });
      expect(await routeOf(named(file))).toMatchObject({ identity: key.file });
    });
  });
});
