/** Steps that tick while a run works: as Slack's plan with a task for each step, and as plain text for where that is refused. */
import type { PlanBlock, RichTextBlock, TaskCardBlock } from '@slack/types';
import type { StepReport } from '../../memory/contract.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { cut, oneLine, type Piece } from '../text.ts';
import { rich, type RichPart } from './elements.ts';
import { processesOf, stepTitle } from './plan.ts';
import { stepFacts, stepLines } from './result.ts';
import { stepStateWords } from './words.ts';

const stepsShown = 10;
/** Not documented for blocks; the streaming API names 256 for the same fields. */
const planTitleChars = 256;

interface Ticking {
  readonly id: string;
  readonly title: string;
  /** Undefined while the step has not ended. */
  readonly report?: StepReport;
  /** What is being waited for in this step right now. */
  readonly doing?: string;
}

/** The first step that has not ended is the one under way. */
function ticking(record: RequestRecord): Ticking[] {
  const known = new Map((record.run?.report?.steps ?? []).map((s) => [s.id, s]));
  let doing = record.run?.doing;
  return (record.plan?.steps ?? []).map((step) => {
    const report = known.get(step.id);
    const common = { id: step.id, title: stepTitle(step, processesOf(record)) };
    if (report !== undefined && report.state !== 'not_run') return { ...common, report };
    const now = doing;
    doing = undefined;
    return now === undefined ? common : { ...common, doing: cut(oneLine(now), 200) };
  });
}

/** `Step 1 of 2: waiting for 3 of 6 to end`. */
export function nowSentence(record: RequestRecord): string {
  const steps = ticking(record);
  const at = steps.findIndex((step) => step.doing !== undefined);
  if (at >= 0) return `Step ${at + 1} of ${steps.length}: ${steps[at]?.doing ?? ''}`;
  const ended = steps.filter((step) => step.report !== undefined).length;
  const doing = record.run?.doing === undefined ? '' : `: ${cut(oneLine(record.run.doing), 200)}`;
  return `${ended} of ${steps.length} steps have ended${doing}`;
}

const statusOf = ({ report, doing }: Ticking): TaskCardBlock['status'] => {
  if (report === undefined) return doing === undefined ? 'pending' : 'in_progress';
  return report.state === 'failed' || report.state === 'unknown' ? 'error' : 'complete';
};

function taskOf(step: Ticking, n: number): TaskCardBlock {
  const said =
    step.report === undefined
      ? (step.doing ?? 'not started')
      : [stepStateWords[step.report.state], ...stepFacts(step.report)].join('\n');
  return {
    type: 'task_card',
    task_id: step.id,
    title: cut(`${n}. ${step.title}`, planTitleChars),
    status: statusOf(step),
    // Slack takes exactly one element here.
    output: rich([{ line: [said] }]),
  };
}

/** Slack folds a plan up at every edit, so its title says what is going on. Null when there is no step to show. */
export function progressPlan(record: RequestRecord): PlanBlock | null {
  const tasks = ticking(record)
    .slice(0, stepsShown)
    .map((step, i) => taskOf(step, i + 1));
  return tasks.length === 0 ? null : { type: 'plan', title: cut(nowSentence(record), planTitleChars), tasks };
}

/** The same in plain text. */
export function progressParts(record: RequestRecord): RichTextBlock {
  const steps = ticking(record);
  const parts: RichPart[] = [{ line: [{ bold: 'Steps' }] }];
  for (const [i, { title, report, doing }] of steps.slice(0, stepsShown).entries()) {
    if (report !== undefined) {
      parts.push({ line: stepLines(report, i + 1, record) });
      continue;
    }
    const mark = doing === undefined ? '·' : '▸';
    const state: Piece = doing === undefined ? ' – not started' : ` – now: ${doing}`;
    parts.push({ line: [{ bold: `${mark} ${i + 1}. ${title}` }, state] });
  }
  const more = steps.length - stepsShown;
  if (more > 0) parts.push({ line: [`and ${more} more steps`] });
  if (record.run?.doing !== undefined && !steps.some((s) => s.doing !== undefined))
    parts.push({ line: [`Now: ${cut(oneLine(record.run.doing), 200)}`] });
  return rich(parts);
}
