/** The known_hosts files of a host, from disk. What is named and cannot be read stops the connection. */
import { readFile } from 'node:fs/promises';
import { ReclaimError } from '../errors.ts';
import { parseKnownHosts, type KnownHostLine } from './known-hosts.ts';

/**
 * The first file may be missing (nothing is trusted yet, `reclaim trust` makes it); a further one may not, because it
 * may be the one that revokes.
 * @throws ReclaimError ssh_known_hosts_unreadable
 */
export async function readKnownHosts(files: readonly string[]): Promise<KnownHostLine[]> {
  const lines: KnownHostLine[] = [];
  for (const [index, file] of files.entries()) {
    try {
      lines.push(...parseKnownHosts(await readFile(file, 'utf8'), file));
    } catch (cause) {
      if (cause instanceof ReclaimError) throw cause;
      const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
      if (code === 'ENOENT' && index === 0) continue;
      throw new ReclaimError(
        'ssh_known_hosts_unreadable',
        `The known_hosts file ${file} cannot be read (${code}), so no host key was trusted and nothing was connected. ` +
          'Check the path in reclaim.yaml, and the owner and mode of the file.',
        { cause },
      );
    }
  }
  return lines;
}
