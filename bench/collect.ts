/**
 * What one full look costs the box, against `ps auxww` on the same processes: CPU of all processes involved, wall time
 * and bytes on the wire. Usage: npx tsx bench/collect.ts [sleeping processes, default 5000] [rounds, default 5]
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { scriptFor } from '../src/ssh/frames.ts';
import { readHostProgram } from '../src/ssh/host-program.ts';

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly bytes: number;
}

/** CPU of children waited for so far (fields 16 and 17 of stat), in ms; clock ticks are 10 ms. */
function childrenCpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function costOf(command: string, args: readonly string[], stdin: string): Promise<Cost> {
  return new Promise((resolve, reject) => {
    const cpuBefore = childrenCpuMs();
    const startedAt = performance.now();
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let bytes = 0;
    child.stdout.on('data', (chunk: Buffer) => (bytes += chunk.length));
    child.on('error', reject);
    child.on('close', () => {
      resolve({ cpuMs: childrenCpuMs() - cpuBefore, wallMs: performance.now() - startedAt, bytes });
    });
    child.stdin.end(stdin);
  });
}

/** Starts `count` sleeping processes below one shell and resolves to what ends them all. */
async function crowd(count: number): Promise<() => void> {
  const script = `trap '' PIPE; i=0; while [ $i -lt ${count} ]; do sleep 600 & i=$((i+1)); done; echo up; read -r end; kill $(jobs -p)`;
  const shell = spawn('bash', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  await new Promise((resolve) => shell.stdout.once('data', resolve));
  return () => {
    if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL');
  };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;

function summary(costs: readonly Cost[]): Cost {
  return {
    cpuMs: median(costs.map((c) => c.cpuMs)),
    wallMs: Math.round(median(costs.map((c) => c.wallMs))),
    bytes: median(costs.map((c) => c.bytes)),
  };
}

/** Files in /dev/shm that nobody holds, heavy enough to be proposed for removal: collect has to be sure of it. */
function shmFiles(count: number): () => void {
  const folder = mkdtempSync('/dev/shm/reclaim-bench-');
  for (let n = 0; n < count; n++) writeFileSync(join(folder, `torch_${n}`), Buffer.alloc(1 << 20));
  return () => {
    rmSync(folder, { recursive: true });
  };
}

export interface CollectBench {
  readonly processes: number;
  readonly shmFiles: number;
  readonly ps: Cost;
  readonly collect: Cost;
  /** CPU of collect over CPU of ps. */
  readonly ratio: number;
}

/** Medians over `rounds`, the two taken in turn so that both meet the same load. */
async function compare(processes: number, rounds: number, files: number): Promise<CollectBench> {
  const tidy = files > 0 ? shmFiles(files) : () => undefined;
  try {
    const ps: Cost[] = [];
    const collect: Cost[] = [];
    for (let round = 0; round < rounds; round++) {
      const nonce = randomBytes(16).toString('hex');
      const lines = ['scope full', 'window 1'];
      const script = scriptFor(readHostProgram(), { nonce, run: 'bench', verb: 'collect', lines });
      ps.push(await costOf('ps', ['auxww'], ''));
      collect.push(await costOf('sh', ['-s'], script));
    }
    const [psCost, collectCost] = [summary(ps), summary(collect)];
    const ratio = Math.round((collectCost.cpuMs / psCost.cpuMs) * 100) / 100;
    return { processes, shmFiles: files, ps: psCost, collect: collectCost, ratio };
  } finally {
    tidy();
  }
}

const shown = ({ cpuMs, wallMs, bytes }: Cost): string =>
  `${cpuMs} ms CPU, ${wallMs} ms in all, ${(bytes / 1e6).toFixed(2)} MB`;

/** Prints the figures for a quiet /dev/shm and for one with files to look after. */
export async function benchCollect(processes: number, rounds: number): Promise<CollectBench[]> {
  const disperse = await crowd(processes);
  try {
    const results: CollectBench[] = [];
    for (const files of [0, 64]) {
      const result = await compare(processes, rounds, files);
      results.push(result);
      process.stdout.write(
        `${processes} sleeping processes, ${files} files in /dev/shm, medians of ${rounds}\n` +
          `  ps auxww  ${shown(result.ps)}\n  collect   ${shown(result.collect)}\n  CPU ratio ${result.ratio}\n`,
      );
    }
    return results;
  } finally {
    disperse();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await benchCollect(Number(process.argv[2] ?? 5000), Number(process.argv[3] ?? 5));
}
