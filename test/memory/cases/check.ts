/** Holds a public case, made into a whole box, against what the engine must say of it. */
import { expect } from 'vitest';
import { adviceFor } from '../../../src/memory/advice.ts';
import { diagnosisSchema, type FindingClass, type Verdict } from '../../../src/memory/contract.ts';
import { renderReport } from '../../../src/memory/render.ts';
import { think } from '../../../src/memory/think.ts';
import { defaultOptions, makeBox, type BoxSpec, type ProcSpec } from '../box.ts';
import { meminfoText } from '../cases.ts';

export const MiB = 1024;
export const GiB = 1024 * 1024;
/** Gigabytes and megabytes, as people report them, in KiB. */
export const GB = 1e9 / 1024;
export const MB = 1e6 / 1024;

export interface CaseRow {
  readonly box: BoxSpec;
  readonly verdict: Verdict;
  /** KiB of all findings of a class together, held to 5 %; 0 = such a finding, whatever its size. */
  readonly has?: Partial<Record<FindingClass, number>>;
  readonly lacks?: readonly FindingClass[];
  /** What the plan does, in its order, with its targets. */
  readonly plan: readonly string[];
  /** Part of the report as a terminal prints it, or of the advice. */
  readonly says?: readonly (string | RegExp)[];
  readonly never?: readonly RegExp[];
  /** Classes of the accounting, held to 5 %. */
  readonly accounts?: Readonly<Record<string, number>>;
  /** Where we read the case otherwise than its note does, or had to add to it. */
  readonly because?: string;
}

const near = (measured: number, expected: number): void => {
  expect(measured).toBeGreaterThanOrEqual(Math.floor(expected * 0.95));
  expect(measured).toBeLessThanOrEqual(Math.ceil(expected * 1.05));
};

/** The report and the advice as one line of plain words. */
export function reportOf(box: BoxSpec): string {
  const capture = makeBox(box);
  const { diagnosis, freeWords } = think(capture, defaultOptions);
  const advice = adviceFor(capture, diagnosis);
  return renderReport(diagnosis, { width: 100, colour: false, freeWords, advice }).replace(/\s+/g, ' ');
}

export function checkCase(row: CaseRow): void {
  const { diagnosis } = think(makeBox(row.box), defaultOptions);
  expect(diagnosisSchema.parse(structuredClone(diagnosis))).toEqual(diagnosis);
  const { findings, memory, accounting, plan } = diagnosis;
  expect(accounting.reduce((sum, entry) => sum + entry.kiB, 0)).toBe(memory.totalKiB);
  const report = reportOf(row.box);
  expect({ verdict: diagnosis.verdict, headline: diagnosis.headline }).toMatchObject({ verdict: row.verdict });
  for (const [name, kiB] of Object.entries(row.has ?? {})) {
    const found = findings.filter((f) => f.class === name);
    expect(findings.map((f) => f.class)).toContain(name);
    if (kiB > 0)
      near(
        found.reduce((sum, f) => sum + f.kiB, 0),
        kiB,
      );
  }
  const classes = findings.map((f) => f.class);
  for (const name of row.lacks ?? []) expect(classes).not.toContain(name);
  for (const [name, kiB] of Object.entries(row.accounts ?? {})) {
    near(accounting.find((entry) => entry.class === name)?.kiB ?? 0, kiB);
  }
  const steps = (plan?.steps ?? []).map(({ action, targets }) => {
    const keys = targets.map((t) => ('pid' in t ? t.pid : 'level' in t ? t.level : 'shmid' in t ? t.shmid : t.path));
    return `${action} ${keys.length > 8 ? `${keys.length} targets` : [...keys].sort().join(' ')}`;
  });
  expect(steps).toEqual(row.plan);
  for (const text of row.says ?? []) {
    if (typeof text === 'string') expect(report).toContain(text);
    else expect(report).toMatch(text);
  }
  expect(report).not.toMatch(/NaN|undefined|Infinity/);
  for (const text of row.never ?? []) expect(report).not.toMatch(text);
}

