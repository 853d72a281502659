/** One line of what `reclaim doctor` prints. */
export interface Row {
  readonly what: string;
  readonly state: 'ok' | 'warn' | 'fail';
  /** What was found, and for warn and fail what to do about it. */
  readonly detail: string;
}

export const ok = (what: string, detail: string): Row => ({ what, state: 'ok', detail });
export const warn = (what: string, detail: string): Row => ({ what, state: 'warn', detail });
export const fail = (what: string, detail: string): Row => ({ what, state: 'fail', detail });
