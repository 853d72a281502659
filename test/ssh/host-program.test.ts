/** What the box says about every way an answer can go wrong: over a road that answers as told. */
import { describe, expect, it } from 'vitest';
import { boxOver, type JournaledBox } from '../../src/ssh/host-program.ts';
import { remoteCommand, type RunOptions, type RunOutput, type Transport } from '../../src/ssh/transport.ts';
import type { Privilege } from '../../src/box.ts';
import { clock } from '../host/real-box.ts';

interface Asked {
  readonly nonce: string;
  readonly stdin: string;
  readonly options: RunOptions;
}
type Reply = Partial<Omit<RunOutput, 'stdout' | 'stderr'>> & { stdout?: string; stderr?: string };

/** Answers each run with the next reply; the last one again and again. */
function road(replies: readonly ((asked: Asked) => Reply)[]): Transport & { asked: Asked[] } {
  const asked: Asked[] = [];
  return {
    host: 'gpu-box-3',
    hostKey: 'SHA256:x',
    asked,
    close: () => Promise.resolve(),
    run: (stdin, options) => {
      const text = Buffer.from(stdin).toString();
      const now: Asked = {
        nonce: /^reclaim_host 'reclaim 1 (\w+)$|^reclaim 1 (\w+)$/m.exec(text)?.slice(1).find(Boolean) ?? '',
        stdin: text,
        options,
      };
      asked.push(now);
      const reply = (replies[asked.length - 1] ?? replies.at(-1)!)(now);
      const stdout = Buffer.from(reply.stdout ?? '');
      options.onStdout?.(stdout);
      const end = { code: 0, signal: null, truncated: false, lost: false, timedOut: false };
      return Promise.resolve({ ...end, ...reply, stdout, stderr: Buffer.from(reply.stderr ?? '') });
    },
  };
}
const box = (transport: Transport, privilege: Privilege = 'root'): JournaledBox =>
  boxOver(transport, { privilege, clock, program: '# the program' });
const order = { bootId: 'b', graceMs: 1000, protect: [], targets: [{ pid: 7, startTime: 9 }] };
const begun = ({ nonce }: Asked, rest = '') => `\n${nonce} begin 1 kill 0\n${rest}`;

describe('an answer that goes wrong', () => {
  const looking: [string, (asked: Asked) => Reply, string, RegExp][] = [
    ['is cut', (a) => ({ stdout: begun(a) }), 'host_answer_cut', /cut off/],
    ['is larger than we read', (a) => ({ stdout: begun(a), truncated: true }), 'host_answer_cut', /larger/],
    ['never comes', () => ({ timedOut: true, code: null }), 'ssh_timeout', /Nothing was changed/],
    ['ends before it began', () => ({ lost: true, code: null }), 'ssh_closed_early', /Nothing was done/],
    [
      'comes from nologin',
      () => ({ code: 1, stdout: 'This account is currently not available.\n' }),
      'ssh_no_shell',
      /no login shell/,
    ],
    ['comes from no shell', () => ({ code: 127, stderr: 'sh: not found' }), 'ssh_no_shell', /no usable sh/],
    [
      'is some noise',
      () => ({ code: 2, stderr: '\x1b[31msyntax error' }),
      'host_program_failed',
      /status 2.*syntax error/,
    ],
    [
      'is forged by a name',
      () => ({ stdout: '\nffff begin 1 collect 0\n\nffff end 0\n', code: 1 }),
      'host_program_failed',
      /did not start/,
    ],
  ];
  it.each(looking)('and %s', async (_, reply, code, sentence) => {
    const look = box(road([reply])).collect({ scope: 'memory' });
    await expect(look).rejects.toMatchObject({ code, userText: expect.stringMatching(sentence) as string });
  });

  const acting: [string, (asked: Asked) => Reply][] = [
    ['is cut', (a) => ({ stdout: begun(a) })],
    ['is lost', (a) => ({ stdout: begun(a), lost: true, code: null })],
    ['never comes', () => ({ timedOut: true, code: null })],
    ['has no word about a target', (a) => ({ stdout: begun(a, `\n${a.nonce} end 0\n`) })],
  ];
  it.each(acting)('while acting and %s: the outcome is unknown, and it is not repeated', async (_, reply) => {
    const transport = road([reply]);
    await expect(box(transport).kill(order)).rejects.toMatchObject({ code: 'ssh_lost', exitCode: 5 });
    await expect(box(transport).kill(order)).rejects.toThrow(/not known/);
    expect(transport.asked).toHaveLength(2);
  });

  it('that ends with status 255 is judged by its end frame, not by the number (G06)', async () => {
    const whole = (a: Asked) => ({ code: 255, stdout: `\n${a.nonce} begin 1 collect 0\n\n${a.nonce} end 0\n` });
    expect((await box(road([whole])).collect({ scope: 'memory' })).privileged).toBe(true);
    const cut = (a: Asked) => ({ code: 255, stdout: begun(a) });
    await expect(box(road([cut])).collect({ scope: 'memory' })).rejects.toMatchObject({ code: 'host_answer_cut' });
    await expect(box(road([cut])).kill(order)).rejects.toMatchObject({ code: 'ssh_lost' });
  });

  it.each([
    ['busy\nrun-1 kill 4711 1764536040', 'host_busy', /run-1/],
    ['rebooted\nabc', 'host_rebooted', /restarted/],
    ['no_lock\nflock is missing.', 'host_program_failed', /flock is missing/],
  ])('because the program declined: %j', async (said, code, sentence) => {
    const reply = (a: Asked) => ({ stdout: begun(a, `\n${a.nonce} error ${said}\n\n${a.nonce} end 1\n`) });
    const kill = box(road([reply])).kill(order);
    await expect(kill).rejects.toMatchObject({ code, userText: expect.stringMatching(sentence) as string });
  });
});

