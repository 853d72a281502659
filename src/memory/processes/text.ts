/** From the blobs of a capture to text and records. Bytes that are not UTF-8 become U+FFFD: shown, never trusted. */
import type { Blob, Capture } from '../contract.ts';

export function textOf(blob: Blob | undefined): string | null {
  if (blob === undefined) return null;
  return typeof blob === 'string' ? blob : Buffer.from(blob.base64, 'base64').toString('utf8');
}

/** What one command of the collector said. `answered` is false when it is missing, failed or ran into its time limit. */
export interface CommandText {
  readonly answered: boolean;
  readonly timedOut: boolean;
  readonly text: string;
}

export function commandOf(capture: Capture, name: string): CommandText {
  const output = Object.hasOwn(capture.commands, name) ? capture.commands[name] : undefined;
  if (output === undefined) return { answered: false, timedOut: false, text: '' };
  const timedOut = output.timedOut === true;
  const text = textOf(output.stdout) ?? '';
  return { answered: !timedOut && (output.status ?? 0) === 0, timedOut, text };
}

/** NUL-terminated records. What follows the last NUL was cut off and is dropped; text without any NUL is one record per line. */
export function recordsOf(text: string): string[] {
  if (!text.includes('\0')) return text.split('\n').filter((line) => line !== '');
  return text.split('\0').slice(0, -1);
}

/**
 * A decimal integer of at most 15 digits, so it is exact. Anything else is null: never NaN, never a guess. By hand,
 * because a look at a big box asks this some hundred thousand times.
 */
export const integerOf = (text: string | undefined): number | null =>
  text === undefined ? null : integerBetween(text, 0, text.length);

/** The same for a part of a text, without cutting it out. */
export function integerBetween(text: string, start: number, end: number): number | null {
  if (end <= start || end - start > 15) return null;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return value;
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** Splits the ` (deleted)` the kernel appends to a link whose file was unlinked. */
export function undeleted(target: string): { readonly path: string; readonly deleted: boolean } {
  const mark = ' (deleted)';
  return target.endsWith(mark)
    ? { path: target.slice(0, -mark.length), deleted: true }
    : { path: target, deleted: false };
}
