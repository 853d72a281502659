/** What the finders of kernel memory look at, and what they share. */
import type { Accounting, MemoryClass } from './accounting.ts';
import type { Finding, FindingClass, Memory } from './contract.ts';
import type { MemoryFacts } from './facts.ts';
import type { DropLevel, DropOutlook } from './predict.ts';
import { escapeText } from './redact.ts';
import { sizeText } from './sizes.ts';
import type { SlabCache } from './slab.ts';

export interface KernelView {
  readonly facts: MemoryFacts;
  readonly memory: Memory;
  readonly accounting: Accounting;
  readonly outlook: DropOutlook;
  /** The level of the drop in the plan; null when none is proposed. */
  readonly dropLevel: DropLevel | null;
  readonly kernelRelease: string | null;
  /** What speaks for a GPU driver on the box, in words; null when nothing does. */
  readonly gpu: string | null;
  readonly zfs: boolean;
  readonly lustre: boolean;
  /** Huge pages that the processes whose status was read map; null when too little was seen. */
  readonly mappedHugeKiB: number | null;
  /** What `used` means in the `free` of this box. */
  readonly freeWords: string;
}

/** Smaller figures explain nothing: below 256 MiB, or 1 % of the box. */
export const noticeableKiB = (totalKiB: number): number => Math.max(256 * 1024, totalKiB * 0.01);

export const classKiB = (accounting: Accounting, name: MemoryClass): number =>
  accounting.classes.find((entry) => entry.class === name)?.kiB ?? 0;

export const notReclaimable = { low: 0, high: 0 } as const;

/** A finding nothing can be got back from by us. */
export function fixed(name: FindingClass, kiB: number, evidence: string[], action: Finding['action']): Finding {
  return { class: name, kiB, reclaimableKiB: notReclaimable, action, evidence };
}

export function cacheList(caches: readonly SlabCache[], most: number): string {
  return caches
    .slice(0, most)
    .map((cache) => `${escapeText(cache.name, 40)} ${sizeText(cache.kiB)}`)
    .join(', ');
}
