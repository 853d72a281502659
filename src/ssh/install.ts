/**
 * Putting the host program on a box for `privilege: helper`: one root-owned file, and one sudoers line that allows that
 * file without arguments and nothing else. The script is the same whether a person runs it or Reclaim does.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { HostConfig } from '../config/schema.ts';
import { ReclaimError } from '../errors.ts';
import { toText } from './frames.ts';
import { sudoRefused } from './host-failures.ts';
import { readHostProgram } from './host-program.ts';
import type { Road } from './road.ts';
import { openSshTransport } from './ssh-transport.ts';
import { helperPath } from './transport.ts';

export const sudoersPath = '/etc/sudoers.d/reclaim';

export interface Installation {
  /** A POSIX sh script for root on the box. Its last line of output is `reclaim-host installed`. */
  readonly script: string;
  /** Null for root, who needs none. */
  readonly sudoersLine: string | null;
  /** For authorized_keys: with it, that key can do nothing but ask the helper. */
  readonly forcedLine: string;
}

const installed = 'reclaim-host installed';

/** @throws ReclaimError `config_invalid` for a user name that cannot stand in a sudoers file as it is. */
export async function planInstallation(host: HostConfig): Promise<Installation> {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/i.test(host.user)) {
    throw new ReclaimError(
      'config_invalid',
      `The user name "${host.user.slice(0, 40)}" of ${host.name} has characters a sudoers line would need escaped. ` +
        'Nothing was installed. Give Reclaim an account with a plain name.',
    );
  }
  const sudoersLine = host.user === 'root' ? null : `${host.user} ALL=(root) NOPASSWD: ${helperPath} ""`;
  const helper = host.user === 'root' ? helperPath : `sudo -n ${helperPath}`;
  return {
    script: scriptOf(readHostProgram(), sudoersLine),
    sudoersLine,
    forcedLine: `restrict,command="${helper}" ${await publicKeyOf(host)}`,
  };
}

async function publicKeyOf(host: HostConfig): Promise<string> {
  const file = host.agentIdentity ?? (host.identity === undefined ? undefined : `${host.identity}.pub`);
  const text = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  const line = text.split('\n')[0]?.trim() ?? '';
  return /^[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [\w@. -]*)?$/.test(line)
    ? line
    : `<its public key${file === undefined ? '' : `, ${file}`}>`;
}

function scriptOf(program: string, sudoersLine: string | null): string {
  // The program's text cannot hold a word that is made up only now.
  const mark = `END-${randomBytes(12).toString('hex')}`;
  const sudoers = sudoersLine === null ? '' : sudoersPart(sudoersLine);
  return `# Installs Reclaim's host program, root-owned, at ${helperPath}${sudoersLine === null ? '' : ' with its one sudoers line'}.
set -eu
umask 022
LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
fail() { printf '%s\\n' "$1" >&2; exit 78; }
[ "$(id -u)" -eq 0 ] || fail 'Installing needs root.'
# Whoever can write to a folder above the program could put another in its place.
for folder in / /usr /usr/local ${helperPath.slice(0, helperPath.lastIndexOf('/'))}; do
  [ -z "$(find "$folder" -maxdepth 0 \\( ! -user 0 -o -perm -0020 -o -perm -0002 \\))" ] ||
    fail "$folder is not root's, or others may write to it (chown root, chmod go-w)."
done
[ ! -d ${helperPath} ] || fail '${helperPath} is a folder.'
new=$(mktemp ${helperPath}.XXXXXX)
trap 'rm -f "$new" "\${rule:-$new}"' EXIT
cat >"$new" <<'${mark}'
${program}
${mark}
sh -n "$new" || fail 'The program did not arrive whole.'
chown 0:0 "$new"
chmod 755 "$new"
mv -f "$new" ${helperPath}
${sudoers}printf '%s\\n' '${installed}'
`;
}

const sudoersPart = (
  line: string,
): string => `command -v visudo >/dev/null || fail 'sudo (visudo) is not installed, so there is no sudoers line; the program is in place.'
rule=$(mktemp /etc/sudoers.d/reclaim.XXXXXX)
printf '%s\\n' '${line}' >"$rule"
chown 0:0 "$rule"
chmod 440 "$rule"
visudo -cqf "$rule" || fail 'visudo found a fault in the sudoers line, so it was not placed.'
mv -f "$rule" ${sudoersPath}
visudo -cq || { rm -f ${sudoersPath}; fail 'visudo found a fault in the sudoers files, so the line was taken out again.'; }
`;

/**
 * Places it through the privilege the account has now: root itself, or `sudo -n /bin/sh -s`.
 * @throws ReclaimError one of ssh_*, host_privilege (no root there), host_program_failed (why it was not placed)
 */
export async function install(road: Road, host: HostConfig, plan: Installation, signal?: AbortSignal): Promise<void> {
  const privilege = host.user === 'root' ? 'root' : 'sudo';
  const transport = await openSshTransport(road, { ...host, privilege }, signal);
  try {
    const options = { timeoutMs: 60_000, maxBytes: 64 * 1024, privileged: true, signal };
    const output = await transport.run(Buffer.from(plan.script), options);
    if (sudoRefused(output)) {
      throw new ReclaimError(
        'host_privilege',
        `${host.user} may not become root on ${host.name} (sudo -n /bin/sh -s), so nothing was installed. ` +
          `Let an administrator run it: reclaim host-install ${host.name} --print | ssh ADMIN@${host.address} sudo sh`,
      );
    }
    if (output.code !== 0 || !toText(output.stdout).includes(installed)) {
      const said = toText(output.stderr).slice(0, 300);
      throw new ReclaimError(
        'host_program_failed',
        `The host program was not installed on ${host.name}${said === '' ? '' : `: ${said}`}. Nothing else was changed there.`,
      );
    }
  } finally {
    await transport.close();
  }
}
