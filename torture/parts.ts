/** The parts, in the order they start: the one that waits longest first, two at a time. */
import { attack } from './attack.ts';
import { badInput } from './bad-input.ts';
import { crash } from './crash.ts';
import { load } from './load.ts';
import type { Part } from './part.ts';
import { redis } from './redis.ts';
import { wrongKills } from './wrong-kills.ts';

export const parts: readonly Part[] = [crash, wrongKills, badInput, attack, load, redis];
