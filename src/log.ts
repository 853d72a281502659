/** The log: JSON lines on stderr, so that stdout stays free for results. Secrets are cut wherever they may sit. */
import { destination, pino, type Logger } from 'pino';

const secretPaths = ['token', 'authorization', 'passphrase', 'password', 'secret', 'headers.authorization'];

export function createLog(level: string, base: Readonly<Record<string, unknown>>): Logger {
  return pino(
    {
      level,
      base,
      redact: { paths: secretPaths.flatMap((path) => [path, `*.${path}`]), censor: '[secret]' },
      formatters: { level: (label) => ({ level: label }) },
    },
    destination({ fd: 2, sync: true }),
  );
}
