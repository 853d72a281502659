/** What `reclaim doctor` finds on each host: the road, the rights, the tools, and what a diagnosis would not see. */
import type { Config, HostConfig } from '../config/schema.ts';
import { asReclaimError } from '../errors.ts';
import type { Capture } from '../memory/contract.ts';
import { think } from '../memory/think.ts';
import type { CliIo } from './io.ts';
import { cliBoxes } from './source.ts';
import { fail, ok, warn, type Row } from './doctor-rows.ts';

export async function hostRows(config: Config, io: CliIo): Promise<Row[]> {
  if (config.hosts.size === 0) return [warn('hosts', 'none are named: reclaim init, or fill hosts in reclaim.yaml')];
  const boxes = cliBoxes(config);
  const check = async (host: HostConfig): Promise<Row[]> => {
    try {
      const box = await boxes.openBox(host.name, { signal: io.signal });
      try {
        return reachable(host, await box.collect({ scope: 'full', windowSeconds: 1 }));
      } finally {
        await box.close();
      }
    } catch (thrown) {
      return [fail(`host ${host.name}`, asReclaimError(thrown).userText)];
    }
  };
  try {
    return (await Promise.all([...config.hosts.values()].map(check))).flat();
  } finally {
    boxes.close();
  }
}

function reachable(host: HostConfig, capture: Capture): Row[] {
  const what = `host ${host.name}`;
  const road = ok(what, `${host.user}@${host.address}:${host.port} answers, with the key it is known by`);
  const { partial } = think(capture).diagnosis;
  const sight =
    partial.length === 0 ? ok(`${what} sight`, 'everything can be seen') : warn(`${what} sight`, partial.join(' '));
  return [road, privilegeRow(host, capture), ...toolsRow(host, capture), sight];
}

/** The one line of sudoers each way of acting needs; the narrow one is for the installed program alone. */
export function sudoersLine({ user, privilege }: Pick<HostConfig, 'user' | 'privilege'>): string {
  const command = privilege === 'helper' ? '/usr/local/sbin/reclaim-host ""' : '/bin/sh -s';
  return `${user} ALL=(root) NOPASSWD: ${command}`;
}

function privilegeRow(host: HostConfig, capture: Capture): Row {
  const what = `host ${host.name} rights`;
  if (capture.privileged) return ok(what, `acts as root (privilege: ${host.privilege})`);
  if (host.privilege === 'none') {
    return warn(what, 'privilege is none: it sees and ends only what its own user may, and drops no caches');
  }
  if (host.privilege === 'root') return warn(what, `${host.user} is not root there: log in as root, or use sudo`);
  return warn(
    what,
    `${host.user} may not use sudo there without a password. On the host: echo '${sudoersLine(host)}' | sudo tee /etc/sudoers.d/reclaim && sudo visudo -c`,
  );
}

/** What a box should have, why, and the Debian package it comes in. Without flock nothing that changes a box is done. */
const tools = [
  { name: 'flock', need: 'nothing is changed there without it', from: 'util-linux', fatal: true },
  { name: 'timeout', need: 'a hanging command is cut off by other means', from: 'coreutils', fatal: false },
  { name: 'gzip', need: 'a look sends some megabytes more', from: 'gzip', fatal: false },
] as const;

function toolsRow(host: HostConfig, capture: Capture): Row[] {
  const what = `host ${host.name} tools`;
  const listed = capture.commands['tools'];
  const text = typeof listed?.stdout === 'string' ? listed.stdout : '';
  // An older program that is installed there does not tell.
  if (text === '') return [];
  const there = new Set(text.split('\n'));
  const missing = tools.filter(({ name }) => !there.has(name));
  const signalled = there.has('python3') || there.has('perl');
  if (missing.length === 0 && signalled) return [ok(what, 'all there')];
  const said = missing.map(({ name, need, from }) => `${name} is missing (${need}): install ${from}.`);
  if (!signalled)
    said.push('neither python3 nor perl: processes are signalled through /proc, which is as exact but slower.');
  return [missing.some(({ fatal }) => fatal) ? fail(what, said.join(' ')) : warn(what, said.join(' '))];
}
