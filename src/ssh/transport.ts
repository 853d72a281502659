/**
 * The road to one machine, as the host program sees it: bytes in, bytes out, and how it ended. Over ssh or on this
 * machine, nothing but a fixed command is ever in an argument list; everything else travels on stdin.
 */
import type { Privilege } from '../box.ts';

export interface RunOptions {
  /** The whole run, from the request for a channel to the last byte. */
  readonly timeoutMs: number;
  /** Cap on stdout; what comes after is read and thrown away, and `truncated` says so. stderr is capped at 64 KiB. */
  readonly maxBytes: number;
  /** Whether to use the privilege this host is configured with, or to run as the login user. */
  readonly privileged: boolean;
  readonly onStdout?: (chunk: Uint8Array) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface RunOutput {
  /** Exit status, or null where a signal ended it or the end was not seen. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly truncated: boolean;
  /** The connection ended before the command did: what it did is not known. */
  readonly lost: boolean;
  readonly timedOut: boolean;
}

export interface Transport {
  readonly host: string;
  /** `SHA256:…` of the key the box proved to hold, or `local`. */
  readonly hostKey: string;
  /**
   * Runs `remoteCommand(privilege, options.privileged)` with this stdin and waits for its end. Rejects with a
   * ReclaimError only when the command could not be started; everything after that is told in the output.
   */
  run(stdin: Uint8Array, options: RunOptions): Promise<RunOutput>;
  close(): Promise<void>;
}

/** Where the host program is installed for `privilege: helper`. */
export const helperPath = '/usr/local/sbin/reclaim-host';

/**
 * The only commands Reclaim ever sends. `exec` so that no login shell stays in between. Agentless sudo lets the account
 * run any script as root; `helper` is the narrow way: one sudoers line for one root-owned file with typed requests.
 */
export function remoteCommand(privilege: Privilege, privileged: boolean): string {
  if (privileged && privilege === 'sudo') return 'exec sudo -n /bin/sh -s';
  if (privileged && privilege === 'helper') return `exec sudo -n ${helperPath}`;
  return 'exec sh -s';
}
