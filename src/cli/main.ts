/** The program itself: one command line, run in this terminal. */
import { createInterface } from 'node:readline/promises';
import { exitCodes } from '../errors.ts';
import { cli } from './cli.ts';
import type { CliIo } from './io.ts';

function terminalIo(): CliIo {
  const stop = new AbortController();
  const end = (): void => {
    stop.abort();
  };
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  // A reader that closed its end (`| head`) is no fault of ours.
  process.stdout.on('error', () => process.exit(exitCodes.done));
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    ask: async (question) => {
      if (!process.stdin.isTTY) return null;
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return await lines.question(question, { signal: stop.signal });
      } catch {
        return null;
      } finally {
        lines.close();
      }
    },
    env: process.env,
    cwd: process.cwd(),
    columns: process.stdout.columns || 100,
    color: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
    signal: stop.signal,
    onHangup: (listener) => void process.on('SIGHUP', listener),
  };
}

process.exitCode = await cli(process.argv.slice(2), terminalIo());
// What was written to a pipe may still be on its way, and `exit` would cut it off.
for (const stream of [process.stdout, process.stderr]) await new Promise((written) => stream.write('', written));
// Whatever a library left open must not keep a finished command waiting.
process.exit();
