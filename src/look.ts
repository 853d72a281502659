/**
 * Look: one box, read once, to facts and what follows from them. The first of the three verbs (look, think, act); it
 * changes nothing on the box.
 */
import type { Box } from './box.ts';
import type { Policy } from './config/schema.ts';
import type { Capture } from './memory/contract.ts';
import type { ThinkOptions, Thought } from './memory/story.ts';
import { think } from './memory/think.ts';

/** Long enough to tell working from waiting, short enough for a person to wait for. */
const windowSeconds = 1;

export interface Look {
  readonly capture: Capture;
  readonly thought: Thought;
}

export async function look(box: Box, options: ThinkOptions): Promise<Look> {
  const capture = await box.collect({ scope: 'full', windowSeconds });
  return { capture, thought: think(capture, options) };
}

/** What the policy and the owners' wishes mean for the thinking. `kept` holds `pid:startTime` keys. */
export function thinkOptions(policy: Policy, kept: readonly string[]): ThinkOptions {
  return {
    protect: policy.protect,
    minAgeSeconds: {
      process: policy.min_age.process / 1000,
      shm: policy.min_age.shm / 1000,
      sysv: policy.min_age.sysv / 1000,
    },
    kept,
  };
}
