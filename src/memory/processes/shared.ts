/** Shared memory that outlives processes: files in /dev/shm, SysV segments, and how full each tmpfs is. */
import { integerOf, recordsOf } from './text.ts';

export interface ShmFile {
  readonly dev: number;
  readonly ino: number;
  readonly uid: number;
  /** By blocks, not by length: a sparse file holds less than it says. */
  readonly kiB: number;
  /** Unix seconds. */
  readonly mtime: number;
  readonly path: string;
}

/**
 * `DEV:INO UID BYTES BLOCKSKIB MTIME PATH`, NUL-terminated: the path may hold anything but NUL. DEV is st_dev as one
 * decimal number (`find -printf %D`, `stat -c %d`); MTIME may have a fraction. A record in any other form is dropped,
 * because its file could not be pinned when it is removed.
 */
export function parseShmFiles(text: string): ShmFile[] {
  const files: ShmFile[] = [];
  for (const record of recordsOf(text)) {
    const m = /^(\d+):(\d+) (\d+) (\d+) (\d+) (\d+)(?:\.\d+)? (\/[^]*)$/.exec(record);
    const [dev, ino, uid, , kiB, mtime] = [1, 2, 3, 4, 5, 6].map((at) => integerOf(m?.[at]));
    const path = m?.[7];
    if (dev == null || ino == null || uid == null || kiB == null || mtime == null || path === undefined) continue;
    files.push({ dev, ino, uid, kiB, mtime, path });
  }
  return files;
}

export interface SysvSegment {
  readonly shmid: number;
  readonly bytes: number;
  readonly creatorPid: number;
  readonly lastPid: number;
  readonly attached: number;
  readonly uid: number;
  /** Unix seconds of the last attach, detach or change, whichever is newest. */
  readonly touched: number;
  /** Octal bit 01000: already marked for removal. */
  readonly condemned: boolean;
  /** RAM it really holds; null on kernels that do not say. */
  readonly rssKiB: number | null;
}

/** /proc/sysvipc/shm, by the names in its heading: the columns differ by kernel. */
export function parseSysv(text: string): SysvSegment[] {
  const [heading, ...lines] = text.split('\n');
  const names = (heading ?? '').trim().split(/\s+/);
  const segments: SysvSegment[] = [];
  for (const line of lines) {
    const cells = line.trim().split(/\s+/);
    const read = (name: string): number | null => {
      const at = names.indexOf(name);
      return at === -1 ? null : integerOf(cells[at]);
    };
    const [shmid, bytes, creatorPid, lastPid] = [read('shmid'), read('size'), read('cpid'), read('lpid')];
    const [attached, uid] = [read('nattch'), read('uid')];
    if (
      shmid === null ||
      bytes === null ||
      creatorPid === null ||
      lastPid === null ||
      attached === null ||
      uid === null
    ) {
      continue;
    }
    const rss = read('rss');
    segments.push({
      shmid,
      bytes,
      creatorPid,
      lastPid,
      attached,
      uid,
      touched: Math.max(read('atime') ?? 0, read('dtime') ?? 0, read('ctime') ?? 0),
      condemned: /^1\d{3}$/.test(cells[names.indexOf('perms')] ?? ''),
      rssKiB: rss === null ? null : Math.round(rss / 1024),
    });
  }
  return segments;
}

export interface Tmpfs {
  readonly mount: string;
  readonly usedKiB: number;
}

/** `df -k -t tmpfs`: the mount point is all that follows the percentage. */
export function parseDf(text: string): Tmpfs[] {
  return text.split('\n').flatMap((line) => {
    const [, used, mount] = /^\S+\s+\d+\s+(\d+)\s+-?\d+\s+(?:\d+%|-)\s+(\/.*)$/.exec(line) ?? [];
    const usedKiB = integerOf(used);
    return usedKiB === null || mount === undefined ? [] : [{ mount, usedKiB }];
  });
}
