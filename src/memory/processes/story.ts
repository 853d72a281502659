/** What the processes of a box say about its memory: the entry to the process side of the engine. */
import type { Capture } from '../contract.ts';
import { targetKey, type Identity, type ProcessStory, type ThinkOptions } from '../story.ts';
import { buildFindings } from './build-findings.ts';
import { driverFindings } from './driver-findings.ts';
import { lastShmOf } from './last-shm.ts';
import { sum } from './predict.ts';
import { restFindings } from './rest.ts';
import { readShared, shmFindings } from './shm-findings.ts';
import { look } from './sight.ts';
import { stuckFindings } from './stuck.ts';
import type { Proc } from './table.ts';
import type { Told } from './told.ts';
import { workerFindings } from './workers.ts';
import { privateSum } from './words.ts';

/**
 * Every process is spoken for by one finding at most: stuck ones first, then orphaned workers with all that hangs below
 * them, then builds, then the rest. Kill steps come first, then remove_files, then ipcrm.
 */
export function tellProcessStory(capture: Capture, options: ThinkOptions): ProcessStory {
  const { world, partial, sighted } = look(capture, options);
  const shared = readShared(capture);
  const telling = { takenAtMs: Date.parse(capture.takenAt), sighted, lastShm: lastShmOf(world, shared, capture) };
  const claimed = new Set<Proc>();
  const claim = (told: Told[]): Told[] => {
    for (const { procs } of told) for (const proc of procs) claimed.add(proc);
    return told;
  };
  const stuck = claim(stuckFindings(world));
  const workers = claim(workerFindings(world, claimed, telling));
  const builds = claim(buildFindings(world, claimed, telling));
  const rest = restFindings(world, claimed, telling);
  const memory = [...shmFindings(world, shared, telling), ...driverFindings(world, shared, capture, telling)];

  const all = [...stuck, ...workers, ...builds, ...rest, ...memory];
  // Whatever is neither left over nor stuck is somebody's work.
  const spoken = new Set(
    [...stuck, ...workers, ...builds.filter((t) => t.finding.class === 'leftover_build')].flatMap((t) => t.procs),
  );
  const identities: Record<string, Identity> = {};
  for (const { procs, step } of all) {
    if (step?.action !== 'kill') continue;
    for (const proc of procs) identities[targetKey(proc)] = identityOf(proc);
  }
  return {
    findings: all.map((told) => told.finding).sort((a, b) => b.kiB - a.kiB),
    steps: all.flatMap(({ step }) => (step === null ? [] : [step])),
    identities,
    partial,
    liveKiB: privateSum(world.table.all.filter((proc) => !proc.own && !spoken.has(proc))),
    hugetlbKiB: sum(world.table.all, (proc) => proc.status?.hugetlbKiB ?? 0),
    sighted,
  };
}

/** `exe` as the link reads, so that the actor can compare it as it stands. */
const identityOf = ({ uid, exe }: Proc): Identity => ({
  uid,
  exe: exe === null ? null : exe.deleted ? `${exe.path} (deleted)` : exe.path,
});
