/**
 * What the engine needs for one capture of a crowded box: JSON text to diagnosis, on one core, in a process of its own.
 * Usage: npx tsx bench/think.ts [processes, default 5000] [rounds, default 15]
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { captureSchema } from '../src/memory/contract.ts';
import { parseCapture } from '../src/memory/parse-capture.ts';
import { think } from '../src/memory/think.ts';
import { crowdedBox } from './crowded-box.ts';

interface Round {
  readonly parseMs: number;
  readonly thinkMs: number;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
const shown = (ms: number): string => ms.toFixed(1).padStart(7);

function engineRound(text: string): Round {
  const started = performance.now();
  const capture = parseCapture(text);
  const parsed = performance.now();
  const { diagnosis } = think(capture);
  const ended = performance.now();
  if (!['mixed', 'lingering'].includes(diagnosis.verdict))
    throw new Error(`the crowded box was judged ${diagnosis.verdict}`);
  return { parseMs: parsed - started, thinkMs: ended - parsed };
}

/**
 * The peer: what any lister of processes does with the same text before it has thought about anything. JSON, then every
 * file cut into lines and words.
 */
function readingRound(text: string): number {
  const started = performance.now();
  const capture = captureSchema.pick({ files: true, later: true }).parse(JSON.parse(text));
  let words = 0;
  for (const files of [capture.files, capture.later]) {
    for (const blob of Object.values(files)) {
      if (typeof blob === 'string') for (const line of blob.split('\n')) words += line.split(/\s+/).length;
    }
  }
  if (words === 0) throw new Error('the capture holds no text');
  return performance.now() - started;
}

/** Runs in the child: nothing but the engine and the text weigh on it. */
function measure(file: string, rounds: number): void {
  const text = readFileSync(file, 'utf8');
  const processes = Object.keys(parseCapture(text).files).filter((path) => /^\/proc\/\d+\/stat$/.test(path)).length;
  const idleKiB = process.resourceUsage().maxRSS;
  const first = engineRound(text);
  const firstPeakKiB = process.resourceUsage().maxRSS;
  for (let i = 0; i < 5; i++) engineRound(text);
  const warm = Array.from({ length: rounds }, () => engineRound(text));
  const peerMs = median(Array.from({ length: rounds }, () => readingRound(text)));
  const parseMs = median(warm.map((r) => r.parseMs));
  const thinkMs = median(warm.map((r) => r.thinkMs));
  const totalMs = median(warm.map((r) => r.parseMs + r.thinkMs));
  const mib = (kiB: number): string => `${Math.round(kiB / 1024)} MiB`;
  process.stdout.write(
    `  capture            ${processes} processes, ${(Buffer.byteLength(text) / 1e6).toFixed(1)} MB of JSON, node ${process.version}\n` +
      `  cold, first        ${shown(first.parseMs + first.thinkMs)} ms\n` +
      `  warm, median of ${rounds} ${shown(totalMs)} ms (JSON to capture ${parseMs.toFixed(1)}, capture to diagnosis ${thinkMs.toFixed(1)})\n` +
      `  against the peer   ${(totalMs / peerMs).toFixed(2).padStart(7)} x of cutting the same text into words (${peerMs.toFixed(1)} ms)\n` +
      `  per 1,000          ${shown((totalMs * 1000) / processes)} ms\n` +
      `  peak RSS           ${mib(firstPeakKiB)} after the first (${mib(idleKiB)} with the text read), ${mib(process.resourceUsage().maxRSS)} after all\n`,
  );
}

/** Prints the figures. */
export async function benchThink(processes = 5000, rounds = 15): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-bench-'));
  try {
    for (const look of ['as collected', 'everything'] as const) {
      const file = join(folder, 'box.capture.json');
      writeFileSync(file, JSON.stringify(crowdedBox(processes, look)));
      process.stdout.write(`${look}\n`);
      const child = fork(fileURLToPath(import.meta.url), ['--measure', file, String(rounds)]);
      await once(child, 'exit');
      if (child.exitCode !== 0) throw new Error('the measurement failed');
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [first, second, third] = process.argv.slice(2);
  if (first === '--measure' && second !== undefined) measure(second, Number(third));
  else await benchThink(Number(first ?? 5000), Number(second ?? 15));
}
