/** Attacks from the box: answers that lie, flood and break off; links and files swapped under remove-files; a planted environment. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ReclaimError } from '../src/errors.ts';
import { boxOver } from '../src/ssh/host-program.ts';
import { LocalTransport } from '../src/ssh/local.ts';
import { systemClock } from '../src/system-clock.ts';
import type { Arena } from './arena.ts';
import type { Chance, Tally } from './part.ts';

const bootId = '00000000-0000-0000-0000-000000000000';
type Say = (what: string) => void;

/** Each is a shell that got the program and the request on stdin, whose nonce it can read: it can say anything. */
const liars: Readonly<Record<string, string>> = {
  'floods us': `yes "$(head -c 4000 /dev/zero | tr '\\0' x)" | head -c 100000000`,
  'breaks off': `printf '\\n%s begin 1 kill 0\\n' "$n"`,
  'says nothing': 'true',
  'names processes nobody asked for': `printf '\\n%s begin 1 kill 0\\n\\n%s result killed 4242 1\\n\\n%s end 0\\n' "$n" "$n" "$n"`,
  'invents results': `printf '\\n%s begin 1 kill 0\\n\\n%s result owned 77 5\\n\\n%s end 0\\n' "$n" "$n" "$n"`,
  'speaks with another nonce': `printf '\\n%032d begin 1 kill 0\\n\\n%032d result exited 77 5\\n\\n%032d end 0\\n' 1 1 1`,
  'ends at once and goes on': `printf '\\n%s end 0\\n\\n%s begin 1 kill 0\\n\\n%s result exited 77 5\\n' "$n" "$n" "$n"`,
  'sends noise': 'head -c 3000000 /dev/urandom',
};

export async function lie(chance: Chance, tally: Tally, breach: Say): Promise<void> {
  const [name, script] = chance.pick(Object.entries(liars));
  const shell = `n=$(sed -n "s/.*reclaim 1 \\([0-9a-f]\\{32\\}\\)$/\\1/p" | tail -n 1); ${script} #`;
  const transport = new LocalTransport('liar', { privilege: 'root', shell: ['/bin/sh', '-c', shell] });
  const box = boxOver(transport, { privilege: 'root', clock: systemClock });
  const target = { pid: 77, startTime: 5 };
  const asked = chance.yes(0.5)
    ? box.kill({ bootId, graceMs: 100, protect: [], targets: [target] })
    : box.collect({ scope: 'full', windowSeconds: 0 });
  const answer = await asked.catch((e: unknown) => e);
  tally.add('answers of boxes that lie');
  if (answer instanceof Error) {
    if (!(answer instanceof ReclaimError) || answer.code === 'internal')
      breach(`a box that ${name}: ${String(answer)}`);
  } else if (Array.isArray(answer)) breach(`a box that ${name} was believed: ${JSON.stringify(answer)}`);
}

