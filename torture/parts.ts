/** The parts, in the order they run. */
import type { Part } from './part.ts';
import { wrongKills } from './wrong-kills.ts';

export const parts: readonly Part[] = [wrongKills];
