/** Shared memory without processes: stale files and segments with the steps that remove them, and what is in use. */
import { sizeText } from '../sizes.ts';
import type { Capture, Finding } from '../contract.ts';
import type { DraftStep } from '../story.ts';
import { escapeText } from '../redact.ts';
import { sum } from './predict.ts';
import { parseDf, parseShmFiles, parseSysv, type ShmFile, type SysvSegment, type Tmpfs } from './shared.ts';
import { fileInUse, holdersByPath } from './shm-holders.ts';
import type { World } from './signs.ts';
import { shortList, worthALineKiB, worthAStepKiB, type Telling } from './steps.ts';
import { byOwner, ownerOf, removalRange } from './shm-owners.ts';
import { sysvFindings } from './sysv-findings.ts';
import { commandOf, textOf } from './text.ts';
import type { Told } from './told.ts';
import { ageWords, count } from './words.ts';

export interface SharedMemory {
  readonly files: readonly ShmFile[];
  readonly segments: readonly SysvSegment[];
  readonly mounts: readonly Tmpfs[];
  readonly mountsKnown: boolean;
}

export function readShared(capture: Capture): SharedMemory {
  const df = commandOf(capture, 'df tmpfs');
  return {
    files: parseShmFiles(commandOf(capture, 'shm files').text),
    segments: parseSysv(textOf(capture.files['/proc/sysvipc/shm']) ?? ''),
    mounts: parseDf(df.text),
    mountsKnown: df.text !== '' && !df.timedOut,
  };
}

/** `sgl_shm_mm_4711_ab12` -> `sgl_shm_mm_*`: how people know a family of files. */
const familyOf = (path: string): string =>
  escapeText(
    path
      .replace(/^\/dev\/shm\//, '')
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d{2,}|(?<=[_-])[A-Za-z0-9]{6,}$/gi, '*')
      .replace(/(\*[_.-]?)+/g, '*'),
    60,
  );

export function shmFindings(world: World, shared: SharedMemory, telling: Telling): Told[] {
  const now = telling.takenAtMs / 1000;
  const holders = holdersByPath(world);
  const listed = shared.files.filter((file) => file.kiB > 0);
  const canJudge = telling.sighted && world.privileged && world.table.listings.holdersKnown && Number.isFinite(now);
  const stale: ShmFile[] = [];
  const used: [ShmFile, string][] = [];
  for (const file of listed) {
    const age = now - file.mtime;
    const why = !canJudge
      ? 'open files of other people could not be seen'
      : age < world.options.minAgeSeconds.shm || age < 0
        ? `written ${ageWords(Math.max(0, age))} ago, too young to judge`
        : fileInUse(world, file, holders, now);
    if (why === null && file.path.startsWith('/dev/shm/')) stale.push(file);
    else used.push([file, why ?? 'not in /dev/shm']);
  }
  return [
    ...byOwner(stale, (file) => file.uid).map((files) => staleFiles(world, files, telling)),
    ...byOwner(used, ([file]) => file.uid).flatMap((files) => usedFiles(world, files)),
    ...sysvFindings(world, shared.segments, { now, canJudge }),
    ...otherMounts(
      world,
      shared,
      sum(listed, (file) => file.kiB),
    ),
  ];
}

