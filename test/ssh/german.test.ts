/** A box whose logins speak German, over a real sshd: the look, the kill and the refusals of sudo are read all the same. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Box, Privilege } from '../../src/box.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { boxOver } from '../../src/ssh/host-program.ts';
import type { Transport } from '../../src/ssh/transport.ts';
import { systemClock } from '../../src/system-clock.ts';
import { bootId, Crowd, isAlive, targetOf } from '../host/real-box.ts';
import { createFixture, sh, text } from './road-fixture.ts';
import { haveSshd, isRoot, makeUser, startSshd, type Sshd, type TestUser } from './sshd.ts';

/** The locale's sources (Debian: the package locales); without them there is no German to log in with. */
function haveGerman(): boolean {
  if (spawnSync('localedef', ['--version']).status === 0 && existsSync('/usr/share/i18n/locales/de_DE')) return true;
  if (process.env['CI'] === 'true') throw new Error('de_DE is missing: install locales, these tests must run in CI');
  console.warn('LEFT OUT: no localedef with de_DE on this machine, so no German login was tried');
  return false;
}

const fixture = createFixture();
const crowd = new Crowd();
let sshd: Sshd;
let user: TestUser;

const inside = (path: string) => `/proc/${sshd.pid}/root${path}`;
const grant = (line: string) => {
  // Asked for no password, sudo says "not allowed" and not "a password is required".
  const rule = line === '' ? '' : `Defaults:${user.name} !authenticate\n${user.name} ALL=(root) ${line}\n`;
  writeFileSync(inside('/etc/sudoers.d/agentless'), rule, { mode: 0o440 });
};
const road = (privilege: Privilege): Promise<Transport> =>
  fixture.transport(
    fixture.host({
      ...{ port: sshd.port, user: user.name, privilege },
      knownHosts: [fixture.knownHosts(sshd.knownHosts())],
    }),
  );
const open = async (privilege: Privilege): Promise<Box> =>
  boxOver(await road(privilege), { privilege, clock: systemClock });

afterAll(() => fixture.end());

describe.skipIf(!haveSshd() || !isRoot || !haveGerman())('a login in German', { timeout: 60_000 }, () => {
  beforeAll(async () => {
    user = makeUser('/bin/bash');
    sshd = await startSshd({
      authorized: [fixture.key.publicKey],
      config: ['SetEnv LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de'],
      hidden: ['/usr/lib/locale', '/etc/sudoers.d'],
    });
    execFileSync('localedef', ['-i', 'de_DE', '-f', 'UTF-8', inside('/usr/lib/locale/de_DE.utf8')]);
  });
  afterAll(async () => {
    crowd.end();
    await sshd.stop();
    user.remove();
  });

  it('is one: numbers have a comma, also below sudo', async () => {
    grant('/bin/sh -s');
    const transport = await road('sudo');
    for (const privileged of [false, true]) {
      expect(text((await sh(transport, 'locale decimal_point', { privileged })).stdout)).toBe(',\n');
    }
    await transport.close();
  });

  it('is looked at like any other, and acted on', async () => {
    grant('/bin/sh -s');
    const box = await open('sudo');
    const capture = await box.collect({ scope: 'full', windowSeconds: 0.3 });
    expect(capture.privileged).toBe(true);
    expect(capture.windowSeconds).toBeGreaterThanOrEqual(0.3);
    expect(capture.commands['free -k']!.stdout).toMatch(/total +used[\s\S]*^Mem:/m);
    expect(capture.commands['df tmpfs']!.stdout).toMatch(/^Filesystem/);
    const { diagnosis } = think(capture, defaultThinkOptions);
    expect(diagnosis.accounting.reduce((total, { kiB }) => total + kiB, 0)).toBe(diagnosis.memory.totalKiB);
    expect(diagnosis.partial.join(' ')).not.toMatch(/free|root|privilege/);
    const target = await crowd.named('cicc');
    const order = { bootId, graceMs: 500, protect: [], targets: [targetOf(target)] };
    expect(await box.kill(order)).toMatchObject([{ result: 'exited' }]);
    await box.close();
  });

  it.each([
    // In German where this machine has sudo's catalogue ("sudo: Ein Passwort ist notwendig").
    ['no rule for the account', '', /^sudo: \S/],
    ['a rule for another command only', '/bin/true', /\/bin\/sh/],
  ])('a refusal of sudo is told apart: %s', async (_, rule, words) => {
    grant(rule);
    const transport = await road('sudo');
    const refused = await sh(transport, 'true', { privileged: true });
    expect(refused.code).toBe(1);
    expect(text(refused.stderr)).toMatch(words);
    await transport.close();

    const box = await open('sudo');
    expect((await box.collect({ scope: 'memory' })).privileged).toBe(false);
    const bystander = await crowd.named('cicc');
    const order = { bootId, graceMs: 500, protect: [], targets: [targetOf(bystander)] };
    expect(await box.kill(order)).toMatchObject([{ result: 'refused' }]);
    expect(isAlive(bystander)).toBe(true);
    await box.close();
  });
});
