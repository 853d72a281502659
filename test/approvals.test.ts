/** docs/approvals.md promises a test for each row. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const rows = readFileSync(join(root, 'docs/approvals.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')));

it('is about more than the known reports', () => {
  expect(rows.length).toBeGreaterThan(30);
});

it.each(rows)('%s: %s', (_attack, _what, shown = '') => {
  const [, file = '', title = ''] = /^`(test\/[\w./-]+)` "(.+)"$/.exec(shown) ?? [];
  expect(existsSync(join(root, file))).toBe(true);
  expect(readFileSync(join(root, file), 'utf8')).toContain(`'${title}'`);
});
