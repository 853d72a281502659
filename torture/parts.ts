/** The parts, in the order they run. */
import { attack } from './attack.ts';
import { badInput } from './bad-input.ts';
import { crash } from './crash.ts';
import { load } from './load.ts';
import type { Part } from './part.ts';
import { redis } from './redis.ts';
import { wrongKills } from './wrong-kills.ts';

export const parts: readonly Part[] = [wrongKills, badInput, crash, redis, attack, load];
