/** The demo where no real box can be made (not on Linux): a recorded one, and it says so. */
import { readFileSync } from 'node:fs';
import { parseCapture } from '../memory/parse-capture.ts';
import { renderReport } from '../memory/render.ts';
import { think } from '../memory/think.ts';

/** The report of the recorded box as text. Nothing on this machine is looked at or changed. */
export function replayed(columns: number, color: boolean): string {
  const recorded = parseCapture(readFileSync(new URL('./recorded.capture.json', import.meta.url), 'utf8'));
  return [
    'This machine does not run Linux, so no real leftover build can be made here. What follows is a recorded box:',
    'its report is worked out now, from what was read there; nothing is looked at, ended or dropped on this machine.',
    '',
    renderReport(think(recorded).diagnosis, { width: columns, colour: color }),
    '',
  ].join('\n');
}
