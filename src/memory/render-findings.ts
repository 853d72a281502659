/** The findings in a terminal, what can be given back first; what is too small to matter gets one line each. */
import type { Diagnosis, Finding } from './contract.ts';
import { rangeText, sizeText } from './sizes.ts';

export interface Ink {
  readonly width: number;
  /** `full`: every process and file with its whole command, as somebody who is asked to approve must see it. */
  readonly detail: 'short' | 'full';
  /** Printed above already; a finding that repeats it leaves it out. */
  readonly said: string | undefined;
  wrap(text: string, indent: string): string;
  bold(text: string): string;
  dim(text: string): string;
  warn(text: string): string;
}

type Part = 'back' | 'used' | 'kernel' | 'small';

const titles: Readonly<Record<Part, string>> = {
  back: 'Can be given back',
  used: 'In use, left alone',
  kernel: 'Kernel and caches',
  small: 'Small, left alone',
};

const givesBack: readonly Finding['action'][] = ['kill', 'remove_files', 'ipcrm'];
const ofPeople: readonly Finding['class'][] = [
  'leftover_build',
  'orphaned_workers',
  'stale_shm',
  'stale_sysv_shm',
  'tmpfs_files',
  'pinned_shm',
  'live_job',
  'idle_daemon',
  'idle_owned',
  'unkillable',
  'zombie',
];

/** Less than this share of the box explains nothing. */
const smallShare = 0.01;
const smallKiB = 64 * 1024;

function partOf(finding: Finding, totalKiB: number): Part {
  if (givesBack.includes(finding.action)) return 'back';
  // Stuck processes and lost GPU contexts matter however little memory they hold.
  const matters = finding.action === 'tell_admin' && finding.class !== 'idle_daemon';
  if (!matters && finding.kiB < Math.max(smallKiB, totalKiB * smallShare)) return 'small';
  return ofPeople.includes(finding.class) ? 'used' : 'kernel';
}

/** Blank line, title and findings of each part. Inside a part the order is the diagnosis's: largest first. */
export function findingSections(diagnosis: Diagnosis, ink: Ink): string[] {
  const parts = new Map<Part, Finding[]>();
  for (const finding of diagnosis.findings) {
    const part = partOf(finding, diagnosis.memory.totalKiB);
    parts.set(part, [...(parts.get(part) ?? []), finding]);
  }
  return partOrder(diagnosis, parts).flatMap((part) => {
    const findings = parts.get(part) ?? [];
    if (findings.length === 0) return [];
    const title = part === 'back' ? ink.warn(`== ${titles[part]} ==`) : ink.dim(`== ${titles[part]} ==`);
    if (part === 'small') return ['', title, ...findings.map((finding) => oneLine(finding, ink))];
    return ['', title, ...findings.flatMap((finding, at) => [...(at === 0 ? [] : ['']), ...whole(finding, ink)])];
  });
}

function partOrder({ verdict }: Diagnosis, parts: ReadonlyMap<Part, readonly Finding[]>): Part[] {
  const largest = (part: Part): number => Math.max(0, ...(parts.get(part) ?? []).map((finding) => finding.kiB));
  const kernelFirst =
    verdict === 'not_a_process' || (verdict === 'nothing_to_reclaim' && largest('kernel') > largest('used'));
  return kernelFirst ? ['back', 'kernel', 'used', 'small'] : ['back', 'used', 'kernel', 'small'];
}

const actionWords: Readonly<Record<Finding['action'], string>> = {
  kill: '; can be ended',
  remove_files: '; can be removed',
  ipcrm: '; can be removed',
  drop_caches: '',
  ask_owner: '; ask its owner',
  tell_admin: '; tell an admin',
  none: '',
};

const shownShort = 10;

function whole(finding: Finding, ink: Ink): string[] {
  const { low, high } = finding.reclaimableKiB;
  // Dropped cache moves to `free`; it was available before.
  const size = finding.kiB === 0 ? '' : `  ${sizeText(finding.kiB)}`;
  const isCache = finding.class === 'page_cache' || finding.class === 'reclaimable_slab';
  const back = high > 0 ? `, ${rangeText({ low, high })} ${isCache ? 'can move to free' : 'can come back'}` : '';
  const everything = ink.detail === 'full' && givesBack.includes(finding.action);
  const most = everything ? Infinity : shownShort;
  const processes = finding.processes ?? [];
  const paths = finding.paths ?? [];
  const more = Math.max(0, processes.length - most) + Math.max(0, paths.length - most);
  return [
    ink.bold(ink.wrap(`${finding.class}${size}${back}${actionWords[finding.action]}`, '')),
    ...finding.evidence
      .filter((line) => ink.said === undefined || !line.includes(ink.said))
      .map((line) => ink.wrap(`- ${line}`, '  ')),
    ...processes.slice(0, most).map((proc) => processLine(proc, everything, ink)),
    ...paths.slice(0, most).map((path) => ink.wrap(path, '    ')),
    ...(more > 0 ? [ink.dim(`    and ${more} more`)] : []),
  ];
}

function oneLine(finding: Finding, ink: Ink): string {
  const why = finding.evidence[0] ?? '';
  const size = finding.kiB === 0 ? '' : ` ${sizeText(finding.kiB)}`;
  return ink.wrap(`- ${finding.class}${size}: ${why}${actionWords[finding.action]}`, '  ');
}

function processLine(proc: NonNullable<Finding['processes']>[number], everything: boolean, ink: Ink): string {
  const owner = proc.user ?? (proc.uid === null ? '?' : `uid ${proc.uid}`);
  const lead = `${String(proc.pid).padStart(8)}  ${sizeText(proc.kiB).padStart(8)}  ${owner}  `;
  if (everything) return ink.wrap(`${lead}${proc.command}`, '  ');
  return `  ${lead}${shortCommand(proc.command, Math.max(20, ink.width - 2 - lead.length))}`;
}

/** In one line: the program without its folder, the first arguments, and the file it works on, which stands last. */
export function shortCommand(command: string, room: number): string {
  if (command.length <= room) return command;
  const bare = Array.from(command.replace(/^\S*\/(?=[^\s/])/, ''));
  if (bare.length <= room) return bare.join('');
  const last = Array.from(/[^\s/]*$/.exec(command)?.[0] ?? '');
  if (last.length === 0 || last.length > room - 16) return `${bare.slice(0, room - 1).join('')}…`;
  const head = bare.slice(0, room - last.length - 2).join('');
  return `${head.replace(/…?\s*$/, '')}… ${last.join('')}`;
}
