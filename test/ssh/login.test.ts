/** Getting in, and every way of not getting in, against a real OpenSSH server: each has its own code and sentence. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fingerprint } from '../../src/ssh/known-hosts.ts';
import { offerTrust } from '../../src/ssh/trust.ts';
import { code, createFixture, refusal, sh, text } from './road-fixture.ts';
import { freePort, haveSshd, makeKey, startAgent, startSshd, type Sshd } from './sshd.ts';

const fixture = createFixture();
const { dir, key } = fixture;
let sshd: Sshd;

/** A TCP server that behaves as told and is closed at the end. */
async function server(onSocket: (socket: Socket) => void): Promise<{ port: number; close: () => void }> {
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    onSocket(socket);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    port: (listener.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      listener.close();
    },
  };
}

/** A port where the handshake of TCP itself gets no answer: its owner is stopped and its queue is full. */
async function blackHole(): Promise<{ port: number; close: () => void }> {
  const listen =
    "require('net').createServer().listen({port:0,host:'127.0.0.1',backlog:1},function(){console.log(this.address().port)})";
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  child.kill('SIGSTOP');
  const fillers: Socket[] = [];
  for (let full = false; !full;) {
    const filler = connect(port, '127.0.0.1').on('error', () => undefined);
    fillers.push(filler);
    full = await Promise.race([once(filler, 'connect').then(() => false), delay(250, true)]);
  }
  return {
    port,
    close() {
      for (const filler of fillers) filler.destroy();
      child.kill('SIGKILL');
    },
  };
}

const trusting = (overrides = {}) =>
  fixture.host({ port: sshd.port, knownHosts: [fixture.knownHosts(sshd.knownHosts())], ...overrides });

