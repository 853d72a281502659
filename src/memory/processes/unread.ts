/** What the processes whose details nobody read can hold, all together. */
import type { Capture } from '../contract.ts';
import { parseMeminfo } from '../meminfo.ts';
import { textOf } from './text.ts';

/**
 * On a crowded box only the stat of small processes is read, and its rss counts the same pages of libc once per process: five
 * thousand sleeps "hold" 8 GiB that are not there. All of them together hold no more anonymous memory than the box has
 * beside that of the processes that were read. So of its rss each is given this share, 0..1.
 */
export function unreadShare(capture: Capture, readKiB: number, unreadRssKiB: number): number {
  const anonymousKiB = Math.max(...[capture.files, capture.later].map(anonPagesKiB));
  const leftKiB = Math.max(0, anonymousKiB - readKiB);
  return anonymousKiB < 0 || unreadRssKiB <= leftKiB ? 1 : leftKiB / unreadRssKiB;
}

/** -1 where it was not read. */
const anonPagesKiB = (files: Capture['files']): number =>
  parseMeminfo(textOf(files['/proc/meminfo']) ?? '').get('AnonPages') ?? -1;
