/** The log: JSON lines on stderr, so that stdout stays free for results. Secrets are cut wherever they may sit. */
import { destination, pino, type Logger } from 'pino';
import { z } from 'zod';

const secretPaths = ['token', 'authorization', 'passphrase', 'password', 'secret', 'headers.authorization'];

/** Tokens of Slack, bearer tokens, and passwords in addresses, wherever in a line they stand. */
const secretShapes = [
  /\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{4,}/g,
  /(?<=\bBearer )[^\s"\\]+/g,
  /(?<=\b[a-z]+:\/\/[^\s:/@"]*:)[^\s@"/]+(?=@)/g,
];

/** The line without what looks like a secret; still the same JSON. */
export const scrubbed = (line: string): string =>
  secretShapes.reduce((text, shape) => text.replace(shape, '[secret]'), line);

export function createLog(level: string, base: Readonly<Record<string, unknown>>): Logger {
  return pino(
    {
      level,
      base,
      redact: { paths: secretPaths.flatMap((path) => [path, `*.${path}`]), censor: '[secret]' },
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: scrubbed },
    },
    destination({ fd: 2, sync: true }),
  );
}

const ids = z.object({ requestId: z.string(), host: z.string(), incident: z.string() }).partial();

/** The log of one job: every line carries the job's name and what its payload names. */
export function jobLog(log: Logger, job: string, payload: unknown): Logger {
  const named = ids.safeParse(payload);
  const { requestId, ...others } = named.success ? named.data : {};
  return log.child({ job, ...(requestId === undefined ? {} : { request: requestId }), ...others });
}
