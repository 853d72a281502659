/**
 * What is claimed after the connection broke in the middle of a step, for every state the box can be found in. The box
 * is a script here, to bring about each; test/ssh/lost.test.ts does it over a real server.
 */
import { describe, expect, it } from 'vitest';
import { afterLoss, type LossFacts } from '../src/aftermath.ts';
import type { Box, RunJournal } from '../src/box.ts';
import { ReclaimError, type ErrorCode } from '../src/errors.ts';
import type { Capture, StepReport } from '../src/memory/contract.ts';
import { defaultThinkOptions, think } from '../src/memory/think.ts';
import { makeBox } from './memory/box.ts';

const calm = makeBox({});
const { bootId } = think(calm, defaultThinkOptions);
const range = { low: 0, high: 0 };
const report = { id: 's1', expectedFreeKiB: range, expectedAvailableKiB: range, state: 'not_run' as const, tookMs: 0 };
const kill: StepReport = {
  ...report,
  action: 'kill',
  targets: [
    { pid: 5001, startTime: 71 },
    { pid: 5002, startTime: 72 },
  ],
};
const remove: StepReport = {
  ...report,
  action: 'remove_files',
  targets: [{ path: '/dev/shm/a', dev: 26, ino: 7, kiB: 4 }],
};
const segment: StepReport = { ...report, action: 'ipcrm', targets: [{ shmid: 3, kiB: 4 }] };
const drop: StepReport = { ...report, action: 'drop_caches', targets: [{ level: 1 }] };
const lost = new ReclaimError('ssh_lost', 'The connection was lost.');

const journal = (state: RunJournal['state'], ...lines: string[]): RunJournal => ({
  state,
  lines: lines.map((line, at) => ({ at, words: line.split(' ') })),
});

interface Found {
  /** What `journal` answers, in order; the last one stays. A sealed one is what sealing answers. */
  readonly journals: readonly (RunJournal | ErrorCode)[];
  readonly capture?: Capture;
  readonly hostKey?: string;
}

/** A box as it is found again, and what was asked of it. Whatever would change something there fails the test. */
function found({ journals, capture = calm, hostKey = 'SHA256:key' }: Found) {
  const asked: string[] = [];
  let at = 0;
  const never = (): never => {
    throw new Error('something was done again');
  };
  const box: Box = {
    host: 'gpu-box-3',
    hostKey,
    forRun: (run) => {
      asked.push(`run ${run}`);
      return box;
    },
    journal: (_run, options) => {
      asked.push(options?.seal === true ? 'seal' : 'journal');
      const next = journals[Math.min(at++, journals.length - 1)]!;
      return typeof next === 'string' ? Promise.reject(new ReclaimError(next, 'Gone again.')) : Promise.resolve(next);
    },
    collect: () => Promise.resolve(capture),
    kill: never,
    removeFiles: never,
    ipcrm: never,
    sync: never,
    dropCaches: never,
    close: () => {
      asked.push('close');
      return Promise.resolve();
    },
  };
  return { box, asked };
}

const facts: LossFacts = { run: 'run1', bootId, hostKey: 'SHA256:key', options: defaultThinkOptions, before: calm };
const clock = { now: () => 0, sleep: () => Promise.resolve() };
const learn = (step: StepReport, box: Box, more: Partial<LossFacts> = {}) =>
  afterLoss({ clock, reopen: () => Promise.resolve(box) }, { ...facts, ...more }, step, lost);
const results = (step: StepReport) => step.targets.map((target) => target.result);

