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
  readonly pinnedKiB: number | null;
  readonly hugetlbKiB: number | null;
  readonly threads: number | null;
}

/** The text after `name:` on its own line. indexOf, because 5,000 of these files are read per look. */
function lineOf(text: string, name: string): string | undefined {
  const at = text.startsWith(`${name}:`) ? 0 : text.indexOf(`\n${name}:`) + 1;
  if (at === 0 && !text.startsWith(`${name}:`)) return undefined;
  const end = text.indexOf('\n', at);
  return text.slice(at + name.length + 1, end === -1 ? undefined : end).trim();
}

function kiBOf(text: string, name: string): number | null {
  const line = lineOf(text, name);
  return line?.endsWith(' kB') === true ? integerOf(line.slice(0, -3).trim()) : null;
}

export function parseStatus(text: string): Status {
  const numbers = (line: string | undefined) => (line ?? '').split(/\s+/).map(integerOf);
  return {
    // Uid: real, effective, saved, file system. Signals and files go by the effective one.
    uid: numbers(lineOf(text, 'Uid'))[1] ?? null,
    namespacePids: numbers(lineOf(text, 'NSpid')).filter((pid) => pid !== null),
    rssKiB: kiBOf(text, 'VmRSS'),
    rssAnonKiB: kiBOf(text, 'RssAnon'),
    rssFileKiB: kiBOf(text, 'RssFile'),
    rssShmemKiB: kiBOf(text, 'RssShmem'),
    swapKiB: kiBOf(text, 'VmSwap'),
    pageTablesKiB: kiBOf(text, 'VmPTE'),
    lockedKiB: kiBOf(text, 'VmLck'),
    pinnedKiB: kiBOf(text, 'VmPin'),
    hugetlbKiB: kiBOf(text, 'HugetlbPages'),
    threads: integerOf(lineOf(text, 'Threads')),
  };
}

export interface Rollup {
  /** Anonymous memory, each page divided by the number of processes that share it. Kernel 5.3 and later. */
  readonly pssAnonKiB: number | null;
  /** Pages no other process maps. */
  readonly privateKiB: number | null;
}

export function parseRollup(text: string): Rollup {
  const clean = kiBOf(text, 'Private_Clean');
  const dirty = kiBOf(text, 'Private_Dirty');
  return {
    pssAnonKiB: kiBOf(text, 'Pss_Anon'),
    privateKiB: clean === null || dirty === null ? null : clean + dirty,
  };
}
