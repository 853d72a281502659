/**
 * The host program's answer: frames between lines that begin with the nonce of this run. What stands before the first
 * frame (motd, .bashrc) is ignored; an answer without its `end` frame was cut. Also the three forms of a frame's body:
 * lines with their path before them, NUL-terminated records, and the request's own encoding.
 */
import type { Blob } from '../memory/contract.ts';

export interface Frame {
  /** `begin`, `lines`, `command`, `result`, `answer`, `error`, `end`, … */
  readonly kind: string;
  readonly words: readonly string[];
  readonly body: Uint8Array;
}

/** Bytes in a row, appended at one end and taken at the other. What was handed out is never written over. */
class Bytes {
  #buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  append(chunk: Uint8Array): void {
    if (this.#end + chunk.length > this.#buffer.length) {
      const kept = this.view();
      // Doubling keeps a long answer in many small pieces from being copied anew with each of them.
      this.#buffer = Buffer.alloc(Math.max(65_536, 2 * (kept.length + chunk.length)));
      kept.copy(this.#buffer);
      this.#start = 0;
      this.#end = kept.length;
    }
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  view(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  drop(count: number): void {
    this.#start += count;
  }
}

/** Takes the answer in pieces and hands out each frame as soon as the next one begins. */
export class FrameReader {
  readonly #mark: Buffer;
  readonly #rest = new Bytes();
  readonly #maxBytes: number;
  #taken = 0;
  #open: Omit<Frame, 'body'> | null = null;
  #searchFrom = 0;
  /** True once a frame has begun: the program was there. */
  begun = false;
  /** True once the `end` frame was seen. */
  ended = false;

  /** Beyond `maxBytes` nothing is taken any more, so that a box that floods us gets an answer that was cut. */
  constructor(nonce: string, maxBytes = Infinity) {
    this.#mark = Buffer.from(`\n${nonce} `, 'latin1');
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    this.#taken += chunk.length;
    if (this.ended || this.#taken > this.#maxBytes) return frames;
    this.#rest.append(chunk);
    while (!this.ended) {
      const rest = this.#rest.view();
      const at = rest.indexOf(this.#mark, this.#searchFrom);
      const headEnd = at < 0 ? -1 : rest.indexOf('\n', at + this.#mark.length);
      if (headEnd < 0) {
        this.#searchFrom = at < 0 ? Math.max(0, rest.length - this.#mark.length + 1) : at;
        return frames;
      }
      if (this.#open !== null) frames.push({ ...this.#open, body: rest.subarray(0, at) });
      const [kind = '', ...words] = rest.toString('latin1', at + this.#mark.length, headEnd).split(' ');
      this.#rest.drop(headEnd + 1);
      // The newline of a head is also the one before the next mark when the body is empty.
      this.#searchFrom = 0;
      this.#open = { kind, words };
      this.begun = true;
      if (kind === 'end') {
        this.ended = true;
        frames.push({ kind, words, body: new Uint8Array() });
      }
    }
    return frames;
  }
}

/** A whole answer at once. */
export function readFrames(answer: Uint8Array, nonce: string): { frames: Frame[]; ended: boolean } {
  const reader = new FrameReader(nonce);
  const frames = reader.push(answer);
  return { frames, ended: reader.ended };
}

/** Text where the bytes are UTF-8, base64 where they are not (DESIGN 4.1). */
export function toBlob(bytes: Uint8Array): Blob {
  try {
    // ignoreBOM keeps a leading U+FEFF: the blob must give back the very bytes.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') };
  }
}

/** Text for a person: broken bytes become U+FFFD, control characters a space. */
export function toText(bytes: Uint8Array): string {
  return new TextDecoder()
    .decode(bytes)
    .replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g, ' ')
    .trim();
}

/** Paths the program gives relative to /proc begin with a pid. */
const absolute = (path: string): string => (/^\d/.test(path) ? `/proc/${path}` : path);

function gather(body: Uint8Array, separator: '\n' | '\0'): Map<string, Uint8Array> {
  const parts = new Map<string, string[]>();
  // latin1 maps bytes to characters one to one.
  const records = Buffer.from(body).toString('latin1').split(separator);
  // Behind the last separator stands nothing, or a record that was cut.
  records.pop();
  for (const record of records) {
    const colon = record.indexOf(':');
    if (colon < 0) continue;
    const path = absolute(record.slice(0, colon));
    const text = record.slice(colon + 1) + separator;
    const lines = parts.get(path);
    if (lines === undefined) parts.set(path, [text]);
    else lines.push(text);
  }
  return new Map([...parts].map(([path, lines]) => [path, Buffer.from(lines.join(''), 'latin1')]));
}

/** `PATH:line` lines -> file contents. Every line carries its path, so a newline inside a file forges no other file. */
export const filesOfLines = (body: Uint8Array): Map<string, Uint8Array> => gather(body, '\n');

/** `PATH:record` NUL-terminated -> file contents (cmdline). */
export const filesOfRecords = (body: Uint8Array): Map<string, Uint8Array> => gather(body, '\0');

/** NUL-terminated records `PID/fd TARGET`, `PID/maps TARGET` -> `PID TARGET`, each once (contract form of `fd holders`). */
export function holdersOf(body: Uint8Array): Uint8Array {
  const records = Buffer.from(body).toString('latin1').split('\0');
  records.pop();
  const seen = new Set(records.map((r) => r.replace(/^(\d+)\/(?:fd|maps) /, '$1 ')));
  return Buffer.from([...seen].map((r) => `${r}\0`).join(''), 'latin1');
}

/** A word of a request: bytes outside A-Za-z0-9._/- become \0ooo, which the program reads with printf %b. */
export function encodeWord(text: string): string {
  if (text === '' || text === '-') return text === '' ? '\\0' : '\\0055';
  return [...Buffer.from(text, 'utf8')]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[A-Za-z0-9._/-]/.test(char) ? char : `\\0${byte.toString(8).padStart(3, '0')}`;
    })
    .join('');
}

export interface Request {
  readonly nonce: string;
  readonly run: string;
  readonly verb: string;
  /** Further lines; the words are encoded already. */
  readonly lines: readonly string[];
}

const allowed = /^[A-Za-z0-9._/\\ -]*$/;

/** The request as the program reads it. Throws on a character it would refuse: that would be a mistake of ours. */
export function requestText(request: Request): string {
  const lines = [
    `reclaim 1 ${request.nonce}`,
    `run ${request.run}`,
    `verb ${request.verb}`,
    ...request.lines,
    `end ${request.nonce}`,
  ];
  const bad = lines.find((line) => !allowed.test(line));
  if (bad !== undefined) throw new Error(`not a request line: ${JSON.stringify(bad)}`);
  return `${lines.join('\n')}\n`;
}

/** The stdin of an agentless run: the program, then the one call. In single quotes, and no quote can be inside. */
export const scriptFor = (program: string, request: Request): string =>
  `${program}\nreclaim_host '${requestText(request)}'\n`;
