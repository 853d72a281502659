/**
 * `npm run bench`: every benchmark in turn, each in a process of its own so that none warms or burdens the next. They
 * print ratios against a peer measured in the same run. Names as arguments choose some: npm run bench -- think
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = import.meta.dirname;
/** What the benchmarks share, and this file. */
const helpers = new Set(['main.ts', 'crowded-box.ts']);

const all = readdirSync(folder)
  .filter((name) => name.endsWith('.ts') && !helpers.has(name))
  .map((name) => name.slice(0, -'.ts'.length));
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no benchmark ${unknown.join(', ')}. There are: ${all.join(', ')}.\n`);
  process.exit(2);
}
for (const name of wanted.length > 0 ? wanted : all) {
  process.stdout.write(`== ${name}\n`);
  const run = spawnSync(process.execPath, ['--import', 'tsx', join(folder, `${name}.ts`)], { stdio: 'inherit' });
  if (run.status !== 0) process.exitCode = 1;
}
