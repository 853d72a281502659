/** Small helpers the commands share. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ReclaimError } from '../errors.ts';

/** More than any box we know writes in one capture. */
const mostBytes = 256 * 1024 * 1024;

export async function isFile(path: string, cwd: string): Promise<boolean> {
  try {
    const found = await stat(resolve(cwd, path));
    return found.isFile() || found.isFIFO();
  } catch {
    return false;
  }
}

/** @throws ReclaimError `file_unreadable` */
export async function readTextFile(path: string, cwd: string): Promise<string> {
  const full = resolve(cwd, path);
  try {
    const found = await stat(full);
    if (found.size > mostBytes) throw new Error(`it has ${found.size} bytes, more than any capture or receipt`);
    return await readFile(full, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unknown reason';
    throw new ReclaimError('file_unreadable', `${path} cannot be read (${why}), so nothing was done. Check the path.`, {
      cause,
    });
  }
}

export const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