function staleFiles(world: World, files: readonly ShmFile[], telling: Telling): Told {
  const sorted = [...files].sort((a, b) => b.kiB - a.kiB || (a.path < b.path ? -1 : 1));
  const kiB = sum(sorted, (file) => file.kiB);
  const range = removalRange(world, kiB);
  const families = new Map<string, number>();
  for (const file of sorted) families.set(familyOf(file.path), (families.get(familyOf(file.path)) ?? 0) + 1);
  const names = [...families].map(([name, n]) => (n === 1 ? name : `${n} x ${name}`));
  const youngest = telling.takenAtMs / 1000 - Math.max(...sorted.map((file) => file.mtime));
  const evidence = [
    `${count(sorted.length, 'file')} in /dev/shm that nothing uses, ${sizeText(kiB)}, ${ownerOf(world, sorted[0]?.uid ?? 0)}`,
    `named ${shortList(names, 3).join(', ')}`,
    `no process${kiB < worthAStepKiB ? ' that was looked into' : ''} has ${sorted.length === 1 ? 'it' : 'any of them'} open or mapped; last written ${ageWords(Math.max(0, youngest))} ago or longer`,
    ...(world.swapUsedKiB > 0 ? ['what of it was swapped out comes back as swap, not as RAM'] : []),
    'they are in `shared` and `buff/cache`; dropping caches does not touch them',
    'a process that opens one before the removal would change this: it is checked again then',
  ];
  const finding: Finding = {
    class: 'stale_shm',
    kiB,
    reclaimableKiB: range,
    action: kiB < worthAStepKiB ? 'none' : 'remove_files',
    evidence,
    paths: sorted.slice(0, 200).map((file) => escapeText(file.path, 200)),
  };
  const step: DraftStep = {
    action: 'remove_files',
    targets: sorted.map(({ path, dev, ino, kiB: size }) => ({ path, dev, ino, kiB: size })),
    expectedFreeKiB: range,
    expectedAvailableKiB: range,
  };
  return { finding, step: kiB < worthAStepKiB ? null : step, procs: [] };
}

function usedFiles(world: World, files: readonly (readonly [ShmFile, string])[]): Told[] {
  const kiB = sum(files, ([file]) => file.kiB);
  if (kiB < worthALineKiB) return [];
  const sorted = [...files].sort(([a], [b]) => b.kiB - a.kiB);
  const evidence = [
    `${count(files.length, 'file')} in /dev/shm, ${sizeText(kiB)}, ${ownerOf(world, sorted[0]?.[0].uid ?? 0)}`,
    ...shortList(sorted.map(([file, why]) => `${familyOf(file.path)} (${sizeText(file.kiB)}): ${why}`)),
  ];
  const paths = sorted.slice(0, 200).map(([file]) => escapeText(file.path, 200));
  return [tmpfs(kiB, evidence, paths)];
}

const tmpfs = (kiB: number, evidence: string[], paths: string[]): Told => ({
  finding: { class: 'tmpfs_files', kiB, reclaimableKiB: { low: 0, high: 0 }, action: 'ask_owner', evidence, paths },
  step: null,
  procs: [],
});

/** tmpfs elsewhere, and what /dev/shm holds beyond its listed files: unlinked, but still open somewhere. */
function otherMounts(world: World, shared: SharedMemory, listedKiB: number): Told[] {
  const told: Told[] = [];
  for (const { mount, usedKiB } of shared.mounts) {
    const kiB = mount === '/dev/shm' ? usedKiB - listedKiB : usedKiB;
    if (kiB < worthALineKiB) continue;
    const unlinked = world.table.all.filter((proc) =>
      proc.held.some((target) => /^\/dev\/shm\/.* \(deleted\)$/s.test(target)),
    );
    const holders = shortList(
      unlinked.map((proc) => `pid ${proc.pid} (${world.shown(proc.comm)})`),
      3,
    ).join(', ');
    told.push(
      mount === '/dev/shm'
        ? tmpfs(
            kiB,
            [
              `${sizeText(kiB)} of /dev/shm is in no listed file: deleted, but still open or mapped`,
              holders === '' ? 'who holds it could not be seen' : `held by ${holders}; only their end frees it`,
            ],
            [],
          )
        : tmpfs(
            kiB,
            [
              `${sizeText(kiB)} in files of the RAM disk at ${escapeText(mount, 100)}`,
              'files in a tmpfs stay in memory until they are deleted; dropping caches does not touch them',
            ],
            [escapeText(mount, 200)],
          ),
    );
  }
  return told;
}