/** Files are swapped for links and back while they are to be removed: what lies elsewhere stays. */
export async function swapFiles(arena: Arena, chance: Chance, tally: Tally, breach: Say): Promise<void> {
  const folder = `/dev/shm/reclaim-torture-${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'keep'), { recursive: true });
  mkdirSync(join(folder, 'd'));
  const victims = Array.from({ length: 6 }, (_, n) => `f${n}`);
  for (const name of victims) for (const where of ['keep', 'd']) writeFileSync(join(folder, where, name), where);
  const targets = victims.map((name) => {
    const path = join(folder, 'd', name);
    const { dev, ino } = statSync(path);
    return { path, dev, ino, kiB: 4 };
  });
  // The whole folder, or each file, is a link to what must stay half of the time.
  const swap = chance.yes(0.5)
    ? 'while :; do mv d e; ln -s keep d; sleep 0.01; rm d; mv e d; sleep 0.01; done'
    : 'while :; do for f in f0 f1 f2 f3 f4 f5; do mv d/$f e$f; ln -s ../keep/$f d/$f; rm -f d/$f; ln keep/$f d/$f; rm -f d/$f; mv e$f d/$f; done; done';
  const racer = spawn('sh', ['-c', swap], { cwd: folder, stdio: 'ignore', detached: true });
  const results = await arena.box('arena').removeFiles(targets, 0);
  // With the command it is at.
  if (racer.pid !== undefined) process.kill(-racer.pid, 'SIGKILL');
  if (racer.exitCode === null && racer.signalCode === null) await once(racer, 'exit');
  tally.add('files asked to be removed while they were swapped', results.length);
  tally.add('of them removed', results.filter((r) => r.result === 'removed').length);
  const kept = readdirSync(join(folder, 'keep'));
  if (kept.length !== victims.length) breach(`files elsewhere were removed: ${kept.join()} are left`);
  rmSync(folder, { recursive: true, maxRetries: 10 });
}

const planted = [
  'BASH_ENV',
  'ENV',
  'PERL5OPT',
  'PERL5LIB',
  'PERL5DB',
  'PYTHONSTARTUP',
  'PYTHONPATH',
  'PATH',
  'IFS',
  'PS4',
  'SHELLOPTS',
  'CDPATH',
  'TZ',
  'GREP_OPTIONS',
  'AWKPATH',
  'POSIXLY_CORRECT',
  'TMPDIR',
  'LC_ALL',
  'TARGETS',
  'PROTECT',
  'SIGNALLER',
  'W',
  'JOBS',
];

/** An environment somebody prepared, as far as sudo or sshd might let it through: nothing of theirs runs as root. */
export async function plantEnvironment(arena: Arena, chance: Chance, tally: Tally, breach: Say): Promise<void> {
  const evil = join(arena.folder, 'evil');
  const owned = join(arena.folder, 'owned');
  mkdirSync(evil, { recursive: true });
  const touch = `touch ${owned}`;
  writeFileSync(join(evil, 'env'), `${touch}\n`);
  writeFileSync(join(evil, 'Evil.pm'), `package Evil; open F, '>', '${owned}'; 1;`);
  for (const tool of ['awk', 'grep', 'sed', 'perl', 'find', 'stat', 'rm', 'timeout', 'sleep']) {
    writeFileSync(join(evil, tool), `#!/bin/sh\n${touch}\n`, { mode: 0o755 });
  }
  const values: Readonly<Record<string, string>> = {
    ...{
      BASH_ENV: join(evil, 'env'),
      ENV: join(evil, 'env'),
      PERL5OPT: '-MEvil',
      PERL5LIB: evil,
      PATH: `${evil}:${process.env['PATH'] ?? ''}`,
    },
    ...{
      PERL5DB: `BEGIN { open F, '>', '${owned}' }`,
      PYTHONSTARTUP: join(evil, 'env'),
      PYTHONPATH: evil,
      IFS: '/',
      PS4: `$(${touch})`,
    },
    ...{ SHELLOPTS: 'xtrace', TMPDIR: evil, LC_ALL: 'tr_TR.UTF-8', SIGNALLER: touch, W: evil },
  };
  const names = chance.some(planted, 0.5);
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const env = names.map((name) => quoted(`${name}=${values[name] ?? '../../../etc'}`)).join(' ');
  const shell = chance.pick(['dash', 'bash --posix', 'busybox sh']);
  // The environment is set after the login shell, where sudo would hand it on.
  const inside = `exec env ${env} ${shell} -s`;
  const transport = new LocalTransport('arena', {
    privilege: 'root',
    shell: ['nsenter', ...arena.entry, 'sh', '-c', inside],
  });
  const [target] = await arena.start([{ id: 'target', name: 'cicc' }]);
  if (target === undefined) throw new Error('no target');
  const box = boxOver(transport, { privilege: 'root', clock: systemClock });
  const bad = await box.kill({ bootId, graceMs: 100, protect: [], targets: [target] }).catch((e: unknown) => e);
  if (!(bad instanceof ReclaimError)) breach(`with ${names.join()} another boot was not refused: ${String(bad)}`);
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const results = await box.kill({
    bootId: boot,
    graceMs: 300,
    protect: [],
    targets: [{ pid: target.pid, startTime: target.startTime }],
  });
  if (results[0]?.result !== 'exited') breach(`with ${names.join()} under ${shell}: ${JSON.stringify(results)}`);
  if (existsSync(owned)) breach(`with ${names.join()} under ${shell} something planted ran as root`);
  rmSync(owned, { force: true });
  await arena.clear();
  tally.add('runs in a planted environment');
}
