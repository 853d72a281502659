/** From findings to the one word and the one sentence (DESIGN 4.2). */
import type { Diagnosis, Finding, FindingClass, Memory, Verdict } from './contract.ts';
import { percentOf, rangeText, sizeText } from './sizes.ts';

export interface Evidence {
  readonly memory: Memory;
  readonly findings: readonly Finding[];
  /** Private memory of live work. */
  readonly liveKiB: number;
  /** Anonymous and shared memory by meminfo: what processes may hold, seen or not. */
  readonly processKiB: number;
  readonly sighted: boolean;
  readonly partial: readonly string[];
  readonly formulaKnown: boolean;
  /** Null when the box did not tell. */
  readonly uptimeSeconds: number | null;
}

export type Judgement = Pick<Diagnosis, 'verdict' | 'headline' | 'confidence'>;

/** A finding of less is not worth anyone's attention (DESIGN 4.2). */
const lingeringKiB = 256 * 1024;
/** With this share available, nobody is short of memory. */
const enoughShare = 0.4;
/** Kernel memory above this share is worth a verdict even where there is no shortage. */
const strangeShare = 0.25;

const givesBack: readonly Finding['action'][] = ['kill', 'remove_files', 'ipcrm'];

/** Findings that make a box `lingering`: nobody uses it, we can give it back, and it is worth it. */
export const lingeringFindings = (findings: readonly Finding[]): Finding[] =>
  findings.filter((f) => givesBack.includes(f.action) && f.reclaimableKiB.high >= lingeringKiB);

/** Held outside processes, and not given up by the kernel by itself. */
const kernelHeld: readonly FindingClass[] = [
  'unreclaimable_slab',
  'percpu',
  'hugepages',
  'zfs_arc',
  'balloon',
  'gpu_driver',
  'unaccounted',
];

/** Files of a RAM disk stay until somebody deletes them, whoever runs. Those in /dev/shm belong to the programs that use them. */
const onRamDisk = ({ class: name, paths }: Finding): boolean =>
  name === 'tmpfs_files' && paths?.[0] !== undefined && !paths[0].startsWith('/dev/shm');

/** Reclaimable in name, yet when it is a large part of the box people see it as missing. */
export const isStrangeSlab = ({ class: name, kiB }: Finding, { totalKiB }: Memory): boolean =>
  name === 'reclaimable_slab' && kiB > totalKiB * strangeShare;

function heldOutsideProcesses({ findings, memory }: Evidence): Finding[] {
  return findings.filter((f) => kernelHeld.includes(f.class) || onRamDisk(f) || isStrangeSlab(f, memory));
}

const sumOf = (findings: readonly Finding[]): number => findings.reduce((sum, f) => sum + f.kiB, 0);

export function judgeEvidence(evidence: Evidence): Judgement {
  const verdict = verdictOf(evidence);
  return { verdict, headline: headlines[verdict](evidence), confidence: confidenceIn(verdict, evidence) };
}

function verdictOf(evidence: Evidence): Verdict {
  const { memory, findings, liveKiB, processKiB, sighted } = evidence;
  const total = memory.totalKiB;
  if (total === 0) return 'unknown';
  const lingering = sumOf(lingeringFindings(findings));
  if (lingering > 0) return lingering > total * 0.1 && liveKiB > total * 0.1 ? 'mixed' : 'lingering';

  const kernelKiB = Math.min(sumOf(heldOutsideProcesses(evidence)), total);
  const held = sighted ? liveKiB : processKiB;
  const short = memory.availableKiB < total * enoughShare;
  if (kernelKiB > total * (short ? 0.1 : strangeShare) && kernelKiB >= held) return 'not_a_process';
  // What cannot be seen may be left over: only a box that holds next to nothing is cleared unseen.
  if (!sighted && processKiB >= lingeringKiB) return 'unknown';
  return short ? 'real_usage' : 'nothing_to_reclaim';
}

function confidenceIn(
  verdict: Verdict,
  { sighted, partial, formulaKnown, findings }: Evidence,
): Judgement['confidence'] {
  if (verdict === 'unknown') return 'low';
  if (!sighted) return verdict === 'not_a_process' ? 'medium' : 'low';
  const inferred = verdict === 'not_a_process' && findings.some((f) => f.class === 'unaccounted');
  return partial.length === 0 && formulaKnown && !inferred ? 'high' : 'medium';
}

const availableWords = ({ memory }: Evidence): string =>
  `${sizeText(memory.availableKiB)} of ${sizeText(memory.totalKiB)} is available`;

