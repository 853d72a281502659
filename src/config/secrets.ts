/** Secrets as files, the way containers and systemd hand them over: NAME_FILE names a file that holds the value of NAME. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

export const secretNames = [
  'SLACK_BOT_TOKEN',
  'SLACK_APP_TOKEN',
  'SLACK_SIGNING_SECRET',
  'ALERT_WEBHOOK_TOKEN',
  'RECLAIM_SSH_PASSPHRASE',
  'QUEUE_URL',
] as const;

/** A secret longer than this is the wrong file. */
const mostBytes = 64 * 1024;

/** The settings with every NAME_FILE read; what is wrong with one is told in `faults`, never with its content. */
export function withSecretFiles(
  settings: Readonly<Record<string, string>>,
  cwd: string,
  faults: string[],
): Record<string, string> {
  const read: Record<string, string> = { ...settings };
  for (const name of secretNames) {
    const file = settings[`${name}_FILE`];
    if (file === undefined) continue;
    if (settings[name] !== undefined) {
      faults.push(`environment: ${name} and ${name}_FILE are both set: leave one out`);
      continue;
    }
    try {
      const text = readFileSync(resolve(cwd, file), 'utf8').replace(/\r?\n$/, '');
      if (text === '' || text.length > mostBytes || text.includes('\n')) throw new Error('not one line');
      read[name] = text;
    } catch (error) {
      const why = error instanceof Error && 'code' in error ? String(error.code) : 'it does not hold one line';
      faults.push(`environment: ${name}_FILE: ${file} cannot be used (${why})`);
    }
  }
  return read;
}
