/** The installed host program, fed spoiled requests inside an arena where nothing of this machine can be hit. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { readFrames } from '../src/ssh/frames.ts';
import type { Arena } from './arena.ts';
import { mutated } from './mutate.ts';
import type { Chance } from './part.ts';

const program = join(import.meta.dirname, '../host/reclaim-host.sh');
const nonce = 'a'.repeat(32);
const boot = '00000000-0000-0000-0000-000000000000';

/** None of these, as they are, does anything: another boot, a file that is not there. */
const goodRequests = [
  ['verb kill', `boot ${boot}`, 'grace 1', 'target 2 1 - -', 'target 3 77 0 /usr/bin/x', 'protect - cicc - -'],
  ['verb remove-files', 'min-age 0', 'target 1 2 /dev/shm/a\\0040b', 'target 1 3 /dev/shm/x'],
  ['verb ipcrm', 'min-age 0', 'target 1'],
  ['verb journal', 'of some-run', 'seal 1'],
  ['verb collect', 'scope memory', 'window 0'],
] as const;

export async function feedHostProgram(
  arena: Arena,
  chance: Chance,
  shell: string,
  breach: (what: string) => void,
): Promise<void> {
  const run = `r-${randomBytes(4).toString('hex')}`;
  const lines = [`reclaim 1 ${nonce}`, `run ${run}`, ...chance.pick(goodRequests), `end ${nonce}`];
  const request = mutated(chance, `${lines.join('\n')}\n`).replaceAll('reboot', 'touch${IFS}/run/owned');
  const secret = join(arena.folder, 'run/keep');
  mkdirSync(join(arena.folder, 'run'), { recursive: true });
  writeFileSync(secret, 'x');
  const child = spawn('nsenter', [...arena.entry, 'sh', '-c', `exec ${shell} "$0"`, program], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(Buffer.from(request, 'latin1'));
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const answer = await buffer(child.stdout);
  clearTimeout(timer);
  const what = JSON.stringify(request);
  if (child.signalCode !== null) breach(`the host program hung on ${what}`);
  const { frames, ended } = readFrames(answer, nonce);
  if (frames.length > 0 && !ended) breach(`the host program broke off on ${what}`);
  if (existsSync(join(arena.folder, 'run/owned'))) breach(`the host program ran what it was sent: ${what}`);
  if (!existsSync(secret)) breach(`the host program removed a file: ${what}`);
}
