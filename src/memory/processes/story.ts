/** What the processes of a box say about its memory: the entry to the process side of the engine. */
import type { Capture, Finding } from '../contract.ts';
import type { DraftStep, Identity, ProcessStory, ThinkOptions } from '../story.ts';
import { targetKey } from '../story.ts';
import { buildFindings } from './build-findings.ts';
import { look } from './sight.ts';
import type { Proc } from './table.ts';

/** A group of processes that can be given back: what people read and the step that does it. */
export interface Told {
  readonly finding: Finding;
  readonly step: DraftStep | null;
  readonly procs: readonly Proc[];
}

export function tellProcessStory(capture: Capture, options: ThinkOptions): ProcessStory {
  const { world, partial, sighted } = look(capture, options);
  const takenAtMs = Date.parse(capture.takenAt);
  const told = buildFindings(world, { takenAtMs, sighted });
  const identities: Record<string, Identity> = {};
  for (const proc of told.flatMap((t) => (t.step?.action === 'kill' ? t.procs : []))) {
    identities[targetKey(proc)] = { uid: proc.uid, exe: proc.exe?.path ?? null };
  }
  const live = told.filter((t) => t.finding.class === 'live_job').flatMap((t) => t.procs);
  return {
    findings: told.map((t) => t.finding).sort((a, b) => b.kiB - a.kiB),
    steps: told.flatMap((t) => (t.step === null ? [] : [t.step])),
    identities,
    partial,
    liveKiB: live.reduce((total, proc) => total + proc.privateKiB, 0),
    sighted,
  };
}
