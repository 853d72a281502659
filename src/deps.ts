/** Everything the entry points (Slack, jobs, CLI, HTTP) may use. Built once, in src/compose.ts, and passed on. */
import type { Logger } from 'pino';
import type { AlertJobs } from './alerts/jobs.ts';
import type { OpenBox } from './box.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/schema.ts';
import type { Queue } from './queue/types.ts';
import type { RequestService } from './requests/service.ts';
import type { Store } from './requests/store.ts';

export interface Deps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this process in leases and logs: role, host name, pid and a random part. */
  readonly instance: string;
  readonly openBox: OpenBox;
  readonly store: Store;
  readonly queue: Queue;
  readonly requests: RequestService;
  readonly alertJobs: AlertJobs;
  /** Sentences about this deployment that people should see on the Home tab; empty when all is well. */
  readonly notices?: () => readonly string[];
}
