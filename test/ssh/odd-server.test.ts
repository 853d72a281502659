/** What OpenSSH can hardly be brought to do: a scripted ssh server that refuses, stalls and vanishes on cue, and that writes down every word it is asked. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Server, utils, type AcceptConnection, type Connection, type ServerChannel, type Session } from 'ssh2';
import { code, createFixture, refusal, sh, text } from './road-fixture.ts';
import type { HostConfig } from '../../src/config/schema.ts';

type OnSession = (accept: AcceptConnection<Session>, reject: () => void, connection: Connection) => void;

const fixture = createFixture();
const hostKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' });
const asked: string[] = [];
let server: Server;
let onSession: OnSession;
let logins = 0;

function knownLine(port: number, pem: string | Buffer): string {
  const key = utils.parseKey(pem);
  if (key instanceof Error) throw key;
  return `[127.0.0.1]:${port} ssh-rsa ${key.getPublicSSH().toString('base64')}\n`;
}

function host(overrides: Partial<HostConfig> = {}): HostConfig {
  const { port } = server.address() as AddressInfo;
  return fixture.host({ port, knownHosts: [fixture.knownHosts(knownLine(port, hostKey))], ...overrides });
}

/** Accepts a session and hands each exec request to `answer`, noting everything asked for on the way. */
const executing =
  (answer: (accept: () => ServerChannel, reject: () => void, connection: Connection) => void): OnSession =>
  (accept, _reject, connection) => {
    const session = accept();
    for (const extra of ['pty', 'env', 'shell', 'x11', 'auth-agent', 'sftp', 'subsystem'] as const) {
      session.on(extra as 'shell', () => asked.push(`unwanted ${extra}`));
    }
    session.on('exec', (ok, no, info) => {
      asked.push(info.command);
      answer(ok, no, connection);
    });
  };

