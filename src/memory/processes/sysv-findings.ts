/** System V segments: the stale ones with the step that removes them, and those in use or too young, with the reason. */
import { sizeText } from '../sizes.ts';
import type { Finding } from '../contract.ts';
import type { DraftStep } from '../story.ts';
import { sum } from './predict.ts';
import type { SysvSegment } from './shared.ts';
import { segmentUse } from './shm-holders.ts';
import { byOwner, ownerOf, removalRange } from './shm-owners.ts';
import type { World } from './signs.ts';
import { shortList, worthALineKiB, worthAStepKiB } from './steps.ts';
import type { Told } from './told.ts';
import { ageWords, count } from './words.ts';

interface When {
  /** Unix seconds of the look. */
  readonly now: number;
  /** False when what is not seen may be in use. */
  readonly canJudge: boolean;
}

type Reasoned = readonly [SysvSegment, string];

const heldKiB = (segment: SysvSegment): number => segment.rssKiB ?? Math.round(segment.bytes / 1024);

export function sysvFindings(world: World, segments: readonly SysvSegment[], when: When): Told[] {
  const stale: SysvSegment[] = [];
  const used: Reasoned[] = [];
  const idle: Reasoned[] = [];
  for (const segment of segments) {
    if (heldKiB(segment) === 0) continue;
    const use = segmentUse(world, segment, when.now);
    const doubt = doubtAbout(world, segment, when);
    if (use !== null) used.push([segment, use]);
    else if (doubt !== null) idle.push([segment, doubt]);
    else stale.push(segment);
  }
  const uidOf = ([segment]: Reasoned): number => segment.uid;
  return [
    ...byOwner(stale, (segment) => segment.uid).map((group) => staleFinding(world, group, when.now)),
    ...byOwner(used, uidOf).flatMap((group) => keptFinding(world, group, 'pinned_shm', 'ask_owner')),
    ...byOwner(idle, uidOf).flatMap((group) => keptFinding(world, group, 'stale_sysv_shm', 'none')),
  ];
}

/** Why a segment that nobody is seen to use is not offered all the same. */
function doubtAbout(world: World, segment: SysvSegment, { now, canJudge }: When): string | null {
  if (!canJudge) return 'nobody is attached, but too little of the box was seen to call it stale';
  const age = now - segment.touched;
  return age < Math.max(0, world.options.minAgeSeconds.sysv)
    ? `nobody is attached, but it was used ${ageWords(Math.max(0, age))} ago: too young to judge`
    : null;
}

function keptFinding(
  world: World,
  group: readonly Reasoned[],
  name: 'pinned_shm' | 'stale_sysv_shm',
  action: Finding['action'],
): Told[] {
  const sorted = [...group].sort(([a], [b]) => heldKiB(b) - heldKiB(a));
  const kiB = sum(sorted, ([segment]) => heldKiB(segment));
  if (kiB < worthALineKiB) return [];
  const reasons = sorted.map(([segment, why]) => `shmid ${segment.shmid} (${sizeText(heldKiB(segment))}): ${why}`);
  const finding: Finding = {
    class: name,
    kiB,
    reclaimableKiB: { low: 0, high: 0 },
    action,
    evidence: [
      `${count(sorted.length, 'System V shared memory segment')}, ${sizeText(kiB)}, ${ownerOf(world, sorted[0]?.[0].uid ?? 0)}`,
      ...shortList(reasons),
    ],
    paths: sorted.slice(0, 200).map(([segment]) => `shmid ${segment.shmid}`),
  };
  return [{ finding, step: null, procs: [] }];
}

function staleFinding(world: World, segments: readonly SysvSegment[], now: number): Told {
  const kiB = sum(segments, heldKiB);
  // Without an rss column only the size it was asked for is known, and it may never have been touched.
  const certain = sum(segments, (segment) => segment.rssKiB ?? 0);
  const range = { low: removalRange(world, certain).low, high: kiB };
  const youngest = now - Math.max(...segments.map((segment) => segment.touched));
  const evidence = [
    `${count(segments.length, 'System V shared memory segment')}, ${sizeText(kiB)}, ${ownerOf(world, segments[0]?.uid ?? 0)}`,
    `nobody is attached, creator and last user are dead, untouched for ${ageWords(Math.max(0, youngest))}`,
    'some programs keep data this way on purpose between runs (STAR keeps its genome): ask when in doubt',
    'a process that attaches before the removal would change this: it is checked again then',
  ];
  const finding: Finding = {
    class: 'stale_sysv_shm',
    kiB,
    reclaimableKiB: range,
    action: kiB < worthAStepKiB ? 'none' : 'ipcrm',
    evidence,
    paths: segments.map((segment) => `shmid ${segment.shmid}`),
  };
  const step: DraftStep = {
    action: 'ipcrm',
    targets: segments.map((segment) => ({ shmid: segment.shmid, kiB: heldKiB(segment) })),
    expectedFreeKiB: range,
    expectedAvailableKiB: range,
  };
  return { finding, step: kiB < worthAStepKiB ? null : step, procs: [] };
}
