/** Facts to plan: the one entry of the memory engine. Pure, and never throws: every capture that passes its schema gets an answer. */
import { account } from './accounting.ts';
import { commandText, fileText } from './blob.ts';
import type { Capture, Finding, Memory, Verdict } from './contract.ts';
import { readFacts, type MemoryFacts } from './facts.ts';
import { formulaWords, inferFormula, memoryBy, parseFreeOutput } from './free.ts';
import { kernelFindings } from './kernel-findings.ts';
import { classKiB, type KernelView } from './kernel-view.ts';
import { makePlan } from './plan.ts';
import { lowestLevel, predictDrop, type DropLevel, type DropOutlook } from './predict.ts';
import { tellProcessStory } from './processes/story.ts';
import { escapeText } from './redact.ts';
import type { DraftStep, ProcessStory, ThinkOptions, Thought } from './story.ts';
import { isStrangeSlab, judgeEvidence, type Evidence } from './verdict.ts';

export const defaultThinkOptions: ThinkOptions = {
  protect: [],
  minAgeSeconds: { process: 0, shm: 300, sysv: 300 },
  kept: [],
};

export function think(capture: Capture, options: ThinkOptions = defaultThinkOptions): Thought {
  return judge(capture, tellProcessStory(capture, options));
}

/** Joins the memory side of a capture with what its processes say. */
export function judge(capture: Capture, told: ProcessStory): Thought {
  const bootId = readBootId(capture);
  const story = bootId === '' ? withoutSteps(told) : told;
  const facts = readFacts(capture);
  const printed = parseFreeOutput(commandText(capture, 'free -k') ?? '');
  const { formula, known } = inferFormula(printed, facts.meminfo, facts.lowWatermarkKiB);
  const memory = memoryBy(formula, facts.meminfo, facts.lowWatermarkKiB);
  const accounting = account(facts);
  const outlook = predictDrop(facts);
  const partial = [...story.partial, ...memoryPartial(capture, facts)];

  const freeWords = `${formulaWords[formula]}${known ? '' : '; assumed, as its own output was not read'}`;
  const mappedHugeKiB = story.sighted ? (story.hugetlbKiB ?? null) : null;
  const look = { facts, memory, accounting, outlook, freeWords, mappedHugeKiB, ...surroundings(capture, facts) };
  const findingsWith = (dropLevel: DropLevel | null): Finding[] =>
    [...story.findings, ...kernelFindings({ ...look, dropLevel })].sort((a, b) => b.kiB - a.kiB);
  const evidence: Evidence = {
    memory,
    findings: findingsWith(null),
    liveKiB: story.liveKiB,
    processKiB: classKiB(accounting, 'anonymous') + classKiB(accounting, 'shared'),
    sighted: story.sighted,
    partial,
    formulaKnown: known,
    uptimeSeconds: uptimeOf(capture),
  };
  const judgement = judgeEvidence(evidence);
  const drop = dropStep(outlook, memory, story.steps.length > 0, occasionOf(judgement.verdict, evidence));
  const steps = drop === null ? story.steps : [...story.steps, drop];
  return {
    diagnosis: {
      host: capture.host,
      takenAt: capture.takenAt,
      ...judgement,
      partial,
      memory,
      accounting: [...accounting.classes],
      findings: findingsWith(drop?.targets[0]?.level ?? null),
      plan: makePlan(steps, story.identities, bootId),
    },
    identities: story.identities,
    bootId,
    freeWords,
  };
}

/** Empty when the box did not tell, or told something that is no boot id. */
function readBootId(capture: Capture): string {
  const text = (fileText(capture, '/proc/sys/kernel/random/boot_id') ?? '').trim();
  return /^[0-9a-f-]{36}$/i.test(text) ? text.toLowerCase() : '';
}

/** Without the boot id no process or file can be told from one of another boot, so nothing may be acted on. */
function withoutSteps(story: ProcessStory): ProcessStory {
  return {
    ...story,
    findings: story.findings.map((f) =>
      f.action === 'kill' || f.action === 'remove_files' || f.action === 'ipcrm'
        ? { ...f, action: 'none', reclaimableKiB: { low: 0, high: 0 } }
        : f,
    ),
    steps: [],
    partial: [...story.partial, 'The box did not tell its boot id, so nothing on it can be named for certain later.'],
  };
}

