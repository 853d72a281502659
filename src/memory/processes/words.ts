/** How findings name things: packages, owners, times, counts. */
import type { ProcessRef } from '../contract.ts';
import { escapeText, redactCommand } from '../redact.ts';
import { wordsOf, type Proc } from './table.ts';
import type { GpuUse } from './gpu.ts';
import { sum } from './predict.ts';

export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

export function ageWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export function ownerWords(procs: readonly Proc[]): string {
  // Small processes are often read by their stat line only, which names no owner: those that were read speak for them.
  const read = procs.filter((proc) => proc.uid !== null);
  const names = [...new Set(read.map((proc) => escapeText(proc.user ?? `uid ${proc.uid}`)))];
  if (names.length === 0) return 'owner not read';
  const shown = names.slice(0, 3).join(', ');
  return `${names.length > 1 ? 'owners' : 'owner'} ${shown}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`;
}

/** `started 02:14 UTC (18 h ago)`, of the oldest; the box's own time zone is not known. */
export function startedWords(procs: readonly Proc[], takenAtMs: number): string {
  const oldest = Math.max(...procs.map((proc) => proc.ageSeconds ?? -1));
  if (oldest < 0) return 'start time not known';
  const at = new Date(takenAtMs - oldest * 1000);
  const clock = Number.isNaN(at.getTime()) ? '' : `${at.toISOString().slice(11, 16)} UTC, `;
  return `started ${clock}${ageWords(oldest)} ago`;
}

const packagePatterns = [
  /\/pip-(?:install|req-build)-[^/]+\/([A-Za-z0-9][\w.-]*?)(?:_[0-9a-f]{32})?(?:\/|$)/m,
  /\/(flash[-_]?attn|flash[-_]attention|xformers|vllm|sglang|pytorch|deepspeed|apex|bitsandbytes|flashinfer|causal[-_]conv1d|mamba[-_]ssm|transformer[-_]engine|triton|llama\.cpp|TensorRT-LLM)(?:[-_][\d.]+\w*)?(?:\/|$)/im,
  /\b(flash_attn|flash_fwd|flash_bwd|xformers|vllm|deepspeed|bitsandbytes|flashinfer)(?=[\w-]*\.(?:cu|cpp|cc|o)\b|_2_cuda)/,
];

/** The package a build makes: from paths, source names, or `pip install NAME`. Null when nothing says so. */
export function packageName(procs: readonly Proc[]): string | null {
  for (const proc of procs) {
    const asked = askedPackage(proc);
    if (asked !== null) return asked;
  }
  for (const proc of procs) {
    const text = [proc.cwd?.path ?? '', ...proc.argv.slice(0, 400)].join('\n').slice(0, 16_384);
    for (const pattern of packagePatterns) {
      const name = pattern.exec(text)?.[1];
      if (name !== undefined)
        return escapeText(/^flash_(fwd|bwd|attn)|^flash-attention/.test(name) ? 'flash-attn' : name, 60);
    }
  }
  return null;
}

function askedPackage(proc: Proc): string | null {
  const words = wordsOf(proc.argv);
  const at = words.slice(0, 12).findIndex((arg) => arg === 'install' || arg === 'wheel' || arg === 'add');
  if (at < 1) return null;
  const name = words
    .slice(at + 1, at + 12)
    .find((arg) => /^[A-Za-z][\w.-]*(\[[\w,-]*\])?([=<>~!]=?[\w.*]+)?$/.test(arg));
  return name === undefined ? null : escapeText(name.replace(/[[=<>~!].*$/, ''), 60);
}

export function refOf(proc: Proc): ProcessRef {
  return {
    pid: proc.pid,
    startTime: Math.max(0, proc.startTime),
    uid: proc.uid,
    user: proc.user === null ? null : escapeText(proc.user, 64),
    comm: escapeText(proc.comm, 64),
    command: proc.argv.length === 0 ? `[${escapeText(proc.comm, 64)}]` : redactCommand(proc.argv),
    kiB: proc.privateKiB,
  };
}

export const largestFirst = (procs: readonly Proc[]): Proc[] =>
  [...procs].sort((a, b) => b.privateKiB - a.privateKiB || a.pid - b.pid);

export const privateSum = (procs: readonly Proc[]): number => sum(procs, (proc) => proc.privateKiB);

/** GPU memory the driver credits to these pids; it is not RAM and is never added to it. */
export function gpuLine(gpu: GpuUse, procs: readonly Proc[]): string[] {
  const listed = procs.filter((proc) => gpu.byPid.has(proc.pid));
  if (listed.length === 0) return [];
  const known = listed.map((proc) => gpu.byPid.get(proc.pid) ?? null).filter((mib) => mib !== null);
  const who = count(listed.length, 'process has a GPU context', 'processes have GPU contexts');
  return [known.length === 0 ? who : `${who}, ${sum(known, (mib) => mib)} MiB of GPU memory (not RAM)`];
}
