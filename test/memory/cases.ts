/** The public boxes of test/fixtures/cases/memory.jsonl, and captures made from their figures. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseCapture } from '../../src/memory/parse-capture.ts';
import type { Capture } from '../../src/memory/contract.ts';

const fixtures = join(import.meta.dirname, '../fixtures/cases');

const caseSchema = z.looseObject({
  id: z.string(),
  category: z.string(),
  true_cause: z.string(),
  meminfo: z.record(z.string(), z.number()),
  free: z.looseObject({ unit: z.string().optional(), style: z.string().optional() }),
  evidence: z.record(z.string(), z.unknown()),
  derived_kB: z.record(z.string(), z.number().nullable()).optional(),
});
export type Case = z.infer<typeof caseSchema>;

export const cases: readonly Case[] = readFileSync(join(fixtures, 'memory.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => caseSchema.parse(JSON.parse(line)));

export const caseOf = (id: string): Case => cases.find((c) => c.id === id)!;

export const withMeminfo = cases.filter((c) => Object.keys(c.meminfo).length > 8);

export const sample = (name: string): Capture =>
  parseCapture(readFileSync(join(fixtures, 'samples', `${name}.capture.json`), 'utf8'));

export const samples = ['healthy', 'page-cache-only', 'nvidia-garbage'];

export function meminfoText(fields: Readonly<Record<string, number>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}${name.startsWith('HugePages_') ? '' : ' kB'}\n`)
    .join('');
}

export const bootId = '741839f3-46d6-4812-aae3-8ee76a96fd12';

/** A capture with these figures and files, of a box whose processes nobody looked at. */
export function captureOf(
  meminfo: Readonly<Record<string, number>>,
  files: Readonly<Record<string, string>> = {},
  commands: Readonly<Record<string, string>> = {},
): Capture {
  return parseCapture({
    capture: 1,
    host: 'gpu-box-3',
    takenAt: '2026-11-30T20:54:00Z',
    privileged: true,
    files: { '/proc/meminfo': meminfoText(meminfo), '/proc/sys/kernel/random/boot_id': `${bootId}\n`, ...files },
    commands: Object.fromEntries(Object.entries(commands).map(([name, stdout]) => [name, { status: 0, stdout }])),
  });
}

const gib = 1024 * 1024;
/** A plain box of 64 GiB: 10 free, 20 anonymous, 30 file cache, the rest kernel. */
export const plainBox = {
  MemTotal: 64 * gib,
  MemFree: 10 * gib,
  MemAvailable: 39 * gib,
  Buffers: 0,
  Cached: 31 * gib,
  SwapCached: 0,
  'Active(anon)': 20 * gib,
  'Inactive(anon)': 1 * gib,
  'Active(file)': 15 * gib,
  'Inactive(file)': 15 * gib,
  Unevictable: 0,
  Mlocked: 0,
  SwapTotal: 0,
  SwapFree: 0,
  Dirty: 0,
  Writeback: 0,
  AnonPages: 20 * gib,
  Mapped: 1 * gib,
  Shmem: 1 * gib,
  KReclaimable: gib / 2,
  Slab: 1 * gib,
  SReclaimable: gib / 2,
  SUnreclaim: gib / 2,
  KernelStack: 0,
  PageTables: 0,
  Percpu: 0,
  VmallocUsed: 0,
  Hugetlb: 0,
} as const;
