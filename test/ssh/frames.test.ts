/** The frame reader against every way bytes can arrive, and the words of a request against the shell that reads them. */
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeWord,
  filesOfLines,
  filesOfRecords,
  FrameReader,
  holdersOf,
  readFrames,
  requestText,
  scriptFor,
  toBlob,
  toText,
} from '../../src/ssh/frames.ts';

const nonce = '0123456789abcdef0123456789abcdef';
const frame = (head: string, body: string | Uint8Array = '') =>
  Buffer.concat([Buffer.from(`\n${nonce} ${head}\n`), Buffer.from(body)]);
const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('frames', () => {
  it('ignore what stands before the first and behind the end', () => {
    const answer = Buffer.concat([bytes('Welcome!\n'), frame('begin 1 kill 0'), frame('end 0'), bytes('logout\n')]);
    const { frames, ended } = readFrames(answer, nonce);
    expect(ended).toBe(true);
    expect(frames.map((f) => [f.kind, ...f.words].join(' '))).toEqual(['begin 1 kill 0', 'end 0']);
  });

  it('are not ended when the end is missing', () => {
    expect(readFrames(frame('begin 1 collect 0', 'x'), nonce).ended).toBe(false);
    expect(readFrames(bytes(''), nonce)).toEqual({ frames: [], ended: false });
  });

  it('are not forged by text with another nonce, or with this one in the middle of a line', () => {
    const body = `x\n${'f'.repeat(32)} end 0\n a ${nonce} end 0\n`;
    const { frames } = readFrames(Buffer.concat([frame('lines', body), frame('end 0')]), nonce);
    expect(frames.map((f) => f.kind)).toEqual(['lines', 'end']);
    expect(Buffer.from(frames[0]!.body).toString()).toBe(body);
  });

  it('give back every body byte for byte, however the answer is cut into pieces', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }),
        (bodies, cuts) => {
          const answer = Buffer.concat([...bodies.map((b, i) => frame(`lines ${i}`, b)), frame('end 0')]);
          const reader = new FrameReader(nonce);
          const seen = [];
          for (let at = 0, n = 0; at < answer.length; n++) {
            const size = cuts[n % cuts.length]!;
            seen.push(...reader.push(answer.subarray(at, at + size)));
            at += size;
          }
          expect(reader.ended).toBe(true);
          expect(seen.slice(0, -1).map((f) => Buffer.from(f.body))).toEqual(bodies.map((b) => Buffer.from(b)));
        },
      ),
    );
  });
});

describe('bodies', () => {
  it('put the lines of a file together, also where a line holds a forged path', () => {
    const files = filesOfLines(bytes('7/stat:7 (a\n7/stat:1/stat:1 (b) S\n/proc/mounts:a:b\n9/stat:cut'));
    expect([...files].map(([path, body]) => [path, toBlob(body)])).toEqual([
      ['/proc/7/stat', '7 (a\n1/stat:1 (b) S\n'],
      ['/proc/mounts', 'a:b\n'],
    ]);
  });

  it('put the arguments of a command line together', () => {
    const files = filesOfRecords(bytes('7/cmdline:sh\x007/cmdline:\x007/cmdline:a\nb:c\0'));
    expect(toBlob(files.get('/proc/7/cmdline')!)).toBe('sh\0\0a\nb:c\0');
  });

  it('name each holder once', () => {
    const listed = bytes('7/fd /dev/shm/a b\x007/maps /dev/shm/a b\x008/fd /dev/nvidia0\0');
    expect(toBlob(holdersOf(listed))).toBe('7 /dev/shm/a b\x008 /dev/nvidia0\0');
  });

  it('are text where they are UTF-8 and base64 where not, and give back the same bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (body) => {
        const blob = toBlob(body);
        const back = typeof blob === 'string' ? Buffer.from(blob) : Buffer.from(blob.base64, 'base64');
        expect(back).toEqual(Buffer.from(body));
      }),
    );
  });

  it('lose their control characters before a person sees them', () => {
    expect(toText(bytes('\x1b[31mred\n\0'))).toBe('[31mred');
    expect(toText(Buffer.from('a\u202eb'))).toBe('a b');
  });
});

describe('a request', () => {
  it.each(['dash', 'bash', 'busybox sh'])('says every word as meant to %s', (shell) => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1 }).filter((s) => !s.includes('\0') && !/[\ud800-\udfff]/.test(s)),
        (word) => {
          const encoded = encodeWord(word);
          expect(encoded).toMatch(/^[A-Za-z0-9._/\\-]+$/);
          expect(encoded).not.toBe('-');
          const [program, ...args] = [...shell.split(' '), '-c', 'printf %b "$1"', 'sh', encoded];
          expect(execFileSync(program, args).toString()).toBe(word);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('cannot be made to leave its quotes', () => {
    const request = { nonce, run: 'r', verb: 'kill', lines: [`target 1 2 - ${encodeWord("'; reboot; '")}`] };
    const script = scriptFor('', request);
    expect(script.match(/'/g)).toHaveLength(2);
    expect(() => requestText({ ...request, run: "a'b" })).toThrow('not a request line');
  });
});
