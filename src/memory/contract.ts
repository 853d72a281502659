/**
 * The shapes other people's scripts depend on (DESIGN 4.1 and 4.2): capture, diagnosis, plan, run report.
 * The schemas are the single source; the types are inferred. All sizes are integers in KiB.
 */
import { z } from 'zod';

const kiB = z.number().int();
const rangeSchema = z.object({ low: kiB, high: kiB }).refine((r) => r.low <= r.high, 'low must not exceed high');
export type RangeKiB = z.infer<typeof rangeSchema>;

// ---- capture -------------------------------------------------------------------------------------------------------

/** Text, or the raw bytes when they are not UTF-8. */
const blobSchema = z.union([z.string(), z.object({ base64: z.string() })]);
export type Blob = z.infer<typeof blobSchema>;

/**
 * Path -> blob. By hand, not z.record: a crowded box has tens of thousands of files, and the check would cost more than the
 * diagnosis. Names the first entries that are wrong.
 */
const filesSchema = z.custom<Record<string, Blob>>(isRecord, 'expected files by path').superRefine((files, context) => {
  for (const path in files) {
    if (typeof files[path] === 'string' || blobSchema.safeParse(files[path]).success) continue;
    context.addIssue({ code: 'custom', path: [path], message: 'expected text or {"base64"}' });
    if (context.issues.length >= 3) return;
  }
});

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const commandOutputSchema = z.looseObject({
  status: z.number().int().nullish(),
  stdout: blobSchema.default(''),
  timedOut: z.boolean().optional(),
});
export type CommandOutput = z.infer<typeof commandOutputSchema>;

export const captureSchema = z.looseObject({
  capture: z.literal(1),
  host: z.string(),
  takenAt: z.string(),
  privileged: z.boolean().default(false),
  windowSeconds: z.number().nonnegative().default(0),
  collectorPids: z.array(z.number().int()).default([]),
  files: filesSchema,
  later: filesSchema.default({}),
  commands: z.record(z.string(), commandOutputSchema).default({}),
});
export type Capture = z.infer<typeof captureSchema>;

// ---- diagnosis -----------------------------------------------------------------------------------------------------

export const verdicts = ['lingering', 'real_usage', 'mixed', 'not_a_process', 'nothing_to_reclaim', 'unknown'] as const;
export type Verdict = (typeof verdicts)[number];

export const findingClasses = [
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
  'page_cache',
  'reclaimable_slab',
  'unreclaimable_slab',
  'percpu',
  'page_tables',
  'hugepages',
  'zfs_arc',
  'balloon',
  'gpu_driver',
  'mlocked',
  'swap',
  'unaccounted',
] as const;
export type FindingClass = (typeof findingClasses)[number];

export const findingActions = [
  'kill',
  'remove_files',
  'ipcrm',
  'drop_caches',
  'ask_owner',
  'tell_admin',
  'none',
] as const;

export const processRefSchema = z.object({
  pid: z.number().int().positive(),
  /** Field 22 of /proc/PID/stat, in clock ticks since boot. */
  startTime: z.number().int().nonnegative(),
  uid: z.number().int().nullable(),
  user: z.string().nullable(),
  comm: z.string(),
  /** Command line, secrets removed, control characters escaped, cut to a readable length. */
  command: z.string(),
  kiB,
});
export type ProcessRef = z.infer<typeof processRefSchema>;

export const findingSchema = z.object({
  class: z.enum(findingClasses),
  kiB,
  reclaimableKiB: rangeSchema,
  action: z.enum(findingActions),
  evidence: z.array(z.string()),
  processes: z.array(processRefSchema).optional(),
  paths: z.array(z.string()).optional(),
});
export type Finding = z.infer<typeof findingSchema>;

export const memorySchema = z.object({
  totalKiB: kiB,
  usedKiB: kiB,
  freeKiB: kiB,
  availableKiB: kiB,
  sharedKiB: kiB,
  buffCacheKiB: kiB,
  swapTotalKiB: kiB,
  swapUsedKiB: kiB,
});
/** The figures of `free`, as the box's own `free` would print them. */
export type Memory = z.infer<typeof memorySchema>;

// ---- plan ----------------------------------------------------------------------------------------------------------

