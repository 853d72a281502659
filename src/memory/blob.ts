/** Reading the parts of a capture: everything may be missing, cut, or bytes that are not text. */
import type { Blob, Capture } from './contract.ts';

/** Text of a blob. Bytes that are not UTF-8 become U+FFFD; base64 that is none yields what could be decoded. */
export function textOf(blob: Blob | undefined): string {
  if (blob === undefined) return '';
  return typeof blob === 'string' ? blob : Buffer.from(blob.base64, 'base64').toString('utf8');
}

const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;

/** A file of the first look, or undefined when it was not captured. */
export function fileText(capture: Capture, path: string): string | undefined {
  const blob = own(capture.files, path);
  return blob === undefined ? undefined : textOf(blob);
}

/** A file of the second look, or undefined when it was not taken. */
export function laterText(capture: Capture, path: string): string | undefined {
  const blob = own(capture.later, path);
  return blob === undefined ? undefined : textOf(blob);
}

/** What a command printed; undefined when it was not run, is not installed, failed or did not answer in time. */
export function commandText(capture: Capture, name: string): string | undefined {
  const output = own(capture.commands, name);
  if (output === undefined || output.timedOut === true) return undefined;
  return output.status === 0 ? textOf(output.stdout) : undefined;
}