describe('privilege', () => {
  const refused = () => ({ code: 1, stderr: 'sudo: a password is required\n' });
  const memory = (a: Asked) => ({ stdout: `\n${a.nonce} begin 1 collect 1001\n\n${a.nonce} end 0\n` });

  it('falls back to the login user when sudo says no, says so, and does not ask again', async () => {
    const transport = road([refused, memory, memory]);
    const reader = box(transport, 'sudo');
    expect((await reader.collect({ scope: 'memory' })).privileged).toBe(false);
    await reader.collect({ scope: 'memory' });
    expect(transport.asked.map((a) => a.options.privileged)).toEqual([true, false, false]);
  });

  it.each([
    [1, 'sudo: Ein Passwort ist notwendig\n'],
    [1, 'Leider darf der Benutzer ana »/bin/sh -s« als root auf box nicht ausführen.\n'],
    [127, 'zsh:1: command not found: sudo\n'],
    [127, 'bash: Zeile 1: exec: sudo: Nicht gefunden.\n'],
  ])('knows a refusal of sudo, or that there is none, in any words (%i, %s)', async (status, stderr) => {
    const transport = road([() => ({ code: status, stderr }), memory]);
    expect((await box(transport, 'sudo').collect({ scope: 'memory' })).privileged).toBe(false);
    const root = box(road([() => ({ code: status, stderr })]), 'root').collect({ scope: 'memory' });
    await expect(root).rejects.toMatchObject({ code: status === 1 ? 'host_program_failed' : 'ssh_no_shell' });
  });

  it('sends a helper the request alone, and the login user the program', async () => {
    const transport = road([refused, memory]);
    await box(transport, 'helper').collect({ scope: 'memory' });
    const [helper, login] = transport.asked;
    expect(helper!.stdin).toMatch(/^reclaim 1 [0-9a-f]{32}\nrun /);
    expect(login!.stdin).toMatch(/^# the program\nreclaim_host 'reclaim 1 /);
    expect(login!.nonce).not.toBe(helper!.nonce);
  });

  it('has one fixed command for each mode, with nothing of the request in it', () => {
    const modes = (['root', 'none', 'sudo', 'helper'] as const).map((p) => remoteCommand(p, true));
    expect(modes).toEqual([
      'exec sh -s',
      'exec sh -s',
      'exec sudo -n /bin/sh -s',
      'exec sudo -n /usr/local/sbin/reclaim-host',
    ]);
  });
});