describe.skipIf(!haveSshd())('logging in', () => {
  beforeAll(async () => {
    sshd = await startSshd({ authorized: [key.publicKey], hostKeys: ['ed25519', 'rsa', 'ecdsa'] });
  });
  afterAll(async () => {
    await fixture.end();
    await sshd.stop();
  });

  describe('the host key', () => {
    it('lets a box in whose key is on file, and names that key', async () => {
      const transport = await fixture.transport(trusting());
      const blob = Buffer.from(/ssh-ed25519 (\S+)/.exec(sshd.knownHosts())![1]!, 'base64');
      expect(transport.hostKey).toBe(fingerprint(blob));
      expect(text((await sh(transport, 'echo hello')).stdout)).toBe('hello\n');
      await transport.close();
    });

    it.each(['rsa', 'ecdsa'] as const)('asks the box for its %s key where only that is on file', async (type) => {
      const line = sshd
        .knownHosts()
        .split('\n')
        .find((l) => l.includes(type))!;
      const host = trusting({ knownHosts: [fixture.knownHosts(line)] });
      expect(text((await sh(await fixture.transport(host), 'echo in')).stdout)).toBe('in\n');
    });

    it('refuses a key nobody filed, showing it and the next step', async () => {
      const error = await refusal(fixture.transport(trusting({ knownHosts: [fixture.knownHosts('')] })));
      expect(error.code).toBe('ssh_host_key_unknown');
      expect(error.userText).toMatch(/box \(127\.0\.0\.1 port \d+\).*SHA256:.*Nothing was done.*reclaim trust box$/);
    });

    it('refuses another key than the one on file (G01)', async () => {
      const other = makeKey(dir).publicKey.split(' ').slice(0, 2).join(' ');
      const file = fixture.knownHosts(`[127.0.0.1]:${sshd.port} ${other}\n`);
      const error = await refusal(fixture.transport(trusting({ knownHosts: [file] })));
      expect(error.code).toBe('ssh_host_key_changed');
      expect(error.userText).toContain(`ssh-keygen -R '[127.0.0.1]:${sshd.port}' -f ${file}`);
      expect(error.userText).toContain('reclaim trust box');
    });

    it('refuses a revoked key even where it is also trusted', async () => {
      const revoked = sshd
        .knownHosts('*')
        .replace(/^/gm, '@revoked ')
        .replace(/@revoked $/, '');
      const host = trusting({ knownHosts: [fixture.knownHosts(sshd.knownHosts()), fixture.knownHosts(revoked)] });
      expect(await code(fixture.transport(host))).toBe('ssh_host_key_revoked');
    });

    it('says that it cannot check certificates where only an authority is on file', async () => {
      const authority = `@cert-authority * ${key.publicKey}\n`;
      const error = await refusal(fixture.transport(trusting({ knownHosts: [fixture.knownHosts(authority)] })));
      expect(error.code).toBe('ssh_host_key_unknown');
      expect(error.userText).toContain('@cert-authority');
    });

    it('refuses when a known_hosts file cannot be read, or a further one is missing', async () => {
      const asFolder = join(dir, 'a-folder');
      mkdirSync(asFolder);
      expect(await code(fixture.transport(trusting({ knownHosts: [asFolder] })))).toBe('ssh_known_hosts_unreadable');
      const first = fixture.knownHosts(sshd.knownHosts());
      const missing = trusting({ knownHosts: [first, join(dir, 'missing')] });
      expect(await code(fixture.transport(missing))).toBe('ssh_known_hosts_unreadable');
    });

    it('finds the key under the alias a host is filed by', async () => {
      const host = trusting({
        hostKeyAlias: 'Box-Three',
        knownHosts: [fixture.knownHosts(sshd.knownHosts('box-three'))],
      });
      expect((await sh(await fixture.transport(host), 'true')).code).toBe(0);
    });

    it('is filed by reclaim trust after a yes, and only then', async () => {
      const file = join(dir, 'new-folder', 'known_hosts');
      const host = trusting({ knownHosts: [file] });
      const road = fixture.road([host]);
      const offer = await offerTrust(road, 'box');
      expect(offer).toMatchObject({ trusted: false, file, name: `[127.0.0.1]:${sshd.port}`, keyType: 'ssh-ed25519' });
      expect(await code(road.lease('box'))).toBe('ssh_host_key_unknown');
      await offer.add();
      expect(spawnSync('ssh-keygen', ['-F', offer.name, '-f', file]).status).toBe(0);
      (await road.lease('box')).release();
      expect((await offerTrust(road, 'box')).trusted).toBe(true);
    });

    it('is not filed by reclaim trust over another one, and a file without a last line end is kept whole', async () => {
      const other = `[127.0.0.1]:${sshd.port} ${makeKey(dir).publicKey}`;
      const taken = fixture.road([trusting({ knownHosts: [fixture.knownHosts(other)] })]);
      expect(await code(offerTrust(taken, 'box'))).toBe('ssh_host_key_changed');
      const open = fixture.knownHosts(`elsewhere ${key.publicKey}`);
      await (await offerTrust(fixture.road([trusting({ knownHosts: [open] })]), 'box')).add();
      expect(readFileSync(open, 'utf8').trim().split('\n')).toHaveLength(2);
    });
  });

  describe('our own key', () => {
    it('is refused by name of user and file, and tried once', async () => {
      const stranger = makeKey(dir);
      const before = sshd.log().length;
      const error = await refusal(fixture.transport(trusting({ identity: stranger.file })));
      expect(error.code).toBe('ssh_auth_failed');
      expect(error.userText).toContain(stranger.file);
      expect(
        sshd
          .log()
          .slice(before)
          .match(/Failed publickey/g)?.length ?? 0,
      ).toBeLessThanOrEqual(1);
      expect(
        sshd
          .log()
          .slice(before)
          .match(/Connection from/g),
      ).toHaveLength(1);
    });

    it('may be encrypted; the passphrase is asked for, checked, and never shown', async () => {
      const locked = makeKey(dir, 'ed25519', 'open sesame');
      appendFileSync(join(sshd.dir, 'authorized_keys'), `${locked.publicKey}\n`);
      const host = trusting({ identity: locked.file });
      const transport = await fixture.transport(host, { passphrase: 'open sesame' });
      expect((await sh(transport, 'true')).code).toBe(0);
      const without = await refusal(fixture.transport(host));
      expect(without.code).toBe('ssh_key_unusable');
      expect(without.userText).toContain('RECLAIM_SSH_PASSPHRASE');
      const wrong = await refusal(fixture.transport(host, { passphrase: 'not it, clearly' }));
      expect(wrong.code).toBe('ssh_key_unusable');
      expect(wrong.userText).not.toContain('not it, clearly');
    });

    it('may be rsa and ecdsa', async () => {
      for (const type of ['rsa', 'ecdsa'] as const) {
        const pair = makeKey(dir, type);
        appendFileSync(join(sshd.dir, 'authorized_keys'), `${pair.publicKey}\n`);
        expect((await sh(await fixture.transport(trusting({ identity: pair.file })), 'true')).code).toBe(0);
      }
    });

    it.each([
      ['is missing', () => join(dir, 'nowhere')],
      ['is the public half', () => key.publicFile],
      [
        'is no key at all',
        () => {
          const file = join(dir, 'noise');
          writeFileSync(file, 'not a key\n');
          return file;
        },
      ],
    ])('that %s is said before anything is dialled', async (_what, identity) => {
      const before = sshd.log().length;
      expect(await code(fixture.transport(trusting({ identity: identity() })))).toBe('ssh_key_unusable');
      expect(sshd.log().slice(before)).not.toContain('Connection from');
    });

    it('comes out of a full agent as the one that is named', async () => {
      const agent = await startAgent(dir);
      try {
        for (let n = 0; n < 8; n += 1) agent.add(makeKey(dir));
        agent.add(key);
        const host = trusting({ agentIdentity: key.publicFile });
        const before = sshd.log().length;
        const transport = await fixture.transport(host, { agentSocket: agent.socket });
        expect((await sh(transport, 'true')).code).toBe(0);
        expect(sshd.log().slice(before)).not.toContain('Failed publickey');
        const absent = trusting({ agentIdentity: makeKey(dir).publicFile });
        expect(await code(fixture.transport(absent, { agentSocket: agent.socket }))).toBe('ssh_key_unusable');
      } finally {
        agent.stop();
      }
      const host = trusting({ agentIdentity: key.publicFile });
      expect(await code(fixture.transport(host, { agentSocket: join(dir, 'no-agent') }))).toBe('ssh_key_unusable');
      expect(await code(fixture.transport(host))).toBe('ssh_key_unusable');
    });
  });

  describe('the way there', () => {
    it.each([
      ['a name that is none', { address: 'no-such-box.invalid', port: 22 }, 'ssh_name_unresolved'],
      ['an address no packet is sent to', { address: '255.255.255.255', port: 22 }, 'ssh_unreachable'],
    ])('%s', async (_what, place, expected) => {
      const error = await refusal(fixture.transport(fixture.host(place)));
      expect(error.code).toBe(expected);
      expect(error.userText).toContain(place.address);
      expect(error.retryable).toBe(true);
    });

    it('a port nobody listens on', async () => {
      expect(await code(fixture.transport(fixture.host({ port: await freePort() })))).toBe('ssh_refused');
    });

    it('a box that swallows the connection attempt', async () => {
      const hole = await blackHole();
      const error = await refusal(fixture.transport(fixture.host({ port: hole.port }), { limits: { dialMs: 300 } }));
      hole.close();
      expect(error.code).toBe('ssh_timeout');
      expect(error.userText).toContain('within 0.3 s');
    });

    it('a server that accepts and says nothing (G07)', async () => {
      const mute = await server(() => undefined);
      const started = performance.now();
      const error = await refusal(
        fixture.transport(fixture.host({ port: mute.port }), { limits: { handshakeMs: 300 } }),
      );
      mute.close();
      expect(error.code).toBe('ssh_stalled');
      expect(error.userText).toMatch(/said nothing within 0\.3 s.*swapping/);
      expect(performance.now() - started).toBeLessThan(25_000);
    });

    it('a server that greets and then stalls', async () => {
      const slow = await server((socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'));
      const error = await refusal(
        fixture.transport(fixture.host({ port: slow.port }), { limits: { handshakeMs: 300 } }),
      );
      slow.close();
      expect(error.code).toBe('ssh_stalled');
      expect(error.userText).toContain('did not finish');
    });

    it.each([
      ['closes at once', (socket: Socket) => socket.destroy(), 'ssh_closed_early'],
      ['says it has too many', (socket: Socket) => socket.end('Exceeded MaxStartups\r\n'), 'ssh_closed_early'],
      ['greets and closes', (socket: Socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'), 'ssh_closed_early'],
      ['is a web server', (socket: Socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'ssh_closed_early'],
    ])('a server that %s', async (_what, behave, expected) => {
      const odd = await server(behave);
      expect(await code(fixture.transport(fixture.host({ port: odd.port }), { limits: { retryMs: 1 } }))).toBe(
        expected,
      );
      odd.close();
    });

    it('a server with old algorithms only (G08): its offer is shown, nothing old is switched on', async () => {
      const old = await startSshd({
        authorized: [key.publicKey],
        hostKeys: ['rsa'],
        config: ['HostKeyAlgorithms ssh-rsa'],
      });
      const host = fixture.host({ port: old.port, knownHosts: [fixture.knownHosts(old.knownHosts())] });
      const error = await refusal(fixture.transport(host));
      await old.stop();
      expect(error.code).toBe('ssh_no_shared_algorithm');
      expect(error.userText).toContain('It offers: ssh-rsa');
      expect(error.retryable).toBe(false);
    });

    it('a box that lost the type of key on file is taken for another box', async () => {
      const host = trusting({
        knownHosts: [fixture.knownHosts(`[127.0.0.1]:${sshd.port} ${makeKey(dir, 'rsa').publicKey}`)],
      });
      expect(await code(fixture.transport(host))).toBe('ssh_host_key_changed');
      const single = await startSshd({ authorized: [key.publicKey] });
      const rsa = makeKey(dir, 'rsa').publicKey;
      const gone = fixture.host({
        port: single.port,
        knownHosts: [fixture.knownHosts(`[127.0.0.1]:${single.port} ${rsa}`)],
      });
      const error = await refusal(fixture.transport(gone));
      await single.stop();
      expect(error.code).toBe('ssh_host_key_changed');
      expect(error.userText).toContain('ssh-ed25519');
    });

    it('is given up at once when the caller stops', async () => {
      const mute = await server(() => undefined);
      const road = fixture.road([fixture.host({ port: mute.port })]);
      const stop = new AbortController();
      const waiting = road.lease('box', stop.signal);
      stop.abort(new Error('enough'));
      await expect(waiting).rejects.toThrow('enough');
      mute.close();
    });
  });
});