const headlines: Readonly<Record<Verdict, (evidence: Evidence) => string>> = {
  lingering: lingeringHeadline,
  mixed: (evidence) =>
    `${lingeringHeadline(evidence)} Live work holds another ${sizeText(evidence.liveKiB)} and is not touched.`,
  real_usage: (evidence) => {
    const { findings, liveKiB } = evidence;
    const largest = findings.find((f) => f.class === 'live_job');
    const who = largest?.processes?.[0]?.user;
    return `Real usage: live work holds ${sizeText(liveKiB)}${who ? `, most of it ${who}'s` : ''}; ${availableWords(evidence)}. Nothing is left over; only its owners can free it.${stuckWords(evidence)}`;
  },
  not_a_process: (evidence) => {
    const kernel = heldOutsideProcesses(evidence);
    const names = kernel.slice(0, 2).map((f) => `${words[f.class] ?? f.class} ${sizeText(f.kiB)}`);
    return `Not a process: ${names.join(', ')} of ${sizeText(evidence.memory.totalKiB)}. Killing anything will not help${cureOf(kernel[0], evidence.memory)}; ${availableWords(evidence)}.${stuckWords(evidence)}`;
  },
  nothing_to_reclaim: (evidence) => {
    const cache = evidence.findings.find((f) => f.class === 'page_cache');
    const kept = cache === undefined ? '' : ` ${sizeText(cache.kiB)} is file cache, which programs get when they ask.`;
    const small = evidence.findings.filter((f) => givesBack.includes(f.action));
    const listed = small.length === 0 ? '' : ` Small leftovers of ${sizeText(sumOf(small))} are listed all the same.`;
    const share = percentOf(evidence.memory.availableKiB, evidence.memory.totalKiB);
    return `Nothing to reclaim: ${availableWords(evidence)} (${share} %).${kept}${listed}${stuckWords(evidence)}${startedWords(evidence)}`;
  },
  unknown: (evidence) => {
    if (evidence.memory.totalKiB === 0)
      return 'Unknown: the memory figures of the box (/proc/meminfo) could not be read.';
    const missing = evidence.partial[0] ?? 'The processes of the box could not be seen.';
    return `Unknown: ${sizeText(evidence.processKiB)} belongs to processes we cannot judge. ${missing} ${capital(availableWords(evidence))}.`;
  },
};

/** What does help against the largest of it, where something does. */
function cureOf(largest: Finding | undefined, memory: Memory): string {
  if (largest === undefined) return '';
  if (onRamDisk(largest)) return ', deleting those files does';
  return isStrangeSlab(largest, memory) ? ', dropping caches can' : '';
}

function stuckWords({ findings, memory }: Evidence): string {
  const stuck = sumOf(findings.filter((f) => f.class === 'unkillable'));
  return stuck < Math.max(lingeringKiB, memory.totalKiB * 0.01)
    ? ''
    : ` ${sizeText(stuck)} is held by processes that no signal ends.`;
}

/** Whatever an alert from before the start was about is gone. */
const startedWords = ({ uptimeSeconds }: Evidence): string =>
  uptimeSeconds === null || uptimeSeconds >= 3600
    ? ''
    : ` The box was started ${Math.round(uptimeSeconds / 60)} min ago; what filled it before that is gone.`;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** `Something lingering: 360 to 369 GiB can be given back: a leftover build (369 GiB). …and whether it matters. */
function lingeringHeadline(evidence: Evidence): string {
  // One finding has to be worth it; once people are asked, whatever else can be given back counts as well.
  const lingering = evidence.findings.filter((f) => givesBack.includes(f.action) && f.reclaimableKiB.high > 0);
  const low = lingering.reduce((sum, f) => sum + f.reclaimableKiB.low, 0);
  const high = lingering.reduce((sum, f) => sum + f.reclaimableKiB.high, 0);
  const groups = new Map<FindingClass, Finding[]>();
  for (const finding of lingering) groups.set(finding.class, [...(groups.get(finding.class) ?? []), finding]);
  const named = [...groups].map(([name, members]) => {
    const label = words[name] ?? name;
    return members.length === 1 ? article(label) : `${members.length} × ${label}`;
  });
  const { memory } = evidence;
  const matters =
    memory.availableKiB >= memory.totalKiB * enoughShare
      ? `Nobody is short of memory: ${availableWords(evidence)}.`
      : `${capital(availableWords(evidence))}.`;
  return `Something lingering: ${rangeText({ low, high })} can be given back (${named.join(', ')}). ${matters}`;
}

/** What people call the classes. */
const words: Partial<Record<FindingClass, string>> = {
  leftover_build: 'leftover build',
  orphaned_workers: 'group of orphaned workers',
  stale_shm: 'stale shared memory',
  stale_sysv_shm: 'stale SysV shared memory',
  tmpfs_files: 'files in memory (tmpfs)',
  unreclaimable_slab: 'kernel slab',
  reclaimable_slab: 'cache of file names',
  percpu: 'per-CPU kernel memory',
  hugepages: 'huge page pool',
  zfs_arc: 'ZFS cache (ARC)',
  balloon: 'memory taken by the hypervisor',
  gpu_driver: 'memory of the GPU driver',
  unaccounted: 'memory in no kernel counter',
};

const article = (label: string): string => (/^(leftover|group)/.test(label) ? `a ${label}` : label);