function memoryPartial(capture: Capture, { meminfo }: MemoryFacts): string[] {
  const total = meminfo.get('MemTotal');
  const mounts = fileText(capture, '/proc/mounts') ?? '';
  const borrowed =
    /^\S+ \/proc\/meminfo fuse\.lxcfs /m.test(mounts) || (meminfo.get('Shmem') ?? 0) > (total ?? Infinity);
  return [...missingFigures({ meminfo }), ...(borrowed ? [borrowedFigures] : [])];
}

const borrowedFigures =
  'These are the figures of a container, mixed with those of its host (lxcfs): only total, free and used are its own.';

function missingFigures({ meminfo }: Pick<MemoryFacts, 'meminfo'>): string[] {
  if (!meminfo.has('MemTotal')) return ['The memory figures (/proc/meminfo) could not be read.'];
  if (!meminfo.has('MemFree')) return ['The memory figures (/proc/meminfo) are cut short.'];
  return meminfo.has('MemAvailable')
    ? []
    : ['This kernel does not print MemAvailable; the figure is estimated from free memory and cache.'];
}

/** In a plan with other steps a drop is offered when it surely moves this much… */
const worthOfferingKiB = 64 * 1024;
/** …and alone only when it likely moves this much, and changes what people see of the box. */
const worthAskingKiB = (totalKiB: number): number => Math.max(1024 * 1024, totalKiB * 0.05);

/** What a drop would be for. Beside memory that no drop gives back, an offer to drop something else only misleads. */
function occasionOf(verdict: Verdict, { findings, memory }: Evidence): 'cache' | 'slab' | null {
  if (verdict === 'nothing_to_reclaim') return 'cache';
  return verdict === 'not_a_process' && findings.some((f) => isStrangeSlab(f, memory)) ? 'slab' : null;
}

function dropStep(
  outlook: DropOutlook,
  { totalKiB }: Memory,
  beside: boolean,
  occasion: 'cache' | 'slab' | null,
): Extract<DraftStep, { action: 'drop_caches' }> | null {
  const level = occasion === 'slab' ? 2 : lowestLevel(outlook);
  if (level === null) return null;
  const { free, available } = outlook.gain(level);
  const worthIt = beside
    ? free.low >= worthOfferingKiB
    : occasion !== null && (free.low + free.high) / 2 >= worthAskingKiB(totalKiB);
  if (!worthIt) return null;
  return { action: 'drop_caches', targets: [{ level }], expectedFreeKiB: free, expectedAvailableKiB: available };
}

function uptimeOf(capture: Capture): number | null {
  const seconds = /^(\d{1,12}(?:\.\d+)?) /.exec(fileText(capture, '/proc/uptime') ?? '')?.[1];
  return seconds === undefined ? null : Number(seconds);
}

type Surroundings = Pick<KernelView, 'kernelRelease' | 'gpu' | 'zfs' | 'lustre'>;

function surroundings(capture: Capture, facts: MemoryFacts): Surroundings {
  const release = fileText(capture, '/proc/sys/kernel/osrelease')?.trim();
  const mounts = fileText(capture, '/proc/mounts') ?? '';
  const zfsSlab = facts.slabs.some((cache) => /^(zio_buf|zio_data_buf|arc_buf|zfs_znode)/.test(cache.name));
  return {
    kernelRelease: release === undefined || release === '' ? null : escapeText(release, 60),
    gpu: gpuSign(capture),
    lustre: /^\S+ \S+ lustre /m.test(mounts),
    zfs: zfsSlab || facts.arc !== null || /^\S+ \S+ zfs /m.test(mounts) || hasArcstats(capture),
  };
}

const hasArcstats = (capture: Capture): boolean => Object.hasOwn(capture.files, '/proc/spl/kstat/zfs/arcstats');

function gpuSign(capture: Capture): string | null {
  const cards = (commandText(capture, 'nvidia-smi gpus') ?? '').split('\n').filter((line) => /^\d+,/.test(line)).length;
  if (cards > 0) return `the box has ${cards} NVIDIA GPU${cards === 1 ? '' : 's'}`;
  const holders = commandText(capture, 'fd holders') ?? '';
  if (holders.includes('/dev/nvidia')) return 'programs hold NVIDIA devices open';
  if (holders.includes('/dev/kfd')) return 'programs hold AMD GPU devices open';
  return holders.includes('/dev/dri/render') ? 'programs hold a GPU device open' : null;
}
