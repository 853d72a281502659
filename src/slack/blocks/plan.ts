/** The plan in words: what each step would do, to whom, what it should give back and what it risks. */
import type { Plan, ProcessRef, Step } from '../../memory/contract.ts';
import { rangeText, sizeText } from '../../memory/sizes.ts';
import { targetKey } from '../../memory/story.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { columns, cut, oneLine, plural, type Piece } from '../text.ts';
import { rich, type RichPart } from './elements.ts';
import { onlyOnRequest, riskWords } from './words.ts';

/** The card lists at most this many targets and steps; a longer plan goes to a file first. */
export const cardTargets = 20;
const cardSteps = 8;

export function processesOf(record: RequestRecord): ReadonlyMap<string, ProcessRef> {
  const found = record.diagnosis?.findings.flatMap((f) => f.processes ?? []) ?? [];
  return new Map(found.map((p) => [targetKey(p), p]));
}

/** Every target of a plan counts, because every one must have been shown before anybody may approve. */
export function planFitsCard(plan: Plan): boolean {
  const targets = plan.steps.reduce((sum, s) => sum + (s.action === 'drop_caches' ? 0 : s.targets.length), 0);
  const pathsFit = plan.steps.every((s) => s.action !== 'remove_files' || s.targets.every((t) => t.path.length <= 100));
  return targets <= cardTargets && plan.steps.length <= cardSteps && pathsFit;
}

/** `64 × cc1plus, 12 × nvcc`: the most frequent names first. */
export function namesInWords(processes: readonly ProcessRef[]): string {
  const counts = new Map<string, number>();
  for (const p of processes) counts.set(p.comm, (counts.get(p.comm) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  const named = sorted.slice(0, 4).map(([comm, n]) => (n === 1 ? comm : `${n} × ${comm}`));
  const rest = sorted.slice(4).reduce((sum, [, n]) => sum + n, 0);
  return [...named, ...(rest > 0 ? [`${rest} more`] : [])].join(', ');
}

export const userOf = (p: ProcessRef): string => p.user ?? (p.uid === null ? 'unknown user' : `uid ${p.uid}`);

/** What a step does, as one phrase. Holds host text: raw text only. */
export function stepTitle(step: Step, processes: ReadonlyMap<string, ProcessRef>): string {
  switch (step.action) {
    case 'kill': {
      const known = step.targets.flatMap((t) => processes.get(targetKey(t)) ?? []);
      const users = [...new Set(known.map(userOf))].slice(0, 5).join(', ');
      const names = namesInWords(known);
      return cut(
        oneLine(
          `End ${plural(step.targets.length, 'process', 'processes')}${names === '' ? '' : ` (${names})`}${users === '' ? '' : ` of ${users}`}`,
        ),
        300,
      );
    }
    case 'remove_files': {
      const kiB = step.targets.reduce((sum, t) => sum + t.kiB, 0);
      return `Remove ${plural(step.targets.length, 'unused shared memory file')} (${sizeText(kiB)})`;
    }
    case 'ipcrm': {
      const kiB = step.targets.reduce((sum, t) => sum + t.kiB, 0);
      return `Remove ${plural(step.targets.length, 'unattached System V segment')} (${sizeText(kiB)})`;
    }
    case 'drop_caches':
      return `Write back dirty pages, then drop caches (level ${step.targets[0]?.level ?? 1})`;
  }
}

export function expectedText(step: Pick<Step, 'expectedFreeKiB' | 'expectedAvailableKiB'>): string {
  return `expected: ${rangeText(step.expectedFreeKiB)} to free, ${rangeText(step.expectedAvailableKiB)} to available`;
}

function targetRows(step: Step, processes: ReadonlyMap<string, ProcessRef>, commandChars: number): string[][] {
  switch (step.action) {
    case 'kill':
      return step.targets.map((t) => {
        const p = processes.get(targetKey(t));
        if (p === undefined) return [String(t.pid), '?', '?', '(not in the report any more)'];
        const name = p.command === '' ? `[${p.comm}]` : p.command;
        return [String(p.pid), cut(oneLine(userOf(p)), 16), sizeText(p.kiB), cut(oneLine(name), commandChars)];
      });
    case 'remove_files':
      return step.targets.map((t) => ['', '', sizeText(t.kiB), oneLine(t.path)]);
    case 'ipcrm':
      return step.targets.map((t) => ['', '', sizeText(t.kiB), `shmid ${t.shmid}`]);
    case 'drop_caches':
      return [];
  }
}

/** The exact targets as a table. `commandChars` bounds the command column; pids, sizes and paths are never cut. */
export function targetTable(step: Step, record: RequestRecord, commandChars: number): string {
  const rows = targetRows(step, processesOf(record), commandChars);
  if (rows.length === 0) return '';
  const head = step.action === 'kill' ? ['PID', 'USER', 'SIZE', 'COMMAND'] : ['', '', 'SIZE', 'WHAT'];
  return columns([head, ...rows], ['right', 'left', 'right', 'left']);
}

/** The plan on the card: every step, and every target where they fit. */
export function planParts(record: RequestRecord, plan: Plan): ReturnType<typeof rich> {
  const processes = processesOf(record);
  const fits = planFitsCard(plan);
  const shown = plan.steps.slice(0, cardSteps);
  const parts: RichPart[] = onlyOnRequest(plan)
    ? [{ line: [{ bold: 'On request only.' }, ' Not needed: programs get this memory the moment they ask.'] }]
    : [{ line: [{ bold: 'Plan' }] }];
  const short = shown.length > 4;
  for (const [i, step] of shown.entries()) {
    const title: Piece[] = [{ bold: `${i + 1}. ${stepTitle(step, processes)}` }, `\n${expectedText(step)}`];
    if (!short) title.push(`\nRisk: ${riskWords[step.action]}`);
    parts.push({ line: title });
    const table = fits ? targetTable(step, record, 60) : '';
    if (table !== '') parts.push({ pre: table });
  }
  if (short) {
    for (const action of new Set(shown.map((s) => s.action))) parts.push({ line: [`Risk: ${riskWords[action]}`] });
  }
  if (!fits) {
    const left = plan.steps.length - shown.length;
    const more = left > 0 ? `${plural(left, 'more step')}. ` : '';
    parts.push({ line: [`${more}The whole plan, target by target, is in a file in this thread.`] });
  }
  return rich(parts);
}

export function processCount(plan: Plan): number {
  return plan.steps.reduce((sum, s) => sum + (s.action === 'kill' ? s.targets.length : 0), 0);
}

/** What an approval would do, as the confirmation says it: never longer than its 300 characters. */
export function effectSentence(host: string, plan: Plan): string {
  const n = processCount(plan);
  const files = plan.steps.reduce((sum, s) => sum + (s.action === 'remove_files' ? s.targets.length : 0), 0);
  const segments = plan.steps.reduce((sum, s) => sum + (s.action === 'ipcrm' ? s.targets.length : 0), 0);
  const effects = [
    ...(n > 0 ? [`end ${plural(n, 'process', 'processes')}`] : []),
    ...(files > 0 ? [`remove ${plural(files, 'file')}`] : []),
    ...(segments > 0 ? [`remove ${plural(segments, 'segment')}`] : []),
    ...(plan.steps.some((s) => s.action === 'drop_caches') ? ['drop caches'] : []),
  ];
  return `On ${host}: ${effects.join(', ')}. Exactly what is listed, nothing else.`;
}
