/** What a dialog remembers between its pages and its submission, in the little room Slack gives for it. Pure. */
import { z } from 'zod';
import { limits } from '../text.ts';

export const callbackIds = {
  choose: 'reclaim_choose_view',
  deny: 'reclaim_deny_view',
  breakGlass: 'reclaim_break_glass_view',
  lookAt: 'reclaim_look_at_view',
} as const;

/** Sorted positions as ranges, `0-79 81`: a thousand of them must fit. */
function toRanges(positions: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const p of [...new Set(positions)].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === p - 1) last[1] = p;
    else ranges.push([p, p]);
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(' ');
}

/** @throws when they do not go up: then they are not of our making, and could be endless. */
function fromRanges(text: string): number[] {
  let last = -1;
  return text
    .split(' ')
    .filter(Boolean)
    .flatMap((range) => {
      const [from = 0, to = from] = range.split('-').map(Number);
      if (from <= last || to < from) throw new Error('the ranges do not go up');
      last = to;
      return Array.from({ length: to - from + 1 }, (_, i) => from + i);
    });
}

const count = z.number().int().nonnegative();
const metadataSchema = z.object({
  id: z.string(),
  channel: z.string(),
  digest: z.string(),
  /** Which page is on the screen, of the groups or of one of them. */
  page: count,
  group: count.nullable(),
  /** How often a page was turned: Slack keeps old ticks where a block keeps its id. */
  turn: count,
  /** Positions in `tickable(plan)`, which the digest pins; keys would not fit. */
  off: z
    .string()
    .regex(/^(?:\d{1,5}(?:-\d{1,5})?(?: |$))*$/)
    .transform(fromRanges),
});
export type ModalMemory = z.infer<typeof metadataSchema>;

export const freshMemory = (of: Pick<ModalMemory, 'id' | 'channel' | 'digest'>): ModalMemory => ({
  ...of,
  page: 0,
  group: null,
  turn: 0,
  off: [],
});

export const writeMemory = (memory: ModalMemory): string => JSON.stringify({ ...memory, off: toRanges(memory.off) });

export function readMemory(privateMetadata: string): ModalMemory | null {
  try {
    return metadataSchema.parse(JSON.parse(privateMetadata));
  } catch {
    return null;
  }
}

/** False when so many single ticks were taken out that the next page would forget some. */
export const fitsMemory = (memory: ModalMemory): boolean => writeMemory(memory).length <= limits.privateMetadataChars;
