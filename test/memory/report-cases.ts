/** The public reports in test/fixtures/cases/reports.jsonl. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const reportSchema = z.object({
  id: z.string(),
  kind: z.string(),
  input: z.record(z.string(), z.unknown()),
  right_behaviour: z.string(),
  notes: z.string().optional(),
});
export type Report = z.infer<typeof reportSchema>;

export const reports: Report[] = readFileSync(new URL('../fixtures/cases/reports.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => reportSchema.parse(JSON.parse(line)));

/** One report; a test that names one that is not there is wrong. */
export function reportOf(id: string): Report {
  const found = reports.find((report) => report.id === id);
  if (found === undefined) throw new Error(`no report ${id}`);
  return found;
}
