/**
 * Every failure a person can meet. An error carries a code (stable, documented, for scripts), whether trying again can
 * help, and the sentence for the person: what happened, what was not done, what to do next. It is thrown where the
 * facts are known and translated once, at the edge (Slack, CLI, HTTP); anything else is logged and shown as `internal`.
 */

/** Exit codes of the CLI (DESIGN 4.3). */
export const exitCodes = { done: 0, failed: 1, usage: 2, notAllowed: 3, unreachable: 4, unknown: 5 } as const;

interface CodeFacts {
  readonly retryable: boolean;
  readonly exit: number;
}

const failed = { retryable: false, exit: exitCodes.failed };
const usage = { retryable: false, exit: exitCodes.usage };
const notAllowed = { retryable: false, exit: exitCodes.notAllowed };
const unreachable = { retryable: false, exit: exitCodes.unreachable };
const unreachableForNow = { retryable: true, exit: exitCodes.unreachable };

/** code -> what the edges need to know about it. README lists every code; a test holds the two together. */
export const errorTable = {
  // asking
  usage: usage,
  host_unknown: usage,
  host_ambiguous: usage,
  config_invalid: usage,
  file_unreadable: failed,
  capture_invalid: failed,
  // reaching a box
  ssh_name_unresolved: unreachableForNow,
  ssh_refused: unreachableForNow,
  ssh_timeout: unreachableForNow,
  ssh_unreachable: unreachableForNow,
  ssh_closed_early: unreachableForNow,
  ssh_busy: unreachableForNow,
  ssh_stalled: unreachableForNow,
  ssh_out_of_memory: unreachableForNow,
  ssh_lost: { retryable: true, exit: exitCodes.unknown },
  ssh_host_key_unknown: unreachable,
  ssh_host_key_changed: unreachable,
  ssh_host_key_revoked: unreachable,
  ssh_known_hosts_unreadable: unreachable,
  ssh_auth_failed: unreachable,
  ssh_key_unusable: unreachable,
  ssh_no_shared_algorithm: unreachable,
  ssh_config_invalid: unreachable,
  ssh_no_shell: unreachable,
  ssh_exec_refused: unreachable,
  // working on a box
  host_program_failed: failed,
  host_answer_cut: { retryable: true, exit: exitCodes.failed },
  host_answer_invalid: failed,
  host_busy: { retryable: true, exit: exitCodes.failed },
  host_privilege: failed,
  host_rebooted: failed,
  // requests
  request_unknown: failed,
  request_closed: failed,
  request_changed: { retryable: true, exit: exitCodes.failed },
  request_open: failed,
  not_allowed: notAllowed,
  no_approvers: notAllowed,
  lookup_failed: { retryable: true, exit: exitCodes.notAllowed },
  expired: notAllowed,
  outcome_unknown: { retryable: false, exit: exitCodes.unknown },
  // our own parts
  store_down: { retryable: true, exit: exitCodes.failed },
  store_busy: failed,
  store_schema: failed,
  queue_down: { retryable: true, exit: exitCodes.failed },
  slack_token_missing: usage,
  slack_failed: { retryable: true, exit: exitCodes.failed },
  receipt_invalid: failed,
  backup_invalid: failed,
  internal: failed,
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof errorTable;

/** For codes that were written down or came over a wire. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code);

export class ReclaimError extends Error {
  override readonly name = 'ReclaimError';
  readonly code: ErrorCode;
  /** The sentence a person is shown. Never holds secrets, stack traces or unescaped host text. */
  readonly userText: string;

  constructor(code: ErrorCode, userText: string, options: { cause?: unknown } = {}) {
    super(`${code}: ${userText}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.userText = userText;
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable;
  }

  get exitCode(): number {
    return errorTable[this.code].exit;
  }
}

/** Turns whatever was thrown into a ReclaimError; what we did not foresee becomes `internal` with a plain sentence. */
export function asReclaimError(thrown: unknown): ReclaimError {
  if (thrown instanceof ReclaimError) return thrown;
  return new ReclaimError(
    'internal',
    'Something went wrong inside Reclaim. Nothing more was done. Look in its log for the details, and try again.',
    { cause: thrown },
  );
}
