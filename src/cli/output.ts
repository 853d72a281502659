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
    const text = `${path} cannot be read (${whyUnreadable(cause)}), so nothing was done. Check the path.`;
    throw new ReclaimError('file_unreadable', text, { cause });
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
};

function whyUnreadable(cause: unknown): string {
  if (!(cause instanceof Error)) return 'for an unknown reason';
  return ('code' in cause ? reasons[String(cause.code)] : undefined) ?? cause.message;
}

export const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
