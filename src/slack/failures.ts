/** What a failed Slack call means for what was to be sent: wait, look first, say it simpler, or never. */
import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from '@slack/web-api';

export type Failure =
  | { readonly kind: 'wait'; readonly ms: number; readonly reason: string }
  /** Slack may have taken it or not: look for it before sending again. */
  | { readonly kind: 'uncertain'; readonly reason: string }
  /** Slack refuses the blocks; the same in plain text may pass. */
  | { readonly kind: 'payload'; readonly reason: string }
  /** The message to edit is not there (any more). */
  | { readonly kind: 'gone'; readonly reason: string }
  | { readonly kind: 'permanent'; readonly reason: string };

const permanent = new Set([
  'channel_not_found',
  'is_archived',
  'not_in_channel',
  'restricted_action',
  'restricted_action_read_only_channel',
  'restricted_action_thread_only_channel',
  'restricted_action_thread_locked',
  'no_permission',
  'channel_type_not_supported',
  'method_not_supported_for_channel_type',
]);
const payload = new Set([
  'invalid_blocks',
  'invalid_blocks_format',
  'msg_too_long',
  'msg_blocks_too_long',
  'invalid_arguments',
]);
const gone = new Set(['message_not_found', 'cant_update_message', 'edit_window_closed', 'thread_not_found']);
const busy = new Set([
  'ratelimited',
  'rate_limited',
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
]);

export function failureOf(error: unknown): Failure {
  if (error instanceof WebAPIRateLimitedError) {
    return { kind: 'wait', ms: error.retryAfter * 1000, reason: 'ratelimited' };
  }
  if (error instanceof WebAPIPlatformError) return platformFailure(error.data.error);
  if (error instanceof WebAPIHTTPError) {
    return { kind: 'uncertain', reason: `HTTP status ${error.statusCode}` };
  }
  if (error instanceof WebAPIRequestError) return { kind: 'uncertain', reason: 'connection failed' };
  return { kind: 'uncertain', reason: error instanceof Error ? error.name : 'unknown failure' };
}

function platformFailure(code: string): Failure {
  if (permanent.has(code)) return { kind: 'permanent', reason: code };
  if (payload.has(code)) return { kind: 'payload', reason: code };
  if (gone.has(code)) return { kind: 'gone', reason: code };
  if (busy.has(code)) return { kind: 'uncertain', reason: code };
  // Token and scope errors: an operator can mend them, so nothing is thrown away meanwhile.
  return { kind: 'wait', ms: 30_000, reason: code };
}

const longestBackoffMs = 60_000;

/** Doubles from one second to a minute; a wait Slack names is kept as it is. */
export function backoffMs(failure: Failure, attempts: number): number {
  if (failure.kind === 'wait') return failure.ms;
  return Math.min(longestBackoffMs, 1000 * 2 ** Math.min(10, Math.max(0, attempts - 1)));
}
