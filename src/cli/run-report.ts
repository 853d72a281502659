/** A run report as text for a terminal: what was done, what it gave, what is left. Pure. */
import type { RunReport, StepReport, TargetResult } from '../memory/contract.ts';
import { renderFreeDiff } from '../memory/free-table.ts';
import { deltaText, rangeText } from '../memory/sizes.ts';
import { wordsFor } from '../steps.ts';

const headlines: Readonly<Record<RunReport['outcome'], string>> = {
  succeeded: 'Done.',
  partial: 'Done in part.',
  failed: 'Failed.',
  unknown: 'Outcome unknown.',
  nothing_to_do: 'There was nothing left to do.',
  dry_run: 'Dry run.',
  refused: 'Refused.',
};

export function renderRun(report: RunReport): string {
  const lines = [`${headlines[report.outcome]} ${report.reason ?? ''}`.trim(), ''];
  for (const step of report.steps) lines.push(...renderStep(step));
  if (report.outcome !== 'dry_run' && report.outcome !== 'refused') {
    lines.push('', renderFreeDiff(report.before, report.after));
    lines.push(
      '',
      `Other activity on the box: free ${deltaText(report.other.freeKiB)}, available ${deltaText(report.other.availableKiB)}`,
    );
  }
  for (const advice of report.advice) lines.push('', advice);
  return `${lines.join('\n')}\n`;
}

function renderStep(step: StepReport): string[] {
  const expected = `expected free ${rangeText(step.expectedFreeKiB)}, available ${rangeText(step.expectedAvailableKiB)}`;
  const measured =
    step.measured === undefined
      ? 'not measured'
      : `measured free ${deltaText(step.measured.freeKiB)}, available ${deltaText(step.measured.availableKiB)}`;
  const counts = new Map<TargetResult, number>();
  for (const target of step.targets) {
    if (target.result !== undefined) counts.set(target.result, (counts.get(target.result) ?? 0) + 1);
  }
  const ends = [...counts].map(([result, count]) => `${count} ${wordsFor[result]}`).join(', ');
  return [
    `${step.id} (${step.action.replace('_', ' ')}): ${step.state.replace('_', ' ')}${ends === '' ? '' : `: ${ends}`}`,
    `  ${expected}; ${measured}`,
    ...(step.reason === undefined ? [] : [`  ${step.reason}`]),
  ];
}
