/** How to keep it from happening again: the largest MAX_JOBS that fits, with the arithmetic, and who really caused an OOM kill. */
import { commandText } from './blob.ts';
import type { Capture, Diagnosis } from './contract.ts';
import { readFacts } from './facts.ts';
import { parseOomKills, type OomKill, type OomProcess } from './oom.ts';
import { compilers } from './processes/names.ts';
import { sizeText } from './sizes.ts';

/** Kept spare, so that the kernel and everybody else can breathe. */
const spareShare = 0.1;
/** flash-attention's setup.py runs this many compilers per job unless NVCC_THREADS says otherwise. */
const flashThreads = 4;
/** Measured in public: 81 GB for 16 threads, 616 GB for 192. The dearer one is planned with. */
const flashThreadKiB = Math.round(5e9 / 1024);

/** Sentences for the end of a report; empty when nothing was built and nobody was killed. */
export function adviceFor(capture: Capture, diagnosis: Diagnosis): string[] {
  const { pageKiB, zoneinfo } = readFacts(capture);
  const kills = parseOomKills(commandText(capture, 'dmesg oom') ?? '', pageKiB);
  const builds = diagnosis.findings.filter((f) => f.class === 'leftover_build' || f.class === 'live_job');
  const alive = builds.flatMap((f) => f.processes ?? []).map((p) => ({ pid: p.pid, comm: p.comm, rssKiB: p.kiB }));
  const killedOnes = kills.flatMap((kill) => [kill.victim, ...kill.tasks]);
  const peaks = peakByCompiler([...alive, ...killedOnes]);
  const words = builds.flatMap((f) => [...f.evidence, ...(f.processes ?? []).map((p) => p.command)]).join('\n');
  const flash = /flash[-_]?att(n|ention)|flash_(fwd|bwd)/i.test(words);
  const heldKiB = builds
    .flatMap((f) => f.processes ?? [])
    .filter((p) => compilers.has(p.comm))
    .reduce((sum, p) => sum + p.kiB, 0);
  const jobs = jobsAdvice({ diagnosis, peaks, flash, heldKiB, cpus: zoneinfo.cpus });
  return [...killAdvice(kills), ...jobs];
}

/** Largest first. */
function peakByCompiler(processes: readonly OomProcess[]): { comm: string; kiB: number }[] {
  const peaks = new Map<string, number>();
  for (const { comm, rssKiB } of processes) {
    if (compilers.has(comm)) peaks.set(comm, Math.max(peaks.get(comm) ?? 0, rssKiB));
  }
  return [...peaks].map(([comm, kiB]) => ({ comm, kiB })).sort((a, b) => b.kiB - a.kiB);
}

interface JobsInput {
  readonly diagnosis: Diagnosis;
  readonly peaks: readonly { comm: string; kiB: number }[];
  readonly flash: boolean;
  /** Held by compilers right now: gone once the build is. */
  readonly heldKiB: number;
  /** 0 when not known. */
  readonly cpus: number;
}

/** Smaller compilers never fill a box. */
const worthPlanningKiB = 256 * 1024;

function jobsAdvice({ diagnosis, peaks, flash, heldKiB, cpus }: JobsInput): string[] {
  const { totalKiB, availableKiB } = diagnosis.memory;
  const [top] = peaks;
  if (totalKiB === 0 || (top === undefined && !flash)) return [];
  const measured = top !== undefined && top.kiB >= worthPlanningKiB ? top : null;
  if (measured === null && !flash) return [];
  const peakKiB = measured?.kiB ?? flashThreadKiB;
  const other = Math.max(0, totalKiB - availableKiB - heldKiB);
  const spare = Math.round(totalKiB * spareShare);
  const budget = Math.max(0, totalKiB - other - spare);
  const fits = Math.floor(budget / peakKiB);
  const atOnce = cpus > 0 ? Math.min(fits, cpus) : fits;
  const source =
    measured === null
      ? `Builds of flash-attention were measured at up to ${sizeText(peakKiB)} per compiler`
      : `The largest compiler seen on this box was ${measured.comm} with ${sizeText(peakKiB)}`;
  const sum =
    `${source}. ${sizeText(totalKiB)} in all, less ${sizeText(other)} in other use and ${sizeText(spare)} kept spare, ` +
    `leaves ${sizeText(budget)}: ${sizeText(budget)} / ${sizeText(peakKiB)} = ${fits} compilers at once`;
  const capped = atOnce < fits ? `, and the box has ${cpus} CPUs` : '';
  if (atOnce < 1) return [`${sum}. Not even one fits now: build on another box, or when this one is emptier.`];
  if (!flash) return [`${sum}${capped}. Build with MAX_JOBS=${atOnce}.`];
  const jobs = Math.floor(atOnce / flashThreads);
  const withThreads =
    jobs >= 1
      ? `MAX_JOBS=${jobs} with the usual NVCC_THREADS=${flashThreads}, or MAX_JOBS=${atOnce} with NVCC_THREADS=1`
      : `MAX_JOBS=${atOnce} with NVCC_THREADS=1 (the usual ${flashThreads} threads per job do not fit even once)`;
  return [`${sum}${capped}. Each flash-attention job runs NVCC_THREADS of them: build with ${withThreads}.`];
}

/** The kills grouped by what died, and the ones where something else had the memory. */
function killAdvice(kills: readonly OomKill[]): string[] {
  if (kills.length === 0) return [];
  const victims = new Map<string, { count: number; kiB: number; limited: number }>();
  for (const { victim, limited } of kills) {
    const entry = victims.get(victim.comm) ?? { count: 0, kiB: 0, limited: 0 };
    victims.set(victim.comm, {
      count: entry.count + 1,
      kiB: Math.max(entry.kiB, victim.rssKiB),
      limited: entry.limited + (limited ? 1 : 0),
    });
  }
  const named = [...victims]
    .sort((a, b) => b[1].count - a[1].count)
    .slice(0, 4)
    .map(([comm, { count, kiB, limited }]) => {
      const size = kiB > 0 ? ` (up to ${sizeText(kiB)})` : '';
      return `${comm} ${count}×${size}${limited > 0 ? ', for the limit of its container or job' : ''}`;
    });
  const summary = `The kernel killed ${kills.length === 1 ? 'a process' : `${kills.length} processes`} for want of memory: ${named.join('; ')}.`;
  const blamed = [...new Set(kills.flatMap((kill) => culpritOf(kill) ?? []))];
  return [summary, ...blamed.slice(0, 2)];
}

/** A victim with less than a tenth of what the largest group held only had the wrong score. */
function culpritOf({ victim, tasks }: OomKill): string | null {
  const groups = new Map<string, { count: number; kiB: number }>();
  for (const task of tasks) {
    const group = groups.get(task.comm) ?? { count: 0, kiB: 0 };
    groups.set(task.comm, { count: group.count + 1, kiB: group.kiB + task.rssKiB });
  }
  const [largest] = [...groups].sort((a, b) => b[1].kiB - a[1].kiB);
  if (largest === undefined) return null;
  const [comm, { count, kiB }] = largest;
  const victimKiB = Math.max(victim.rssKiB, groups.get(victim.comm)?.kiB ?? 0);
  if (comm === victim.comm || victimKiB * 10 > kiB) return null;
  return `The victim was not the culprit: ${victim.comm} held ${sizeText(victimKiB)}, while ${count} × ${comm} held ${sizeText(kiB)}.`;
}
