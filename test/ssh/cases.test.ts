/** Every reported way of not reaching a box (kind G) has a test that names it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const lines = readFileSync(join(root, 'fixtures/cases/reports.jsonl'), 'utf8').trim().split('\n');
const reported = lines.flatMap((line) => /"id": "(G\d+)"/.exec(line)?.[1] ?? []);

it('every case of a box that is not reached is named by a test', () => {
  const folders = ['.', 'host', 'ssh'].map((name) => join(root, name)).filter((folder) => existsSync(folder));
  const texts = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.test.ts') && name !== 'cases.test.ts')
      .map((name) => readFileSync(join(folder, name), 'utf8')),
  );
  const missing = reported.filter((id) => !texts.some((text) => new RegExp(`it\\(\\s*'[^']*\\(${id}\\)`).test(text)));
  expect(reported.length).toBeGreaterThan(5);
  expect(missing).toEqual([]);
});
