/** /proc/PID/status and smaps_rollup: the figures, in KiB. The kernel escapes newlines in Name, so lines can be trusted. */
import { integerOf } from './text.ts';

export interface Status {
  readonly uid: number | null;
  /** Pids from the outermost visible namespace to the process's own; more than one means it lives in a container. */
  readonly namespacePids: readonly number[];
  readonly rssKiB: number | null;
  readonly rssAnonKiB: number | null;
  readonly rssFileKiB: number | null;
  readonly rssShmemKiB: number | null;
  readonly swapKiB: number | null;
  readonly pageTablesKiB: number | null;
  readonly lockedKiB: number | null;
  readonly hugetlbKiB: number | null;
  readonly threads: number | null;
}

type Reader = (name: string) => string | undefined;

/**
 * Text after `name:` on a line of its own. 5,000 of these files are read per look: names are asked for in the order the
 * kernel prints them, so each search starts where the last one ended and the file is passed over once.
 */
function readerOf(text: string): Reader {
  let from = 0;
  return (name) => {
    const needle = `${name}:`;
    let at = text.indexOf(needle, from);
    while (at > 0 && text.charCodeAt(at - 1) !== 10) at = text.indexOf(needle, at + 1);
    if (at === -1) return undefined;
    const end = text.indexOf('\n', at);
    from = end === -1 ? text.length : end;
    return text.slice(at + needle.length, from).trim();
  };
}

function kiBOf(line: string | undefined): number | null {
  return line?.endsWith(' kB') === true ? integerOf(line.slice(0, -3)) : null;
}

const numbersOf = (line: string | undefined): (number | null)[] => (line ?? '').split(/\s+/).map(integerOf);

/** Real, effective, saved, file system. Signals and files go by the effective one. */
function effectiveUid(line: string | undefined): number | null {
  const [, effective] = /^\d+\s+(\d+)/.exec(line ?? '') ?? [];
  return integerOf(effective);
}

/** One number for nearly everybody. */
function pidsOf(line: string | undefined): number[] {
  const only = integerOf(line);
  return only === null ? numbersOf(line).filter((pid) => pid !== null) : [only];
}

export function parseStatus(text: string): Status {
  const read = readerOf(text);
  return {
    uid: effectiveUid(read('Uid')),
    namespacePids: pidsOf(read('NSpid')),
    lockedKiB: kiBOf(read('VmLck')),
    rssKiB: kiBOf(read('VmRSS')),
    rssAnonKiB: kiBOf(read('RssAnon')),
    rssFileKiB: kiBOf(read('RssFile')),
    rssShmemKiB: kiBOf(read('RssShmem')),
    pageTablesKiB: kiBOf(read('VmPTE')),
    swapKiB: kiBOf(read('VmSwap')),
    hugetlbKiB: kiBOf(read('HugetlbPages')),
    threads: integerOf(read('Threads')),
  };
}

export interface Rollup {
  /** Anonymous memory, each page divided by the number of processes that share it. Kernel 5.3 and later. */
  readonly pssAnonKiB: number | null;
  /** Pages no other process maps. */
  readonly privateKiB: number | null;
}

export function parseRollup(text: string): Rollup {
  const read = readerOf(text);
  const pssAnonKiB = kiBOf(read('Pss_Anon'));
  const clean = kiBOf(read('Private_Clean'));
  const dirty = kiBOf(read('Private_Dirty'));
  return {
    pssAnonKiB,
    privateKiB: clean === null || dirty === null ? null : clean + dirty,
  };
}
