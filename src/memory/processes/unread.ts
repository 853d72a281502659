/** What the processes whose details nobody read can hold, all together. */
import type { Capture } from '../contract.ts';
import { parseMeminfo } from '../meminfo.ts';
import { sum } from './predict.ts';
import type { Proc } from './table.ts';
import { textOf } from './text.ts';

/**
 * On a crowded box only the stat of small processes is read, and its rss counts the same pages of libc once per process: five
 * thousand sleeps "hold" 8 GiB that are not there. All of them together hold no more anonymous memory than the box has
 * beside that of the processes that were read, so each gets its share of that at most.
 */
export function withinAnonymous(all: readonly Proc[], capture: Capture): readonly Proc[] {
  const anonymous = [capture.files, capture.later].map((files) =>
    parseMeminfo(textOf(files['/proc/meminfo']) ?? '').get('AnonPages'),
  );
  const anonymousKiB = Math.max(...anonymous.map((kiB) => kiB ?? -1));
  const isUnread = (proc: Proc) => proc.source === 'rss' && proc.status === null;
  const [unread, read] = [all.filter(isUnread), all.filter((proc) => !isUnread(proc))];
  const saidKiB = sum(unread, (proc) => proc.privateKiB);
  const leftKiB = Math.max(0, anonymousKiB - sum(read, (proc) => proc.privateKiB));
  if (anonymousKiB < 0 || saidKiB <= leftKiB) return all;
  return all.map((proc) =>
    isUnread(proc) ? { ...proc, privateKiB: Math.floor((proc.privateKiB / saidKiB) * leftKiB) } : proc,
  );
}
