/** How a job is written down: payload, options and the work, checked where they are declared. */
import { z } from 'zod';
import type { Deps } from '../deps.ts';
import { ReclaimError } from '../errors.ts';
import type { JobDefinition, RunnableJob } from './types.ts';

export interface JobParts<Payload> {
  /** Also the name of its queue: letters, digits and dashes. */
  readonly name: string;
  readonly payload: z.ZodType<Payload>;
  readonly options: RunnableJob['options'];
  run(payload: Payload, deps: Deps, signal: AbortSignal): Promise<void>;
}

/** Throws at load time when the options contradict each other: what changes a box is tried once. */
export function defineJob<Payload>(parts: JobParts<Payload>): JobDefinition<Payload> {
  if (!/^[a-z][a-z0-9-]*$/.test(parts.name)) throw new Error(`job name ${parts.name}: letters, digits and dashes only`);
  if (parts.options.mutating && parts.options.attempts !== 1) {
    throw new Error(`job ${parts.name} changes boxes, so it may be tried once only`);
  }
  return {
    name: parts.name,
    payload: parts.payload,
    options: parts.options,
    async handle(data, deps, signal) {
      const parsed = parts.payload.safeParse(data);
      if (!parsed.success) {
        const cause = parsed.error;
        throw new ReclaimError('internal', `A ${parts.name} job had a payload nobody here wrote. It was not run.`, {
          cause,
        });
      }
      await parts.run(parsed.data, deps, signal);
    },
  };
}
