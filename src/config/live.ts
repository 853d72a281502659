/**
 * A configuration that can be replaced while the program runs. Whoever holds it reads what is in force now; hosts, policy
 * and alerts follow the file, while addresses and secrets of the environment stay until the next start.
 */
import { asReclaimError } from '../errors.ts';
import type { Config } from './schema.ts';

export interface LiveConfig {
  readonly config: Config;
  /** The sentence about the last reload when it was refused, or when it needs a restart to count in full. */
  readonly notice: string | null;
  /** Loads anew and puts it in force; a faulty one is refused and the old one kept. Never throws. */
  reload(load: () => Config, at: Date): 'done' | 'refused';
}

export function liveConfig(first: Config): LiveConfig {
  let current = first;
  let notice: string | null = null;
  const config: Config = {
    env: first.env,
    dataDir: first.dataDir,
    queueUrl: first.queueUrl,
    get file() {
      return current.file;
    },
    get hosts() {
      return current.hosts;
    },
    get policy() {
      return current.policy;
    },
    get policyVersion() {
      return current.policyVersion;
    },
    get alerts() {
      return current.alerts;
    },
    get retention() {
      return current.retention;
    },
  };
  return {
    config,
    get notice() {
      return notice;
    },
    reload(load, at) {
      const when = at.toISOString().slice(0, 16).replace('T', ' ');
      try {
        current = load();
        const stale = changedSettings(first, current);
        notice =
          stale.length === 0
            ? null
            : `Reloaded ${when} UTC; ${stale.join(', ')} changed too and will count after a restart.`;
        return 'done';
      } catch (thrown) {
        notice = `The reload at ${when} UTC was refused and the old configuration is still in force. ${asReclaimError(thrown).userText}`;
        return 'refused';
      }
    },
  };
}

/** Names of the settings in the environment that are not what this process started with. */
function changedSettings(first: Config, now: Config): string[] {
  const before = new Map<string, unknown>(Object.entries(first.env));
  const after = new Map<string, unknown>(Object.entries(now.env));
  return [...new Set([...before.keys(), ...after.keys()])].filter((name) => before.get(name) !== after.get(name));
}