describe('after the connection broke in a step', () => {
  it.each<[string, StepReport, string[], StepReport['state'], (string | undefined)[]]>([
    ['an end of processes', kill, ['kill exited 5001 71', 'kill killed 5002 72'], 'done', ['exited', 'killed']],
    [
      'one that came back',
      kill,
      ['kill exited 5001 71', 'kill killed 5002 72', 'kill respawned 5001 71 it came back'],
      'done',
      ['respawned', 'killed'],
    ],
    [
      'a failure',
      kill,
      ['kill refused 5001 71 it is protected', 'kill still_there 5002 72 stuck in D'],
      'failed',
      ['refused', 'still_there'],
    ],
    ['a removed file', remove, ['removing 26:7', 'remove-files removed 26:7'], 'done', ['removed']],
    ['a removed segment', segment, ['ipcrm removed 3'], 'done', ['removed']],
    ['a drop', drop, ['begin sync', 'sync done', 'begin drop-caches', 'drop-caches done'], 'done', ['dropped']],
    ['a skipped drop', drop, ['drop-caches skipped The disk is dead.'], 'skipped', [undefined]],
  ])('what the journal proves is told as such: %s', async (_what, step, lines, state, expected) => {
    const { box, asked } = found({ journals: [journal('ended', ...lines)] });
    const told = await learn(step, box);
    expect(told.step.state).toBe(state);
    expect(results(told.step)).toEqual(expected);
    expect(asked).toEqual(['run run1', 'journal']);
    expect(told.box).toBe(box);
  });

  it('the sentence of the journal is kept', async () => {
    const { box } = found({ journals: [journal('ended', 'drop-caches skipped The disk is dead.')] });
    expect((await learn(drop, box)).step.reason).toBe('The disk is dead.');
    const stuck = found({ journals: [journal('ended', 'kill exited 5001 71', 'kill still_there 5002 72 stuck in D')] });
    expect((await learn(kill, stuck.box)).step.reason).toMatch(/1 of 2 left as they are: stuck in D/);
  });

  it('waits while the box is still at it', async () => {
    const { box, asked } = found({
      journals: [
        journal('running', 'begin kill 5001 71 - -'),
        journal('running', 'kill exited 5001 71'),
        journal('ended', 'kill exited 5001 71', 'kill exited 5002 72'),
      ],
    });
    expect((await learn(kill, box)).step.state).toBe('done');
    expect(asked.filter((what) => what === 'journal')).toHaveLength(3);
  });

  it('a step that never began is closed there, and told as not done', async () => {
    const other = 'begin kill 4000 1 - -';
    for (const step of [kill, remove, segment, drop]) {
      const { box, asked } = found({ journals: [journal('ended', other), journal('sealed', other)] });
      const told = await learn(step, box);
      expect(told.step).toMatchObject({
        state: 'not_run',
        reason: expect.stringMatching(/nothing of it was done/) as string,
      });
      expect(asked).toEqual(['run run1', 'journal', 'seal']);
    }
  });

  it('a step that began and has no end is unknown, and what the look shows is said', async () => {
    const alive = makeBox({
      processes: [{ pid: 5002, ppid: 1, comm: 'x', argv: ['x'], startTime: 72, anonKiB: 1024 }],
    });
    const lines = ['begin kill 5001 71 - -', 'signal 15 5001:71', 'kill exited 5001 71', 'signal 15 5002:72'];
    const { box } = found({ journals: [journal('ended', ...lines), journal('sealed', ...lines)], capture: alive });
    const told = await learn(kill, box);
    expect(told.step.state).toBe('unknown');
    expect(results(told.step)).toEqual(['exited', 'still_there']);
    expect(told.step.reason).toMatch(/lost.*1 of 2 still there/);
    for (const [step, line] of [
      [remove, 'begin remove-files 26 7 /dev/shm/a'],
      [segment, 'begin ipcrm 3'],
      [drop, 'begin drop-caches'],
    ] as const) {
      const begun = found({ journals: [journal('ended', line), journal('sealed', line)] });
      expect((await learn(step, begun.box)).step.state).toBe('unknown');
    }
  });

  it('nothing is claimed where the box could not close the run, or is still at it after all', async () => {
    for (const journals of [[journal('ended')], [journal('running')]]) {
      const told = await learn(kill, found({ journals }).box);
      expect(told.step.state).toBe('unknown');
      expect(results(told.step)).toEqual([undefined, undefined]);
    }
  });

  it.each<[string, Partial<Found>, Partial<LossFacts>, RegExp]>([
    ['proves another key', { hostKey: 'SHA256:other' }, {}, /another host key/],
    ['was restarted', {}, { bootId: '00000000-0000-0000-0000-000000000000' }, /restarted meanwhile/],
  ])('nothing is claimed where the box %s', async (_what, over, more, sentence) => {
    const { box, asked } = found({ journals: [journal('ended', 'kill exited 5001 71')], ...over });
    const told = await learn(kill, box, more);
    expect(told.box).toBeNull();
    expect(told.step).toMatchObject({ state: 'unknown', reason: expect.stringMatching(sentence) as string });
    expect(results(told.step)).toEqual([undefined, undefined]);
    expect(asked.at(-1)).toBe('close');
  });

  it('a connection that breaks again while asking is opened once more', async () => {
    const { box, asked } = found({
      journals: ['ssh_closed_early', journal('ended', 'kill exited 5001 71', 'kill exited 5002 72')],
    });
    expect((await learn(kill, box)).step.state).toBe('done');
    expect(asked).toEqual(['run run1', 'journal', 'close', 'run run1', 'journal']);
  });

  it.each<[ErrorCode, number]>([
    ['ssh_timeout', 6],
    ['ssh_host_key_changed', 1],
    ['ssh_auth_failed', 1],
  ])('a box that stays away (%s) is dialled %i times', async (code, times) => {
    let dials = 0;
    const reopen = () => Promise.reject(new ReclaimError(code, `No: ${(dials += 1)}.`));
    const told = await afterLoss({ clock, reopen }, facts, kill, lost);
    expect(dials).toBe(times);
    expect(told).toMatchObject({ box: null, step: { state: 'unknown' } });
    expect(told.step.reason).toMatch(/could not find out: No/);
  });

  it('names the OOM killer where it struck meanwhile (G10)', async () => {
    const line = 'Out of memory: Killed process 4321 (sshd) total-vm:1kB, anon-rss:900kB, file-rss:0kB, shmem-rss:0kB';
    const struck = { ...calm, commands: { ...calm.commands, 'dmesg oom': { status: 0, stdout: `[1.0] ${line}\n` } } };
    const { box } = found({ journals: [journal('ended'), journal('sealed')], capture: struck });
    expect((await learn(kill, box)).step.reason).toMatch(/OOM killer struck there \(sshd\); that was not Reclaim/);
    const again = await learn(kill, found({ journals: [journal('ended')], capture: struck }).box, { before: struck });
    expect(again.step.reason).not.toMatch(/OOM killer/);
  });
});