export const killTargetSchema = z.object({ pid: z.number().int().min(2), startTime: z.number().int().nonnegative() });
export const fileTargetSchema = z.object({
  path: z.string(),
  dev: z.number().int().nonnegative(),
  ino: z.number().int().nonnegative(),
  kiB,
});
export const shmTargetSchema = z.object({ shmid: z.number().int().nonnegative(), kiB });
export const dropTargetSchema = z.object({ level: z.union([z.literal(1), z.literal(2), z.literal(3)]) });
export type KillTarget = z.infer<typeof killTargetSchema>;
export type FileTarget = z.infer<typeof fileTargetSchema>;
export type ShmTarget = z.infer<typeof shmTargetSchema>;
export type DropTarget = z.infer<typeof dropTargetSchema>;

const stepBase = { id: z.string(), expectedFreeKiB: rangeSchema, expectedAvailableKiB: rangeSchema };
export const stepSchema = z.discriminatedUnion('action', [
  z.object({ ...stepBase, action: z.literal('kill'), targets: z.array(killTargetSchema) }),
  z.object({ ...stepBase, action: z.literal('remove_files'), targets: z.array(fileTargetSchema) }),
  z.object({ ...stepBase, action: z.literal('ipcrm'), targets: z.array(shmTargetSchema) }),
  z.object({ ...stepBase, action: z.literal('drop_caches'), targets: z.array(dropTargetSchema) }),
]);
export type Step = z.infer<typeof stepSchema>;
export type StepAction = Step['action'];

/** `digest` binds an approval to the effects: boot id and every exact target. It says nothing about wording. */
export const planSchema = z.object({ digest: z.string(), steps: z.array(stepSchema).min(1) });
export type Plan = z.infer<typeof planSchema>;

export const diagnosisSchema = z.object({
  host: z.string(),
  takenAt: z.string(),
  verdict: z.enum(verdicts),
  headline: z.string(),
  confidence: z.enum(['high', 'medium', 'low']),
  partial: z.array(z.string()),
  memory: memorySchema,
  accounting: z.array(z.object({ class: z.string(), kiB })),
  findings: z.array(findingSchema),
  plan: planSchema.nullable(),
});
export type Diagnosis = z.infer<typeof diagnosisSchema>;

// ---- run report ----------------------------------------------------------------------------------------------------

export const targetResults = [
  'exited',
  'killed',
  'already_gone',
  'not_same_process',
  'refused',
  'still_there',
  'respawned',
  'removed',
  'in_use',
  'dropped',
] as const;
export type TargetResult = (typeof targetResults)[number];

const result = { result: z.enum(targetResults).optional() };
/** What a step gave back, positive = given back: `free` and `available` as measured, and by class of memory. */
export const measuredSchema = z.object({ freeKiB: kiB, availableKiB: kiB, byClass: z.record(z.string(), kiB) });
export type Measured = z.infer<typeof measuredSchema>;

const reportBase = {
  ...stepBase,
  state: z.enum(['done', 'skipped', 'failed', 'unknown', 'not_run']),
  reason: z.string().optional(),
  measured: measuredSchema.optional(),
  tookMs: z.number().int().nonnegative(),
};
export const stepReportSchema = z.discriminatedUnion('action', [
  z.object({ ...reportBase, action: z.literal('kill'), targets: z.array(killTargetSchema.extend(result)) }),
  z.object({ ...reportBase, action: z.literal('remove_files'), targets: z.array(fileTargetSchema.extend(result)) }),
  z.object({ ...reportBase, action: z.literal('ipcrm'), targets: z.array(shmTargetSchema.extend(result)) }),
  z.object({ ...reportBase, action: z.literal('drop_caches'), targets: z.array(dropTargetSchema.extend(result)) }),
]);
export type StepReport = z.infer<typeof stepReportSchema>;

export const outcomes = ['succeeded', 'partial', 'failed', 'unknown', 'nothing_to_do', 'dry_run', 'refused'] as const;
export type Outcome = (typeof outcomes)[number];

export const runReportSchema = z.object({
  run: z.string(),
  request: z.string(),
  host: z.string(),
  outcome: z.enum(outcomes),
  reason: z.string().optional(),
  diagnosis: diagnosisSchema,
  before: memorySchema,
  after: memorySchema,
  steps: z.array(stepReportSchema),
  /** Change between before and after that no step of ours caused (positive = more free). */
  other: z.object({ freeKiB: kiB, availableKiB: kiB }),
  advice: z.array(z.string()),
});
export type RunReport = z.infer<typeof runReportSchema>;
