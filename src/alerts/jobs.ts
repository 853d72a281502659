/** What the alert side may put on the queue. The ids are fixed, so that putting up the same twice changes nothing. */
import type { Received } from './incidents.ts';

export interface AlertJobs {
  /** @throws ReclaimError queue_down */
  received(received: Received, id: string): Promise<void>;
  /** Measures the box of an incident again, so many minutes after the reclaim `request`. */
  recheck(incident: { id: string; request: string; minutes: number }, delayMs: number): Promise<void>;
  /** Looks at one host of a sweep. */
  sweepHost(sweepId: string, host: string): Promise<void>;
}
