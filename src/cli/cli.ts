/** `reclaim`: finds the command, runs it, and turns whatever goes wrong into one sentence and an exit code. */
import { asReclaimError, exitCodes, ReclaimError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { commands } from './commands.ts';
import type { CliIo, Command } from './io.ts';

function help(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const rows = Object.entries(commands).map(([name, entry]) => `  ${name.padEnd(width)}  ${entry.summary}`);
  return `reclaim: who holds the memory of a shared box, and what may be given back

Usage: reclaim COMMAND [options]

${rows.join('\n')}

  reclaim COMMAND --help tells more of one. Every command takes --config FILE.
  Exit codes: 0 done, 1 a failure it explains, 2 wrong usage, 3 not allowed, 4 unreachable host, 5 outcome unknown.
`;
}

function commandHelp(command: Command): string {
  const examples = command.examples.map((line) => `  ${line}`).join('\n');
  return `${command.summary}\n\nUsage: ${command.usage}\n\nExamples:\n${examples}\n`;
}

/** Runs one command line. Never rejects: the exit code is the answer. */
export async function cli(args: readonly string[], io: CliIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    io.out(help());
    return name === undefined ? exitCodes.usage : exitCodes.done;
  }
  try {
    const entry = commands[name];
    if (entry === undefined) {
      const near = nearest(name, Object.keys(commands));
      const hint = near === null ? 'reclaim help lists them.' : `Did you mean "${near}"?`;
      throw new ReclaimError('usage', `There is no command "${name.slice(0, 40)}", so nothing was done. ${hint}`);
    }
    const command = await entry.load();
    if (rest.includes('--help') || rest.includes('-h')) {
      io.out(commandHelp(command));
      return exitCodes.done;
    }
    return await command.run(rest, io);
  } catch (thrown) {
    const error = asReclaimError(thrown);
    io.err(`reclaim: ${error.userText}\n`);
    if (error.code === 'internal' && io.env['LOG_LEVEL'] === 'debug') io.err(`${String(causeOf(error))}\n`);
    return error.exitCode;
  }
}

function causeOf(error: Error): unknown {
  return error.cause instanceof Error ? error.cause.stack : error.cause;
}
