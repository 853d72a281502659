/** Commands over a real sshd: every way one can end, and every login shell it may start under. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBoxes } from '../../src/ssh/open-box.ts';
import { systemClock } from '../../src/system-clock.ts';
import { code, createFixture, quick, refusal, sh, text } from './road-fixture.ts';
import { greets, haveSshd, isRoot, makeUser, startSshd, type Sshd, type SshdOptions } from './sshd.ts';

const fixture = createFixture();
const { key, dir } = fixture;
let sshd: Sshd;

const at = (server: Sshd, overrides = {}) =>
  fixture.host({ port: server.port, knownHosts: [fixture.knownHosts(server.knownHosts())], ...overrides });

async function withSshd(
  config: readonly string[],
  use: (server: Sshd) => Promise<void>,
  options: Partial<SshdOptions> = {},
) {
  const server = await startSshd({ authorized: [key.publicKey], config, ...options });
  try {
    await use(server);
  } finally {
    await server.stop();
  }
}

/** The pid of the sshd process that carries the session a command runs in. */
const sessionPid = 'p=$PPID; read -r _ name _ < /proc/$p/stat; echo "$p $name"';

describe.skipIf(!haveSshd())('running commands', () => {
  beforeAll(async () => {
    sshd = await startSshd({ authorized: [key.publicKey] });
  });
  afterAll(async () => {
    await fixture.end();
    await sshd.stop();
  });

  describe('the end of a command', () => {
    it('tells status, both streams and nothing lost', async () => {
      const output = await sh(await fixture.transport(at(sshd)), 'echo out; echo err >&2; exit 3');
      expect({ ...output, stdout: text(output.stdout), stderr: text(output.stderr) }).toEqual({
        ...{ code: 3, signal: null, stdout: 'out\n', stderr: 'err\n' },
        ...{ truncated: false, lost: false, timedOut: false },
      });
    });

    it('names the signal it died of', async () => {
      const output = await sh(await fixture.transport(at(sshd)), 'kill -KILL $$');
      expect(output).toMatchObject({ code: null, signal: 'SIGKILL', lost: false, timedOut: false });
    });

    it('comes although 10 MB of stderr and 10 MB of stdout are in the way, both capped', async () => {
      const flood = 'head -c 10000000 /dev/zero >&2; head -c 10000000 /dev/zero; exit 4';
      const output = await sh(await fixture.transport(at(sshd)), flood, { maxBytes: 1_000 });
      expect(output).toMatchObject({ code: 4, truncated: true, lost: false });
      expect(output.stdout).toHaveLength(1_000);
      expect(output.stderr).toHaveLength(64 * 1024);
    });

    it('hands stdout on as it comes, whole', async () => {
      let seen = 0;
      const output = await sh(await fixture.transport(at(sshd)), 'head -c 3000000 /dev/zero', {
        maxBytes: 10,
        onStdout: (chunk) => (seen += chunk.length),
      });
      expect(seen).toBe(3_000_000);
      expect(output.truncated).toBe(true);
    });

    it('sends much on stdin and ends it', async () => {
      const script = `${'# padding\n'.repeat(40_000)}cat | wc -c\n`;
      const output = await sh(await fixture.transport(at(sshd)), script);
      expect(output).toMatchObject({ code: 0, lost: false });
    });

    it('is not waited for when only a background child still holds the output', async () => {
      const started = performance.now();
      const output = await sh(await fixture.transport(at(sshd)), 'sleep 8 & echo done');
      expect(text(output.stdout)).toBe('done\n');
      expect(output).toMatchObject({ code: 0, lost: false, timedOut: false });
      expect(performance.now() - started).toBeLessThan(25_000);
    });

    it('is not seen in time: that is said, and the next command still works, on a new connection', async () => {
      const transport = await fixture.transport(at(sshd));
      const output = await sh(transport, 'echo begun; sleep 20', { timeoutMs: 700 });
      expect(output).toMatchObject({ code: null, timedOut: true, lost: false });
      expect(text(output.stdout)).toBe('begun\n');
      expect(text((await sh(transport, 'echo again')).stdout)).toBe('again\n');
    });

    it('is lost with its session; what came is kept, and the next command takes a new connection', async () => {
      const transport = await fixture.transport(at(sshd));
      // The session's own sshd goes, as the kernel's out-of-memory killer would take it, once its output is here.
      const output = await sh(transport, `${sessionPid}; sleep 20`, {
        onStdout: (chunk) => {
          process.kill(Number.parseInt(text(chunk), 10), 'SIGKILL');
        },
      });
      expect(output).toMatchObject({ code: null, lost: true, timedOut: false });
      expect(text(output.stdout)).toContain('sshd');
      expect(text((await sh(transport, 'echo back')).stdout)).toBe('back\n');
    });

    it('is lost with a box that freezes in the middle', { timeout: 20_000 }, async () => {
      const transport = await fixture.transport(at(sshd), { limits: { keepaliveMs: 200, keepaliveMisses: 2 } });
      const started = performance.now();
      const output = await sh(transport, `${sessionPid}; kill -STOP $p; sleep 20`, { timeoutMs: 15_000 });
      expect(output).toMatchObject({ code: null, lost: true });
      expect(performance.now() - started).toBeLessThan(25_000);
    });

    it('is not waited for when the caller stops', async () => {
      const transport = await fixture.transport(at(sshd));
      const stop = new AbortController();
      const running = sh(transport, 'echo up; sleep 20', {
        signal: stop.signal,
        onStdout: () => {
          stop.abort(new Error('enough'));
        },
      });
      expect(await running).toMatchObject({ lost: true, code: null });
      await expect(sh(transport, 'true', { signal: stop.signal })).rejects.toThrow('enough');
    });
  });

  describe.skipIf(!isRoot)('under a login shell', () => {
    const shells = ['/bin/bash', '/bin/dash', '/bin/zsh', '/usr/bin/fish', '/bin/csh'].filter((s) => existsSync(s));

    it('has all the shells it should try', () => {
      if (shells.length < 5) console.warn(`LEFT OUT: only ${shells.join(', ')} are here`);
      expect(shells.length).toBeGreaterThan(process.env['CI'] === 'true' ? 4 : 1);
    });

    it.each(shells)('%s', async (shell) => {
      const user = makeUser(shell);
      try {
        for (const rc of ['.bashrc', '.zshenv', '.cshrc']) {
          writeFileSync(join(user.home, rc), 'echo noise on stdout\n');
        }
        const transport = await fixture.transport(at(sshd, { user: user.name }));
        const output = await sh(transport, 'printf "%s|" "a b" \'$x\'; id -un; exit 7');
        expect(text(output.stdout)).toMatch(new RegExp(`\\|${user.name}\\n$`));
        expect(output).toMatchObject({ code: 7, lost: false });
      } finally {
        user.remove();
      }
    });

    it.each(['/usr/sbin/nologin', '/bin/false'])('%s that is none', async (shell) => {
      const user = makeUser(shell);
      const boxes = openBoxes({
        hosts: new Map([['box', at(sshd, { user: user.name })]]),
        clock: systemClock,
        limits: quick,
      });
      try {
        const box = await boxes.openBox('box');
        const failed = await code(box.collect({ scope: 'memory', windowSeconds: 0 }));
        // /bin/false says nothing at all: that is not known to be the shell's doing.
        expect(failed).toBe(shell.endsWith('nologin') ? 'ssh_no_shell' : 'host_program_failed');
      } finally {
        boxes.close();
        user.remove();
      }
    });

    it('that dies for want of memory (G04)', async () => {
      const shell = join(sshd.dir, 'recorder');
      writeFileSync(
        shell,
        '#!/bin/sh\necho "Cannot allocate memory" >&2\necho "Failed forking a child" >&2\nexit 1\n',
        {
          mode: 0o755,
        },
      );
      const user = makeUser(shell);
      try {
        const error = await refusal(sh(await fixture.transport(at(sshd, { user: user.name })), 'true'));
        expect(error.code).toBe('ssh_out_of_memory');
        expect(error.userText).toContain('Cannot allocate memory');
        expect(error.retryable).toBe(true);
      } finally {
        user.remove();
      }
    });
  });

  describe('a server that refuses', () => {
    it('one more session (MaxSessions 1): several commands at once wait for each other', async () => {
      await withSshd(['MaxSessions 1'], async (server) => {
        const transport = await fixture.transport(at(server));
        const outputs = await Promise.all(['a', 'b', 'c'].map((word) => sh(transport, `sleep 0.1; echo ${word}`)));
        expect(outputs.map((output) => text(output.stdout))).toEqual(['a\n', 'b\n', 'c\n']);
      });
    });

    it('every session (MaxSessions 0)', async () => {
      await withSshd(['MaxSessions 0'], async (server) => {
        const error = await refusal(sh(await fixture.transport(at(server)), 'true'));
        expect(error.code).toBe('ssh_busy');
        expect(error.userText).toContain('MaxSessions');
      });
    });

    it('most logins at once (MaxStartups 2:100:2), yet all get in', { timeout: 30_000 }, async () => {
      await withSshd(['MaxStartups 2:100:2'], async (server) => {
        const hosts = Array.from({ length: 5 }, (_, n) => at(server, { name: `box${n}` }));
        const road = fixture.road(hosts, { limits: { dialsPerAddress: 5, retryMs: 150 } });
        const leases = await Promise.all(hosts.map((host) => road.lease(host.name)));
        expect(new Set(leases.map((lease) => lease.item)).size).toBe(5);
      });
    });

    it('a second proof (publickey and password)', async () => {
      await withSshd(['AuthenticationMethods publickey,password', 'PasswordAuthentication yes'], async (server) => {
        const error = await refusal(fixture.transport(at(server)));
        expect(error.code).toBe('ssh_auth_failed');
        expect(error.userText).toMatch(/second proof.*password/);
      });
    });

    it('the user by rule, with a banner that is quoted but tamed', async () => {
      const banner = join(dir, 'banner');
      writeFileSync(banner, 'Maintenance \u001b[31mtoday\n');
      await withSshd(['DenyUsers *', `Banner ${banner}`], async (server) => {
        const error = await refusal(fixture.transport(at(server)));
        expect(error.code).toBe('ssh_auth_failed');
        expect(error.userText).toContain('Maintenance');
        expect(error.userText).not.toContain('\u001b');
      });
    });
  });

  it('a server that is stopped before it greets is told from one that is not there, and found again after', async () => {
    await withSshd([], async (server) => {
      process.kill(server.pid, 'SIGSTOP');
      const road = fixture.road([at(server)], { limits: { handshakeMs: 400 } });
      expect(await code(road.lease('box'))).toBe('ssh_stalled');
      process.kill(server.pid, 'SIGCONT');
      await greets(server.port);
      (await road.lease('box')).release();
    });
  });

  it('runs the host program end to end, five boxes at a time', { timeout: 30_000 }, async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const boxes = openBoxes({
      hosts: new Map(names.map((name) => [name, at(sshd, { name })])),
      clock: systemClock,
      limits: quick,
    });
    try {
      const captures = await Promise.all(
        names.map(async (name) => {
          const box = await boxes.openBox(name);
          const capture = await box.collect({ scope: 'memory', windowSeconds: 0 });
          await box.close();
          return capture;
        }),
      );
      expect(captures.map((capture) => capture.host)).toEqual(names);
      expect(captures.every((capture) => JSON.stringify(capture.files['/proc/meminfo']).includes('MemTotal'))).toBe(
        true,
      );
    } finally {
      boxes.close();
    }
  });
});