export interface Figures {
  readonly total: number;
  /** Anonymous memory beyond that of the processes of the box, which is a part of it. */
  readonly anon?: number;
  readonly file?: number;
  readonly buffers?: number;
  readonly shmem?: number;
  readonly mapped?: number;
  readonly dirty?: number;
  readonly sreclaim?: number;
  readonly sunreclaim?: number;
  readonly hugetlb?: number;
  readonly percpu?: number;
  readonly mlocked?: number;
  /** In use, yet in no counter. */
  readonly missing?: number;
  readonly available?: number | null;
  readonly swap?: readonly [total: number, used: number];
  /** Other lines of meminfo as they stand. */
  readonly more?: Readonly<Record<string, number>>;
}

/** /proc/meminfo of a box with these KiB; what is left over is free. */
export function figures(f: Figures): Record<'/proc/meminfo', string> {
  const { total, anon = 0, file = 0, buffers = 0, shmem = 0, sreclaim = 0, sunreclaim = 0 } = f;
  const { hugetlb = 0, percpu = 0, missing = 0 } = f;
  const free = Math.max(0, total - anon - file - buffers - shmem - sreclaim - sunreclaim - hugetlb - percpu - missing);
  const available = f.available === undefined ? free + file + buffers + sreclaim : f.available;
  const [swapTotal, swapUsed] = f.swap ?? [0, 0];
  const lines = {
    MemTotal: total,
    MemFree: free,
    ...(available === null ? {} : { MemAvailable: available }),
    Buffers: buffers,
    Cached: file + shmem,
    SwapCached: 0,
    'Active(anon)': anon,
    'Inactive(anon)': shmem,
    'Active(file)': file + buffers,
    'Inactive(file)': 0,
    Unevictable: 0,
    Mlocked: f.mlocked ?? 0,
    SwapTotal: swapTotal,
    SwapFree: swapTotal - swapUsed,
    Dirty: f.dirty ?? 0,
    Writeback: 0,
    AnonPages: anon,
    Mapped: f.mapped ?? 0,
    Shmem: shmem,
    KReclaimable: sreclaim,
    Slab: sreclaim + sunreclaim,
    SReclaimable: sreclaim,
    SUnreclaim: sunreclaim,
    Percpu: percpu,
    Hugetlb: hugetlb,
    ...f.more,
  };
  const whole = Object.fromEntries(Object.entries(lines).map(([name, kiB]) => [name, Math.round(kiB)]));
  return { '/proc/meminfo': meminfoText(whole) };
}

export interface SlabRow {
  readonly name: string;
  readonly kiB: number;
  readonly objects: number;
  readonly active?: number;
  readonly bytes?: number;
}

/** /proc/slabinfo with one-page slabs. */
export const slabinfo = (rows: readonly SlabRow[]): Record<'/proc/slabinfo', string> => ({
  '/proc/slabinfo':
    'slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n' +
    rows
      .map(({ name, kiB, objects, active, bytes }) => {
        const slabs = Math.round(kiB / 4);
        return `${name} ${active ?? objects} ${objects} ${bytes ?? 192} 21 1 : tunables 0 0 0 : slabdata ${slabs} ${slabs} 0\n`;
      })
      .join(''),
});

export const python = '/usr/bin/python3.11';
/** Somebody's shell with a terminal: what hangs below it is attended. */
export const shell: ProcSpec = {
  ...{ pid: 3900, ppid: 900, comm: 'bash', argv: ['-bash'], exe: '/usr/bin/bash', tty: 34816, foreground: 4000 },
};
/** A program of somebody who sits at its terminal. */
export const attended = (change: Partial<ProcSpec> & { pid: number }): ProcSpec => ({
  ...{ ppid: 3900, comm: 'python3', argv: ['python3', 'train.py'], exe: python, session: 3900, pgrp: 4000 },
  ...{ tty: 34816, foreground: 4000, ticks: 40 },
  ...change,
});
