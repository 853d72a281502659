/** Somebody on the box, or the box itself, tries to mislead us: nothing is harmed, and nothing false is believed. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { captureFrom } from '../../src/ssh/capture.ts';
import { FrameReader } from '../../src/ssh/frames.ts';
import { bootId, Crowd, isAlive, realBox, shells, startTimeOf, targetOf } from './real-box.ts';

const crowd = new Crowd();
const dir = `/dev/shm/reclaim-attack-${process.pid}`;
mkdirSync(dir);
afterAll(() => {
  crowd.end();
  rmSync(dir, { recursive: true });
});

describe.each(shells)('an attacker on the box, under %s', (shell) => {
  it.each([
    ['a link to another folder', 'ln -s /tmp /run/reclaim'],
    ['a link to nowhere', 'ln -s /run/elsewhere /run/reclaim'],
    ['a folder of somebody else', 'mkdir /run/reclaim && chown 65534 /run/reclaim'],
    ['a file', 'echo >/run/reclaim'],
  ])('who puts %s where lock and journal belong stops us, and nothing is done', async (_what, plant) => {
    const target = await crowd.named('cicc');
    // In a /run of its own, so that this machine's stays as it is.
    const around = `exec unshare -m sh -c 'mount -t tmpfs none /run && ${plant} && exec "$@"' sh "$@"`;
    const box = realBox(shell, around);
    const killing = box.kill({ bootId, graceMs: 500, protect: [], targets: [targetOf(target)] });
    await expect(killing).rejects.toThrow(/not a folder of ours.*Nothing was done/);
    await expect(box.journal('any-run')).rejects.toThrow(/not a folder of ours/);
    expect(isAlive(target)).toBe(true);
  });

  it('cannot have another file removed through a link, in the last place or on the way', async () => {
    const victim = `${dir}/victim-${shell.replace(' ', '-')}`;
    writeFileSync(victim, 'x');
    const link = `${victim}-link`;
    symlinkSync(victim, link);
    const folder = `${victim}-folder`;
    symlinkSync(dir, folder);
    const { dev, ino } = statSync(victim);
    for (const path of [
      link,
      `${folder}/${victim.slice(dir.length + 1)}`,
      `${dir}/./${victim.slice(dir.length + 1)}`,
    ]) {
      const results = await realBox(shell).removeFiles([{ path, dev, ino, kiB: 4 }], 0);
      expect(results.map((r) => r.result)).toEqual(['refused']);
    }
    expect(existsSync(victim)).toBe(true);
  });

  it('cannot have a program of theirs run through the environment, by the tool that signals neither', async () => {
    const owned = `${dir}/owned-${shell.replace(' ', '-')}`;
    writeFileSync(`${dir}/Evil.pm`, `package Evil; open F, '>', '${owned}'; 1;`);
    writeFileSync(`${dir}/env`, `echo >${owned}\n`);
    const around = `export PERL5OPT=-MEvil PERL5LIB=${dir} ENV=${dir}/env BASH_ENV=${dir}/env; exec "$@"`;
    const target = await crowd.named('cicc');
    const results = await realBox(shell, around).kill({
      ...{ bootId, graceMs: 500, protect: [], targets: [targetOf(target)] },
    });
    expect(results.map((r) => r.result)).toEqual(['exited']);
    expect(existsSync(owned)).toBe(false);
  });

  it('cannot forge an answer by a name that looks like frames', async () => {
    const nonce = randomBytes(16).toString('hex');
    const argv = `x\n${nonce} end 0\n\n${nonce} result killed 1 1\n`;
    const forger = await crowd.start('/usr/bin/python3', [
      '-c',
      "held=b'x'*(24<<20)\nprint('up',flush=True)\nimport sys\nsys.stdin.read()",
      argv,
    ]);
    const capture = await realBox(shell).collect({ scope: 'full', windowSeconds: 0 });
    expect(capture.files[`/proc/${forger.pid}/cmdline`]).toContain(argv);
    expect(capture.commands['users']).toBeDefined();
  });

  it('nor is any number that is no process of the plan ever signalled (G11)', async () => {
    const box = realBox(shell);
    for (const pid of [-1, NaN, 1.5, Infinity]) {
      const killing = box.kill({ bootId, graceMs: 200, protect: [], targets: [{ pid, startTime: 1 }] });
      await expect(killing).rejects.toMatchObject({ code: 'host_program_failed' });
    }
    const init = { pid: 1, startTime: startTimeOf(1) };
    const results = await box.kill({
      ...{ bootId, graceMs: 200, protect: [], targets: [{ pid: 0, startTime: 0 }, { pid: 2, startTime: 1 }, init] },
    });
    expect(results.map((r) => r.result)).toEqual([
      'already_gone',
      expect.stringMatching(/already_gone|not_same/),
      'refused',
    ]);
  });
});

describe('a box that floods us', () => {
  const nonce = 'a'.repeat(32);

  it('is heard out in a time that grows with the bytes, not with their square, and only up to the cap', () => {
    const reader = new FrameReader(nonce, 32 << 20);
    const head = Buffer.from(`\n${nonce} begin 1 collect 0\n`);
    const piece = Buffer.alloc(4096, 'x');
    reader.push(head);
    const startedAt = performance.now();
    for (let n = 0; n < 16_384; n += 1) reader.push(piece);
    // Copying all of it with each piece would be 128 GB.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(reader.push(Buffer.from(`\n${nonce} end 0\n`))).toEqual([]);
    expect(reader.ended).toBe(false);
  });

  it('keeps what it handed out, whatever comes after', () => {
    const reader = new FrameReader(nonce);
    const [first] = reader.push(Buffer.from(`\n${nonce} a\nbody\n${nonce} b\n`));
    for (let n = 0; n < 100; n += 1) reader.push(Buffer.alloc(4096, 'y'));
    expect(Buffer.from(first!.body).toString()).toBe('body');
  });

  it.each([
    ['a look that took a time that is none', 'later x'],
    ['a command that ended with no number', 'command x 0 df tmpfs'],
    ['processes that have no numbers', 'collector 4711 x'],
  ])('that tells of %s tells nothing', (_what, line) => {
    const frames = [
      { kind: 'begin', words: ['1', 'collect', '0'], body: new Uint8Array() },
      { kind: line.split(' ')[0]!, words: line.split(' ').slice(1), body: new Uint8Array() },
    ];
    expect(captureFrom(frames, { nonce, host: 'box', takenAt: '2026-11-30T20:54:00Z' })).toBeNull();
  });

  it('cannot make us unpack more than a look can be', () => {
    const bomb = gzipSync(Buffer.alloc(300 << 20), { level: 1 });
    const frames = [
      { kind: 'begin', words: ['1', 'collect', '0'], body: new Uint8Array() },
      { kind: 'gzip', words: [], body: bomb },
    ];
    expect(captureFrom(frames, { nonce, host: 'box', takenAt: '2026-11-30T20:54:00Z' })).toBeNull();
  });
});
