/** Limits of tables: 100 rows of 20 cells, 10,000 characters over all cells. */
import { asList, asObj, asObjs, asText, charsIn, isObj, type Obj } from './json.ts';
import type { Report } from './limits-report.ts';

const maxRows = 100;
const maxCells = 20;
const maxChars = 10_000;
const cellTypes = new Set(['raw_text', 'raw_number', 'rich_text']);

function charsOf(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, part) => sum + charsOf(part), 0);
  if (!isObj(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [key, part]) => sum + (key === 'text' && typeof part === 'string' ? charsIn(part) : charsOf(part)),
    0,
  );
}

export function checkTable(block: Obj, at: string, report: Report): void {
  const rows = asList(block['rows']);
  if (rows.length === 0) report(`${at}/rows`, 'no fewer than 1 items required');
  if (rows.length > maxRows) report(`${at}/rows`, `no more than ${maxRows} items allowed`);
  rows.forEach((row, r) => {
    const cells = asList(row);
    if (cells.length === 0) report(`${at}/rows/${r}`, 'no fewer than 1 items required');
    if (cells.length > maxCells) report(`${at}/rows/${r}`, `no more than ${maxCells} items allowed`);
    cells.forEach((cell, c) => {
      const type = asText(asObj(cell)['type']);
      const here = `${at}/rows/${r}/${c}`;
      if (!cellTypes.has(type)) report(`${here}/type`, `unsupported type: ${type}`);
      if (type === 'raw_text' && asText(asObj(cell)['text']) === '')
        report(`${here}/text`, 'must be more than 0 characters');
    });
  });
  if (charsOf(rows) > maxChars) report(`${at}/rows`, `must be less than ${maxChars + 1} characters in all cells`);
  asObjs(block['column_settings']).forEach((column, i) => {
    const align = column['align'];
    if (align !== undefined && align !== 'left' && align !== 'center' && align !== 'right')
      report(`${at}/column_settings/${i}/align`, 'must be one of: left, center, right');
  });
  if (asList(block['column_settings']).length > maxCells)
    report(`${at}/column_settings`, `no more than ${maxCells} items allowed`);
  if (block['type'] === 'data_table' && asText(block['caption']) === '' && !isObj(block['caption']))
    report(`${at}/caption`, 'missing required field: caption');
}
