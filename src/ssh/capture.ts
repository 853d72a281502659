/** The frames of `collect` -> one capture in the form of DESIGN 4.1. */
import { gunzipSync } from 'node:zlib';
import { captureSchema, type Blob, type Capture, type CommandOutput } from '../memory/contract.ts';
import { filesOfLines, filesOfRecords, holdersOf, readFrames, toBlob, type Frame } from './frames.ts';

/** Far above any real look (7 MB at 5,000 processes), far below what a made-up one could unpack to. */
const unpackedMaxBytes = 256 * 1024 * 1024;

/** The inner frames of a full look, which travel compressed; null where the look was cut on the way. */
function unpacked(frames: readonly Frame[], nonce: string): readonly Frame[] | null {
  const packed = frames.find((f) => f.kind === 'gzip');
  if (packed !== undefined) {
    let plain: Buffer;
    try {
      plain = gunzipSync(packed.body, { maxOutputLength: unpackedMaxBytes });
    } catch {
      return null;
    }
    const { frames: inner, ended } = readFrames(Buffer.concat([plain, Buffer.from(`\n${nonce} end 0\n`)]), nonce);
    return ended && inner.some((f) => f.kind === 'done') ? inner : null;
  }
  return frames;
}

interface Look {
  readonly files: Map<string, Blob>;
  readonly later: Map<string, Blob>;
  readonly commands: Map<string, CommandOutput>;
  windowSeconds: number;
  collectorPids: number[];
}

function addFiles(into: Map<string, Blob>, files: Map<string, Uint8Array>): void {
  for (const [path, bytes] of files) into.set(path, toBlob(bytes));
}

function addCommand(look: Look, frame: Frame): void {
  const [status = '-', late = '0', ...rest] = frame.words;
  const name = rest.join(' ');
  if (name === 'cmdlines' || name === 'stuck') {
    addFiles(look.files, filesOfRecords(frame.body));
    if (late === '0') return;
  }
  const body = name === 'fd holders' ? holdersOf(frame.body) : frame.body;
  const stdout = name === 'cmdlines' || name === 'stuck' ? '' : toBlob(body);
  if (late === '1') look.commands.set(name, { status: null, stdout, timedOut: true });
  else look.commands.set(name, { status: Number(status), stdout });
}

function addFrame(look: Look, frame: Frame): void {
  switch (frame.kind) {
    case 'lines':
      addFiles(look.files, filesOfLines(frame.body));
      return;
    case 'later':
      look.windowSeconds = Number(frame.words[0]) / 100;
      addFiles(look.later, filesOfLines(frame.body));
      return;
    case 'command':
      addCommand(look, frame);
      return;
    case 'collector':
      look.collectorPids = frame.words.filter((w) => w !== '').map(Number);
      return;
    default:
  }
}

/** A `free` that is not there prints nothing; say so as the contract does. */
function markMissing(commands: Map<string, CommandOutput>): void {
  if (commands.get('free -k')?.stdout === '') commands.set('free -k', { status: 127, stdout: '' });
}

/**
 * Builds the capture from the frames of a complete answer; null when the compressed part was cut, or when what is there is
 * no capture: a box that lies must not get further than one that was cut off.
 */
export function captureFrom(
  frames: readonly Frame[],
  about: { nonce: string; host: string; takenAt: string },
): Capture | null {
  const inner = unpacked(frames, about.nonce);
  if (inner === null) return null;
  const look: Look = { files: new Map(), later: new Map(), commands: new Map(), windowSeconds: 0, collectorPids: [] };
  for (const frame of inner) addFrame(look, frame);
  markMissing(look.commands);
  const uid = frames.find((f) => f.kind === 'begin')?.words[2];
  const parsed = captureSchema.safeParse({
    capture: 1,
    host: about.host,
    takenAt: about.takenAt,
    privileged: uid === '0',
    windowSeconds: look.windowSeconds,
    collectorPids: look.collectorPids,
    files: Object.fromEntries(look.files),
    later: Object.fromEntries(look.later),
    commands: Object.fromEntries(look.commands),
  });
  return parsed.success ? parsed.data : null;
}