describe('an ssh server that', () => {
  beforeAll(async () => {
    server = new Server({ hostKeys: [hostKey] }, (connection) => {
      logins += 1;
      connection.on('error', () => undefined);
      connection.on('authentication', (context) => {
        if (context.method === 'publickey') context.accept();
        else context.reject(['publickey']);
      });
      connection.on('session', (accept, reject) => {
        onSession(accept, reject, connection);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    asked.length = 0;
    logins = 0;
  });
  afterAll(async () => {
    await fixture.end();
    server.close();
  });

  it.each([
    ['root', false, 'exec sh -s'],
    ['root', true, 'exec sh -s'],
    ['none', true, 'exec sh -s'],
    ['sudo', false, 'exec sh -s'],
    ['sudo', true, 'exec sudo -n /bin/sh -s'],
    ['helper', true, 'exec sudo -n /usr/local/sbin/reclaim-host'],
  ] as const)(
    'is asked with privilege %s (privileged: %s) for "%s" and nothing else',
    async (privilege, privileged, command) => {
      onSession = executing((accept) => {
        const channel = accept();
        channel.pipe(channel, { end: false });
        channel.on('end', () => {
          channel.exit(0);
          channel.end();
        });
      });
      const transport = await fixture.transport(host({ privilege }));
      const output = await sh(transport, 'secret words', { privileged });
      expect(asked).toEqual([command]);
      expect(text(output.stdout)).toBe('secret words');
    },
  );

  it('refuses to run a command', async () => {
    onSession = executing((_accept, reject) => {
      reject();
    });
    const error = await refusal(sh(await fixture.transport(host()), 'true'));
    expect(error.code).toBe('ssh_exec_refused');
    expect(error.retryable).toBe(false);
  });

  it('opens no session: said as busy, after a few tries on the same login', async () => {
    let sessions = 0;
    onSession = (_accept, reject) => {
      sessions += 1;
      reject();
    };
    expect(await code(sh(await fixture.transport(host()), 'true'))).toBe('ssh_busy');
    expect(logins).toBe(1);
    expect(sessions).toBe(3);
  });

  it('answers the request for a session with silence', async () => {
    onSession = () => undefined;
    const transport = await fixture.transport(host(), { limits: { channelMs: 200 } });
    const error = await refusal(sh(transport, 'true'));
    expect(error.code).toBe('ssh_stalled');
    expect(error.userText).toContain('started no command within 0.2 s');
  });

  it('is given four commands at once over one connection; more wait for one of them to end', async () => {
    let open = 0;
    let most = 0;
    let goOn: (() => void)[] = [];
    onSession = executing((accept) => {
      const channel = accept();
      channel.resume();
      most = Math.max(most, (open += 1));
      goOn.push(() => {
        open -= 1;
        channel.exit(0);
        channel.end();
      });
    });
    const transport = await fixture.transport(host());
    const runs = Array.from({ length: 9 }, () => sh(transport, 'true'));
    for (let done = 0; done < 9;) {
      await expect.poll(() => goOn.length).toBe(Math.min(4, 9 - done));
      done += goOn.length;
      const now = goOn;
      goOn = [];
      for (const end of now) end();
    }
    expect((await Promise.all(runs)).every((output) => output.code === 0)).toBe(true);
    expect([most, logins]).toEqual([4, 1]);
  });

  it('hangs up on everybody: no more than a few logins are under way at once, and each comes to an end', async () => {
    let most = 0;
    const held: Socket[] = [];
    const rude = createServer((socket) => {
      socket.on('error', () => undefined);
      most = Math.max(most, held.push(socket));
    });
    rude.listen(0, '127.0.0.1');
    await once(rude, 'listening');
    const { port } = rude.address() as AddressInfo;
    const hosts = Array.from({ length: 5 }, (_, n) => ({ ...host(), name: `box${n}`, port }));
    const road = fixture.road(hosts, { limits: { dialsPerAddress: 3, retryMs: 1 } });
    const state = { over: false };
    const all = Promise.all(hosts.map(({ name }) => code(road.lease(name)))).finally(() => (state.over = true));
    // Between two looks, whoever may come has come.
    while (!state.over) {
      await expect.poll(() => state.over || held.length > 0, { interval: 100 }).toBe(true);
      for (const socket of held.splice(0)) socket.destroy();
    }
    const ends = await all;
    expect(new Set(ends)).toEqual(new Set(['ssh_closed_early']));
    expect(most).toBeLessThanOrEqual(3);
    rude.close();
  });

  it('takes the login and is gone before a shell starts', async () => {
    onSession = (_accept, _reject, connection) => connection.end();
    const error = await refusal(sh(await fixture.transport(host()), 'true'));
    expect(error.code).toBe('ssh_closed_early');
    expect(error.userText).toMatch(/accepted the login and then closed.*Nothing was done there/);
  });

  it('is gone in the middle of a session that carried commands before: the next one goes over a new login', async () => {
    let runs = 0;
    onSession = (accept, reject, connection) => {
      runs += 1;
      if (runs === 2) connection.end();
      else {
        executing((ok) => {
          const channel = ok();
          channel.resume();
          channel.exit(0);
          channel.end();
        })(accept, reject, connection);
      }
    };
    const transport = await fixture.transport(host());
    expect((await sh(transport, 'one')).code).toBe(0);
    expect((await sh(transport, 'two')).code).toBe(0);
    expect({ runs, logins }).toEqual({ runs: 3, logins: 2 });
  });

  it('ends a session without saying how: the outcome is not known', async () => {
    onSession = executing((accept) => {
      const channel = accept();
      channel.resume();
      channel.write('half an ans');
      channel.end();
      channel.close();
    });
    const output = await sh(await fixture.transport(host()), 'true');
    expect(output).toMatchObject({ lost: true, code: null });
    expect(text(output.stdout)).toBe('half an ans');
  });

  it('proves another key after a loss: the job does not go on, though that key is trusted too', async () => {
    onSession = executing((accept, _reject, connection) => {
      accept();
      connection.end();
    });
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      type: 'pkcs1',
      format: 'pem',
    });
    const twin = new Server({ hostKeys: [other] }, (connection) => {
      connection
        .on('error', () => undefined)
        .on('authentication', (context) => {
          context.accept();
        });
    });
    twin.listen(0, '127.0.0.1');
    await once(twin, 'listening');
    let behind = server;
    const front = createServer((socket) => {
      const onwards = connect((behind.address() as AddressInfo).port, '127.0.0.1');
      socket
        .on('error', () => onwards.destroy())
        .pipe(onwards.on('error', () => socket.destroy()))
        .pipe(socket);
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const { port } = front.address() as AddressInfo;
    const known = [fixture.knownHosts(knownLine(port, hostKey) + knownLine(port, other))];
    const transport = await fixture.transport(fixture.host({ port, knownHosts: known }));
    expect((await sh(transport, 'true')).lost).toBe(true);
    behind = twin;
    const error = await refusal(sh(transport, 'true'));
    expect(error.code).toBe('ssh_host_key_changed');
    expect(error.userText).toContain(transport.hostKey);
    front.close();
    twin.close();
  });
});
