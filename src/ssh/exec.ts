/**
 * One command on one ssh connection. What ssh2 leaves open is closed here: both streams are read from the start (an
 * unread one blocks the box for ever), there is a deadline for the channel and one for the whole, output is capped while
 * the rest is still drained, and the end is told apart from a lost connection.
 */
import type { Client, ClientChannel } from 'ssh2';
import { busy, execRefused, noShell, outOfMemory, sessionDied, stalled, type Place } from './failures.ts';
import { reasonOf } from './slots.ts';
import type { RunOptions, RunOutput } from './transport.ts';

/** stderr is for sentences; nothing of it is parsed. */
const stderrMaxBytes = 64 * 1024;
/** After the exit status, how long output may be silent before a background child that holds it is no longer waited for. */
const quietMs = 2_000;
/** stderr's end can come a moment after the close (ssh2). */
const closeGraceMs = 250;

export interface ExecPlace extends Place {
  readonly user: string;
  readonly channelMs: number;
}

/**
 * @throws ReclaimError when the command was not started: ssh_busy, ssh_exec_refused, ssh_no_shell, ssh_closed_early,
 * ssh_stalled, ssh_out_of_memory. Nothing can have happened then: a command without stdin does nothing.
 */
export async function execOn(
  client: Client,
  place: ExecPlace,
  command: string,
  stdin: Uint8Array,
  options: RunOptions,
): Promise<RunOutput> {
  const startedAt = performance.now();
  const channel = await openChannel(client, place, command, options);
  const leftMs = Math.max(1, options.timeoutMs - (performance.now() - startedAt));
  const output = await readToEnd(channel, stdin, options, leftMs);
  refuseNoShell(output, place);
  return output;
}

function openChannel(client: Client, place: ExecPlace, command: string, options: RunOptions): Promise<ClientChannel> {
  return new Promise((resolve, reject) => {
    let settled = false;
    const settle = (finish: () => void) => {
      settled = true;
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onAbort);
      client.off('close', onClose);
      finish();
    };
    const fail = (error: Error) => {
      if (settled) return;
      settle(() => {
        reject(error);
      });
    };
    const onAbort = () => {
      fail(reasonOf(options.signal));
    };
    const onClose = () => {
      fail(sessionDied(place));
    };
    const deadlineMs = Math.min(place.channelMs, options.timeoutMs);
    const timer = setTimeout(() => {
      fail(stalled(place, 'channel', deadlineMs));
    }, deadlineMs);
    if (options.signal?.aborted === true) {
      onAbort();
      return;
    }
    options.signal?.addEventListener('abort', onAbort, { once: true });
    client.on('close', onClose);
    try {
      client.exec(command, (error, channel) => {
        if (error) {
          fail(openFailure(error, place));
          return;
        }
        if (settled) {
          // Too late for us: nobody reads it, so it is closed at once.
          channel.resume().stderr.resume();
          channel.close();
          return;
        }
        settle(() => {
          resolve(channel);
        });
      });
    } catch (cause) {
      fail(sessionDied(place, cause));
    }
  });
}

function openFailure(error: Error, place: ExecPlace): Error {
  if (/unable to exec/i.test(error.message)) return execRefused(place, place.user, error);
  // RFC 4254 5.1: 1 prohibited, 2 failed (what OpenSSH answers beyond MaxSessions), 4 no resources.
  const reason = 'reason' in error ? error.reason : undefined;
  if (reason === 1) return execRefused(place, place.user, error);
  if (typeof reason === 'number') return busy(place, error);
  return sessionDied(place, error);
}

/** Collects up to a number of bytes and remembers whether there were more. */
function collector(maxBytes: number) {
  const chunks: Uint8Array[] = [];
  let kept = 0;
  let truncated = false;
  return {
    add(chunk: Uint8Array) {
      const room = maxBytes - kept;
      if (chunk.length > room) truncated = true;
      if (room <= 0) return;
      const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
      kept += part.length;
      chunks.push(part);
    },
    bytes: () => Buffer.concat(chunks),
    cut: () => truncated,
  };
}

function readToEnd(channel: ClientChannel, stdin: Uint8Array, options: RunOptions, leftMs: number): Promise<RunOutput> {
  return new Promise((resolve) => {
    const stdout = collector(options.maxBytes);
    const stderr = collector(stderrMaxBytes);
    const exit = { seen: false, code: null as number | null, signal: null as string | null };
    let quiet: NodeJS.Timeout | undefined;
    let done = false;
    const finish = (how: { lost: boolean; timedOut: boolean }) => {
      if (done) return;
      done = true;
      clearTimeout(deadline);
      clearTimeout(quiet);
      options.signal?.removeEventListener('abort', onAbort);
      // Without a terminal, closing does not end the command; the host program has its own deadline on the box.
      channel.close();
      resolve({
        code: exit.code,
        signal: exit.signal,
        stdout: stdout.bytes(),
        stderr: stderr.bytes(),
        truncated: stdout.cut(),
        ...how,
      });
    };
    const onAbort = () => {
      finish({ lost: true, timedOut: false });
    };
    const deadline = setTimeout(() => {
      finish({ lost: false, timedOut: true });
    }, leftMs);
    const waitForQuiet = (ms: number) => {
      clearTimeout(quiet);
      quiet = setTimeout(() => {
        finish({ lost: !exit.seen, timedOut: false });
      }, ms);
    };
    channel.on('data', (chunk: Buffer) => {
      stdout.add(chunk);
      if (!done) options.onStdout?.(chunk);
      if (exit.seen) waitForQuiet(quietMs);
    });
    channel.stderr.on('data', (chunk: Buffer) => {
      stderr.add(chunk);
      if (exit.seen) waitForQuiet(quietMs);
    });
    channel.on('exit', (code: number | null, signal?: string) => {
      exit.seen = true;
      exit.code = code;
      exit.signal = signal ?? null;
      waitForQuiet(quietMs);
    });
    channel.on('close', () => {
      if (channel.stderr.readableEnded) finish({ lost: !exit.seen, timedOut: false });
      else {
        channel.stderr.once('end', () => {
          finish({ lost: !exit.seen, timedOut: false });
        });
        waitForQuiet(closeGraceMs);
      }
    });
    channel.on('error', () => undefined);
    options.signal?.addEventListener('abort', onAbort, { once: true });
    if (options.signal?.aborted === true) onAbort();
    else channel.end(stdin);
  });
}

/** A login shell that is none, or a box that cannot make one: seen by words of the system before any of ours. */
function refuseNoShell(output: RunOutput, place: ExecPlace): void {
  if (output.code === 0 || output.code === null) return;
  const stdout = Buffer.from(output.stdout).toString('utf8');
  const stderr = Buffer.from(output.stderr).toString('utf8');
  if (/^This account is (currently )?not available/m.test(stdout + stderr)) throw noShell(place, place.user);
  if (stdout.trim() !== '') return;
  const memory =
    /^.*(cannot allocate memory|out of memory|can't fork|fork failed|failed forking|fork: .*resource).*$/im.exec(
      stderr,
    );
  if (memory !== null) throw outOfMemory(place, memory[0]);
}
