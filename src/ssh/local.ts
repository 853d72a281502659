/** This machine as a box: the same program on the stdin of the same fixed command, without ssh. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Privilege } from '../box.ts';
import { ReclaimError } from '../errors.ts';
import { remoteCommand, type RunOptions, type RunOutput, type Transport } from './transport.ts';

const stderrCap = 64 * 1024;

/** Keeps the first `cap` bytes; the rest is read, so that the writer never blocks, and thrown away. */
class CappedBytes {
  readonly #chunks: Uint8Array[] = [];
  readonly #cap: number;
  #size = 0;
  truncated = false;

  constructor(cap: number) {
    this.#cap = cap;
  }

  add(chunk: Uint8Array): void {
    const room = this.#cap - this.#size;
    if (chunk.length > room) this.truncated = true;
    if (room <= 0) return;
    const kept = chunk.subarray(0, room);
    this.#chunks.push(kept);
    this.#size += kept.length;
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks);
  }
}

export interface LocalOptions {
  readonly privilege: Privilege;
  /** The shell that gets the command, as sshd would start a login shell. Tests name others. */
  readonly shell?: readonly [string, ...string[]];
}

export class LocalTransport implements Transport {
  readonly host: string;
  readonly hostKey = 'local';
  readonly #options: LocalOptions;

  constructor(host: string, options: LocalOptions) {
    this.host = host;
    this.#options = options;
  }

  async run(stdin: Uint8Array, options: RunOptions): Promise<RunOutput> {
    options.signal?.throwIfAborted();
    const [program, ...args] = this.#options.shell ?? ['/bin/sh'];
    const command = remoteCommand(this.#options.privilege, options.privileged);
    try {
      // A session of its own, as over ssh: a Ctrl-C in the terminal must not cut a run in half.
      return await watch(spawn(program, [...args, '-c', command], { detached: true, cwd: '/' }), stdin, options);
    } catch (cause) {
      throw new ReclaimError('host_program_failed', 'No shell could be started on this machine. Nothing was done.', {
        cause,
      });
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function watch(child: ChildProcessWithoutNullStreams, stdin: Uint8Array, options: RunOptions): Promise<RunOutput> {
  return new Promise((resolve, reject) => {
    const stdout = new CappedBytes(options.maxBytes);
    const stderr = new CappedBytes(stderrCap);
    const settle = (end: Pick<RunOutput, 'code' | 'signal' | 'lost' | 'timedOut'>): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abort);
      resolve({ ...end, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated: stdout.truncated });
    };
    // As over ssh, giving up means to stop listening: the program bounds itself and finishes what it began.
    const letGo = (how: { lost: boolean; timedOut: boolean }): void => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
      settle({ code: null, signal: null, ...how });
    };
    const abort = (): void => {
      letGo({ lost: true, timedOut: false });
    };
    const timer = setTimeout(() => {
      letGo({ lost: false, timedOut: true });
    }, options.timeoutMs);
    options.signal?.addEventListener('abort', abort, { once: true });
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code, signal) => {
      settle({ code, signal, lost: false, timedOut: false });
    });
    child.stdout.on('data', (chunk: Uint8Array) => {
      stdout.add(chunk);
      options.onStdout?.(chunk);
    });
    child.stderr.on('data', (chunk: Uint8Array) => {
      stderr.add(chunk);
    });
    // The program may end without reading all of it: its status tells why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(stdin);
  });
}
