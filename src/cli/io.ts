/** What a command may touch of the terminal it runs in; tests hand in their own. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { ReclaimError } from '../errors.ts';

export interface CliIo {
  /** Results. With --json exactly one object and nothing else. */
  readonly out: (text: string) => void;
  /** Progress, questions and errors. */
  readonly err: (text: string) => void;
  /** Asks a question in the terminal; null when nobody can answer (no terminal, end of input). */
  readonly ask: (question: string) => Promise<string | null>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly columns: number;
  /** Colours only for a terminal that wants them: never when piped, never with NO_COLOR. */
  readonly color: boolean;
  /** Ends when the person presses Ctrl-C or the process is asked to end. */
  readonly signal: AbortSignal;
  /** Calls back at each SIGHUP from now on; without it a hangup ends the process. */
  readonly onHangup?: (listener: () => void) => void;
}

export interface Command {
  readonly summary: string;
  readonly usage: string;
  readonly examples: readonly string[];
  run(args: readonly string[], io: CliIo): Promise<number>;
}

/** Options every command takes. */
export const commonOptions = {
  config: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options'];

/** Strict: an option nobody knows is a fault, not a guess. @throws ReclaimError `usage` */
export function readArgs<const O extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: O,
  usage: string,
) {
  try {
    return parseArgs({
      args: [...args],
      options: { ...commonOptions, ...options },
      allowPositionals: true,
      strict: true,
    });
  } catch (cause) {
    const said = cause instanceof Error ? (cause.message.split('. ')[0] ?? cause.message) : 'The arguments are off';
    throw new ReclaimError('usage', `${said}. Nothing was done. Usage: ${usage}`, { cause });
  }
}

/** Exactly one positional argument. @throws ReclaimError `usage` */
export function onePositional(positionals: readonly string[], what: string, usage: string): string {
  const [only, ...more] = positionals;
  if (only === undefined) throw new ReclaimError('usage', `Name ${what}. Usage: ${usage}`);
  if (more.length > 0)
    throw new ReclaimError('usage', `Name just one ${what}, not ${positionals.length}. Usage: ${usage}`);
  return only;
}
