/**
 * After the road to a box broke in the middle of a step: what really happened there. Reconnects, waits until the box
 * itself has finished with the step, and reads its journal and its processes before anything is claimed. What the journal
 * proves is told as done, what is proven not to have begun as not run, and all else as unknown. Nothing is done again.
 */
import type { Box, JournalLine, ResultOf, RunJournal } from './box.ts';
import type { Clock } from './clock.ts';
import { asReclaimError, type ReclaimError } from './errors.ts';
import { look } from './look.ts';
import { commandText } from './memory/blob.ts';
import { targetResults, type Capture, type StepReport } from './memory/contract.ts';
import { parseOomKills } from './memory/oom.ts';
import { startTimesOf } from './memory/recheck.ts';
import type { ThinkOptions } from './memory/story.ts';
import { finished, withResults } from './steps.ts';

export interface LossDeps {
  readonly clock: Clock;
  /** Opens the same box again. */
  readonly reopen: () => Promise<Box>;
}

/** What the run knew of the box before. */
export interface LossFacts {
  readonly run: string;
  readonly bootId: string;
  readonly hostKey: string;
  readonly options: ThinkOptions;
  /** The look before acting: who the OOM killer struck since is told by the difference. */
  readonly before: Capture;
}

export interface Aftermath {
  /** The box over a new connection, for the caller to close; null when it was not reached, or is not that box any more. */
  readonly box: Box | null;
  readonly step: StepReport;
}

/** Dials in all, with growing pauses between them: half a minute of pauses, plus what the dials themselves may take. */
const reopenTries = 6;
const firstPauseMs = 1_000;
/** How long a step may still be at work on the box: the longest is a drop of caches, with two minutes of its own. */
const workMs = 180_000;
const pollMs = 1_000;

/** True where the step may have happened although its answer did not come. */
export const isLost = (error: ReclaimError): boolean =>
  error.code === 'ssh_lost' || error.code === 'host_answer_cut' || error.code === 'outcome_unknown';

/** `soFar` is the step with the results that came through before the loss. Never rejects. */
export async function afterLoss(
  deps: LossDeps,
  facts: LossFacts,
  soFar: StepReport,
  error: ReclaimError,
): Promise<Aftermath> {
  let why = `${error.userText} The box was not reached again to find out.`;
  for (let attempt = 1; attempt <= reopenTries; attempt += 1) {
    if (attempt > 1) await deps.clock.sleep(firstPauseMs * 2 ** (attempt - 2));
    let box: Box | null = null;
    try {
      box = (await deps.reopen()).forRun(facts.run);
      const told = await learn(box, deps, facts, soFar, error);
      if (told.box === null) await box.close();
      return told;
    } catch (thrown) {
      await box?.close().catch(() => undefined);
      const again = asReclaimError(thrown);
      why = `${error.userText} Reclaim could not find out: ${again.userText}`;
      if (!again.retryable) break;
    }
  }
  return { box: null, step: { ...soFar, state: 'unknown', reason: why } };
}

/** Rejects when the connection breaks once more: then all of this is tried again. */
async function learn(
  box: Box,
  deps: LossDeps,
  facts: LossFacts,
  soFar: StepReport,
  error: ReclaimError,
): Promise<Aftermath> {
  const unknown = (reason: string): Aftermath => ({ box: null, step: { ...soFar, state: 'unknown', reason } });
  if (box.hostKey !== facts.hostKey) {
    return unknown(`${error.userText} The box that answers now proves another host key, so it was not asked.`);
  }
  const journal = await concluded(box, deps.clock, facts.run, soFar);
  const { capture, thought } = await look(box, facts.options);
  if (thought.bootId !== facts.bootId) {
    return unknown(`${error.userText} The box was restarted meanwhile, so its journal and its processes are gone.`);
  }
  const step = judge(soFar, journal, startTimesOf(capture), error);
  const struck = oomSince(facts.before, capture);
  const reason = [step.reason, struck].filter((text) => text != null).join(' ');
  return { box, step: reason === '' ? step : { ...step, reason } };
}

/** The journal once nothing changes in it any more: complete, closed for good, or (null) still growing after all that time. */
async function concluded(box: Box, clock: Clock, run: string, step: StepReport): Promise<RunJournal | null> {
  for (let waitedMs = 0; waitedMs <= workMs; waitedMs += pollMs) {
    const journal = await box.journal(run);
    if (journal.state !== 'running') {
      return isComplete(step, journal.lines) ? journal : await box.journal(run, { seal: true });
    }
    await clock.sleep(pollMs);
  }
  return null;
}

const verbs = { kill: 'kill', remove_files: 'remove-files', ipcrm: 'ipcrm', drop_caches: 'drop-caches' } as const;

