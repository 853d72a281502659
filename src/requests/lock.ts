/**
 * One process per data folder: PGlite lets a second process open the same files and both would ruin them. The lock names
 * its holder by pid and start time; a dead holder's lock is taken over.
 */
import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { ReclaimError } from '../errors.ts';

const holderSchema = z.object({ pid: z.number().int().positive(), startTime: z.string() });
type Holder = z.infer<typeof holderSchema>;

/** Field 22 of /proc/PID/stat, or '' where there is no /proc; null when the process is gone. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie holds no files any more.
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? '');
  } catch {
    try {
      process.kill(pid, 0);
      return '';
    } catch {
      return null;
    }
  }
}

function alive(holder: Holder): boolean {
  const startTime = startTimeOf(holder.pid);
  return startTime !== null && (startTime === '' || holder.startTime === '' || startTime === holder.startTime);
}

/** Null when nobody holds it or what is written there names nobody. */
function read(path: string): Holder | null {
  try {
    return holderSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null;
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves a dead holder's lock aside. If somebody living took it in between, theirs is put back. */
function removeDead(path: string, aside: string): void {
  try {
    renameSync(path, aside);
  } catch {
    return; // another process was faster; the next try will see who
  }
  const taken = read(aside);
  if (taken !== null && alive(taken)) tryLink(aside, path);
  rmSync(aside, { force: true });
}

/** Takes the lock, or rejects with `store_busy` naming who has it. Returns the function that lets go. */
export function takeLock(path: string): () => void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const mine = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const me: Holder = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' };
  writeFileSync(mine, JSON.stringify(me), { mode: 0o600 });
  try {
    // A few tries: each can only fail because another process moved at the same moment.
    for (let n = 0; n < 5; n += 1) {
      if (tryLink(mine, path)) {
        return () => {
          const holder = read(path);
          if (holder?.pid === me.pid && holder.startTime === me.startTime) rmSync(path, { force: true });
        };
      }
      const holder = read(path);
      if (holder !== null && alive(holder)) {
        throw new ReclaimError(
          'store_busy',
          `Process ${holder.pid} has the store in ${dirname(path)} open. Nothing was done. Stop it first, or use another data folder.`,
        );
      }
      removeDead(path, `${mine}.dead`);
    }
  } finally {
    rmSync(mine, { force: true });
  }
  throw new ReclaimError('store_busy', `The store in ${dirname(path)} is being opened by others. Try again.`);
}
