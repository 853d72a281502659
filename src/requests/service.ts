/**
 * What can be done with a request, by whoever asks: Slack, terminal and jobs all come through here, so the same rules
 * hold everywhere. Each call is one compare-and-swap (retried on a changed version) and leaves its audit events.
 */
import type { RunReport } from '../memory/contract.ts';
import type { Thought } from '../memory/story.ts';
import type { Directory } from './directory.ts';
import type { Person, RequestRecord, Surface } from './types.ts';

export interface Asked {
  readonly host: string;
  readonly requester: Person;
  readonly surface: Surface;
  readonly channel?: string;
  readonly threadTs?: string;
  /** The incident or sweep it is opened for. */
  readonly topic?: string;
}

export interface Decision {
  readonly id: string;
  readonly person: Person;
  readonly surface: Surface;
  readonly verdict: 'approve' | 'deny';
  /** The digest the person saw; a different one refuses the click. Absent = the current one (a deny needs none). */
  readonly digest?: string;
  /** Targets the approver unticked: `pid:startTime` for processes, `step:ID` for whole steps. */
  readonly without?: readonly string[];
  readonly reason?: string;
  /** Break-glass: this one approval stands for all. Needs policy.break_glass, a reason, and an approver. */
  readonly breakGlass?: boolean;
}

/** Refusals reject with a ReclaimError (`not_allowed`, `expired`, `request_closed`, `lookup_failed`, …) fit to be shown. */
export interface RequestService {
  /** A new draft, or the open request the host already has. */
  ask(asked: Asked): Promise<{ readonly record: RequestRecord; readonly existing: boolean }>;
  /** The look is done: the report goes up, and the request is pending, or ended when there is nothing to approve. */
  looked(id: string, found: { thought: Thought; hostKey: string }): Promise<RequestRecord>;
  lookFailed(id: string, code: string, userText: string): Promise<RequestRecord>;
  decide(decision: Decision, directory: Directory): Promise<RequestRecord>;
  cancel(id: string, person: Person, surface: Surface): Promise<RequestRecord>;
  /** Asked in a terminal, but more people are needed: a card in `channel` lets them decide, and a worker does the rest. */
  handOver(id: string, person: Person, channel: string): Promise<RequestRecord>;
  /** "Mine, keep it": the owner of a listed process takes it out of the plan. */
  keep(id: string, person: Person, targets: readonly string[], surface: Surface): Promise<RequestRecord>;
  /** approved -> running, once. Null when somebody else has it or it may no longer run. */
  claim(id: string, worker: string): Promise<RequestRecord | null>;
  /** Stores the report so far and renews the lease. False = the lease was lost: stop. */
  progress(id: string, runId: string, doing: string | null, report: RunReport | null): Promise<boolean>;
  finish(id: string, runId: string, report: RunReport): Promise<RequestRecord>;
  /** running -> superseded or failed or unknown when the run could not even start or was lost. */
  abandon(
    id: string,
    runId: string,
    to: 'superseded' | 'failed' | 'unknown',
    code: string,
    why: string,
  ): Promise<RequestRecord>;
  /** Expires what is due, ends lost runs as unknown, re-enqueues what got lost between store and queue. */
  sweep(): Promise<void>;
}
