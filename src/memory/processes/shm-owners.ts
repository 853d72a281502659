/** What findings about files and about segments share: owners, and what a removal gives. */
import { escapeText } from '../redact.ts';
import type { RangeKiB } from '../contract.ts';
import type { World } from './signs.ts';

export const ownerOf = (world: World, uid: number): string =>
  `owner ${escapeText(world.table.listings.users.get(uid) ?? `uid ${uid}`, 64)}`;

export function byOwner<T>(items: readonly T[], uidOf: (item: T) => number): T[][] {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const group = groups.get(uidOf(item));
    if (group === undefined) groups.set(uidOf(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** Pages that were swapped out come back as swap, not as RAM: how many of these did is not told. */
export const removalRange = (world: World, kiB: number): RangeKiB => ({
  low: Math.max(0, kiB - world.swapUsedKiB),
  high: kiB,
});
