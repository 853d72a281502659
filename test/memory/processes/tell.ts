/** Tells the process story of a made box and holds the answer against the contract. */
import { findingSchema, stepSchema } from '../../../src/memory/contract.ts';
import type { ProcessStory, ThinkOptions } from '../../../src/memory/story.ts';
import { tellProcessStory } from '../../../src/memory/processes/story.ts';
import { defaultOptions, makeBox, type BoxSpec } from '../box.ts';

export const GiB = 1024 * 1024;

export function tell(spec: BoxSpec, options: Partial<ThinkOptions> = {}): ProcessStory {
  const story = tellProcessStory(makeBox(spec), { ...defaultOptions, ...options });
  for (const finding of story.findings) findingSchema.parse(finding);
  for (const step of story.steps) stepSchema.parse({ id: 'x', ...step });
  return story;
}

/** Pids in kill steps, in the order of the signals. */
export const killed = (story: ProcessStory): number[] =>
  story.steps.flatMap((step) => (step.action === 'kill' ? step.targets.map((target) => target.pid) : []));

export const classes = (story: ProcessStory): string[] => story.findings.map((finding) => finding.class);
