/** Bolt's and web-api's log lines go where all others go. Their debug level prints message bodies, so it is never taken. */
import { LogLevel, type Logger as BoltLogger } from '@slack/bolt';
import type { Logger } from 'pino';

const text = (parts: readonly unknown[]): string =>
  parts.map((p) => (p instanceof Error ? p.message : typeof p === 'string' ? p : JSON.stringify(p))).join(' ');

export function boltLogger(log: Logger): BoltLogger {
  return {
    debug: () => undefined,
    info: (...parts: unknown[]) => {
      log.debug(text(parts));
    },
    warn: (...parts: unknown[]) => {
      log.warn(text(parts));
    },
    error: (...parts: unknown[]) => {
      log.error(text(parts));
    },
    setLevel: () => undefined,
    getLevel: () => LogLevel.INFO,
    setName: () => undefined,
  };
}
