/** What a finder hands over: a finding, the step that does something about it, and the processes it speaks for. */
import type { Finding } from '../contract.ts';
import type { DraftStep } from '../story.ts';
import type { Proc } from './table.ts';

export interface Told {
  readonly finding: Finding;
  readonly step: DraftStep | null;
  readonly procs: readonly Proc[];
}