type Target = StepReport['targets'][number];

/** The words that name a target in the lines of its step; none for a drop of caches, which has one target. */
function wordsOf(target: Target): string {
  if ('pid' in target) return `${target.pid} ${target.startTime}`;
  if ('ino' in target) return `${target.dev}:${target.ino}`;
  return 'shmid' in target ? String(target.shmid) : '';
}

/** What the journal says of each target; the last word counts (`exited`, then `respawned`). */
export function journaledResults(step: StepReport, lines: readonly JournalLine[]): ResultOf<Target>[] {
  const verb = verbs[step.action];
  return step.targets.flatMap((target) => {
    const key = wordsOf(target);
    const last = lines.findLast(
      ({ words }) => words[0] === verb && (key === '' || `${words.slice(2).join(' ')} `.startsWith(`${key} `)),
    );
    const said = last?.words[1];
    const result = targetResults.find((r) => r === (said === 'done' ? 'dropped' : said));
    if (last === undefined || result === undefined) return [];
    const reason = last.words.slice(2).join(' ').slice(key.length).trim();
    return [{ ...target, result, ...(reason === '' ? {} : { reason }) }];
  });
}

/** The answer of a step that has none for its targets: `drop-caches skipped SENTENCE`. */
function journaledAnswer(step: StepReport, lines: readonly JournalLine[]): { state: string; reason: string } | null {
  if (step.action !== 'drop_caches') return null;
  const words = lines.findLast((line) => line.words[0] === 'drop-caches')?.words;
  return words === undefined ? null : { state: words[1] ?? '', reason: words.slice(2).join(' ') };
}

function hasBegun(step: StepReport, lines: readonly JournalLine[]): boolean {
  const begins = lines.filter(({ words }) => words[0] === 'begin' && words[1] === verbs[step.action]);
  if (step.action === 'drop_caches') return begins.length > 0;
  const heads = new Set(step.targets.map((target) => wordsOf(target).replace(':', ' ')));
  return begins.some(({ words }) => heads.has(words.slice(2, step.action === 'ipcrm' ? 3 : 4).join(' ')));
}

function isComplete(step: StepReport, lines: readonly JournalLine[]): boolean {
  if (step.action === 'drop_caches') return journaledAnswer(step, lines) !== null;
  const known = withResults(step, journaledResults(step, lines));
  return known.targets.every((target) => target.result !== undefined);
}

function judge(
  soFar: StepReport,
  journal: RunJournal | null,
  startTimes: ReadonlyMap<number, number>,
  error: ReclaimError,
): StepReport {
  const lines = journal?.lines ?? [];
  const answer = journaledAnswer(soFar, lines);
  if (answer?.state === 'skipped' || answer?.state === 'failed') {
    return { ...soFar, state: answer.state, reason: answer.reason };
  }
  const results = journaledResults(soFar, lines);
  const proven = withResults(soFar, results);
  if (proven.targets.every((target) => target.result !== undefined)) {
    return withNote(finished(proven, results), 'The connection was lost meanwhile; the journal on the box tells this.');
  }
  if (journal?.state === 'sealed' && !hasBegun(soFar, lines)) {
    const reason =
      'The connection was lost before the box began this step; its journal proves that nothing of it was done.';
    return { ...soFar, state: 'not_run', reason };
  }
  if (proven.action !== 'kill') return { ...proven, state: 'unknown', reason: error.userText };
  const seen = proven.targets.map((target) => {
    if (target.result !== undefined || startTimes.get(target.pid) !== target.startTime) return target;
    return { ...target, result: 'still_there' as const };
  });
  const left = seen.filter((target) => target.result === 'still_there').length;
  const found =
    left === 0 ? 'A fresh look finds all of them gone.' : `A fresh look finds ${left} of ${seen.length} still there.`;
  return { ...proven, targets: seen, state: 'unknown', reason: `${error.userText} ${found}` };
}

const withNote = (step: StepReport, note: string): StepReport => ({
  ...step,
  reason: step.reason === undefined ? note : `${step.reason} ${note}`,
});

/** A session can be ended by the kernel's OOM killer, ours too: then that is said, so that nobody takes it for our doing. */
function oomSince(before: Capture, after: Capture): string | null {
  const seen = new Set((commandText(before, 'dmesg oom') ?? '').split('\n'));
  const fresh = (commandText(after, 'dmesg oom') ?? '').split('\n').filter((line) => !seen.has(line));
  const kills = parseOomKills(fresh.join('\n'), 4);
  if (kills.length === 0) return null;
  const names = [...new Set(kills.map((kill) => kill.victim.comm))].slice(0, 3).join(', ');
  return `Meanwhile the kernel's OOM killer struck there (${names}); that was not Reclaim.`;
}
