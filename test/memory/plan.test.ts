import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding, Plan } from '../../src/memory/contract.ts';
import { makePlan, planDigest, planWithout } from '../../src/memory/plan.ts';
import { recheck, startTimesOf } from '../../src/memory/recheck.ts';
import type { DraftStep, Identity, Thought } from '../../src/memory/story.ts';
import { think } from '../../src/memory/think.ts';
import { bootId, captureOf, plainBox } from './cases.ts';

const range = (low: number, high: number) => ({ expectedFreeKiB: { low, high }, expectedAvailableKiB: { low, high } });
const drafts: DraftStep[] = [
  {
    action: 'kill',
    targets: [
      { pid: 10, startTime: 1 },
      { pid: 11, startTime: 2 },
    ],
    ...range(900, 1000),
  },
  { action: 'remove_files', targets: [{ path: '/dev/shm/a', dev: 21, ino: 7, kiB: 50 }], ...range(0, 50) },
  { action: 'ipcrm', targets: [{ shmid: 3, kiB: 20 }], ...range(20, 20) },
  { action: 'drop_caches', targets: [{ level: 1 }], ...range(500, 600) },
];
const identities: Record<string, Identity> = {
  '10:1': { uid: 1001, exe: '/usr/bin/ninja' },
  '11:2': { uid: 1001, exe: '/usr/bin/cicc' },
};
const plan = (): Plan => makePlan(drafts, identities, bootId)!;
const held: Finding[] = [
  {
    class: 'leftover_build',
    kiB: 1000,
    reclaimableKiB: { low: 900, high: 1000 },
    action: 'kill',
    evidence: [],
    processes: [
      { pid: 10, startTime: 1, uid: 1001, user: 'ana', comm: 'ninja', command: 'ninja', kiB: 200 },
      { pid: 11, startTime: 2, uid: 1001, user: 'ana', comm: 'cicc', command: 'cicc', kiB: 800 },
    ],
  },
];

describe('the digest of a plan', () => {
  it('does not care for order, grouping, ids or predictions', () => {
    const { steps, digest } = plan();
    fc.assert(
      fc.property(fc.shuffledSubarray(steps, { minLength: steps.length }), fc.string(), fc.nat(), (order, id, kiB) => {
        const reworded = order.map((step) => ({ ...step, id, ...range(0, kiB) }));
        return planDigest(reworded, identities, bootId) === digest;
      }),
    );
    const split = makePlan(
      [
        { ...drafts[0]!, targets: [{ pid: 11, startTime: 2 }] } as DraftStep,
        { ...drafts[0]!, targets: [{ pid: 10, startTime: 1 }] } as DraftStep,
        ...drafts.slice(1),
      ],
      identities,
      bootId,
    );
    expect(split!.digest).toBe(digest);
  });

  it.each([
    ['another boot', () => planDigest(plan().steps, identities, 'x')],
    [
      'another owner',
      () => planDigest(plan().steps, { ...identities, '10:1': { uid: 0, exe: '/usr/bin/ninja' } }, bootId),
    ],
    [
      'another program',
      () => planDigest(plan().steps, { ...identities, '10:1': { uid: 1001, exe: '/bin/sh' } }, bootId),
    ],
    ['a step less', () => planDigest(plan().steps.slice(1), identities, bootId)],
    ...(
      [
        ['another pid', 0, { pid: 12, startTime: 1 }],
        ['another start time', 0, { pid: 10, startTime: 9 }],
        ['another inode', 1, { path: '/dev/shm/a', dev: 21, ino: 8, kiB: 50 }],
        ['another device', 1, { path: '/dev/shm/a', dev: 22, ino: 7, kiB: 50 }],
        ['another path', 1, { path: '/dev/shm/b', dev: 21, ino: 7, kiB: 50 }],
        ['another segment', 2, { shmid: 4, kiB: 20 }],
        ['another level', 3, { level: 3 }],
      ] as const
    ).map(
      ([what, at, target]) =>
        [
          what,
          () => {
            const changed = drafts.map((d, i) =>
              i === at ? { ...d, targets: [target, ...d.targets.slice(1)] } : d,
            ) as DraftStep[];
            return makePlan(changed, identities, bootId)!.digest;
          },
        ] as [string, () => string],
    ),
  ])('changes with %s', (_, digest) => {
    expect(digest()).not.toBe(plan().digest);
  });
});

describe('taking things out of a plan', () => {
  it('scales what is left to what it holds, and drops empty steps', () => {
    const left = planWithout(plan(), ['10:1', 'step:remove-1'], identities, bootId, held)!;
    expect(left.steps.map((s) => s.id)).toEqual(['kill-1', 'ipcrm-1', 'drop-1']);
    expect(left.steps[0]).toMatchObject({
      targets: [{ pid: 11, startTime: 2 }],
      expectedFreeKiB: { low: 648, high: 800 },
    });
    expect(left.digest).not.toBe(plan().digest);
  });

  it('promises nothing certain when it does not know what each process holds', () => {
    const left = planWithout(plan(), ['10:1'], identities, bootId)!;
    expect(left.steps[0]!.expectedFreeKiB).toEqual({ low: 0, high: 1000 });
  });

  it('is no plan at all when everything is out, and the same plan when nothing is', () => {
    const all = plan().steps.map((step) => `step:${step.id}`);
    expect(planWithout(plan(), all, identities, bootId)).toBeNull();
    expect(planWithout(plan(), ['99:1'], identities, bootId)).toEqual(plan());
  });
});

describe('the re-check before acting', () => {
  const empty = think(captureOf(plainBox));
  const fresh = (over: {
    plan?: Plan | null;
    findings?: Finding[];
    identities?: Record<string, Identity>;
    bootId?: string;
  }): Thought => ({
    identities: over.identities ?? identities,
    bootId: over.bootId ?? bootId,
    diagnosis: {
      ...empty.diagnosis,
      plan: over.plan === undefined ? plan() : over.plan,
      findings: over.findings ?? held,
    },
  });
  const check = (now: Thought, freshStat?: Map<number, number>) =>
    recheck({ plan: plan(), identities, bootId, fresh: now, ...(freshStat === undefined ? {} : { freshStat }) });

  it('lets everything pass that is as it was', () => {
    expect(check(fresh({}))).toEqual({ superseded: null, steps: plan().steps, dropped: [] });
  });

  it.each([
    ['another boot', 'ffffffff-46d6-4812-aae3-8ee76a96fd12'],
    ['an untold boot', ''],
  ])('stops everything in %s', (_, id) => {
    const { superseded, steps } = check(fresh({ bootId: id }));
    expect(superseded).toContain('Nothing was done');
    expect(steps).toEqual([]);
  });

  it.each([
    ['gone', new Map([[11, 2]]), 'already_gone'],
    [
      'another with its number',
      new Map([
        [10, 999],
        [11, 2],
      ]),
      'not_same_process',
    ],
    [
      'alive, but no longer left over',
      new Map([
        [10, 1],
        [11, 2],
      ]),
      'refused',
    ],
  ])('takes out a process that is %s', (_, stat, result) => {
    const without = planWithout(plan(), ['10:1'], identities, bootId, held);
    const { steps, dropped } = check(fresh({ plan: without, findings: [] }), stat);
    expect(dropped).toMatchObject([{ stepId: 'kill-1', target: { pid: 10, startTime: 1 }, result }]);
    expect(dropped[0]!.reason).toMatch(/^It .*\.$/);
    expect(steps[0]!.targets).toEqual([{ pid: 11, startTime: 2 }]);
  });

  it.each([
    ['user', { uid: 0, exe: '/usr/bin/ninja' }],
    ['program', { uid: 1001, exe: '/bin/sh' }],
    ['program that cannot be read', { uid: 1001, exe: null }],
  ])('takes out a process that changed its %s', (_, identity) => {
    const { dropped } = check(fresh({ identities: { ...identities, '10:1': identity } }));
    expect(dropped).toMatchObject([{ target: { pid: 10 }, result: 'not_same_process' }]);
  });

  it('B25: a pid recycled by the same program, hours after the plan was made, is another process', () => {
    const again = { '10:888': { uid: 1001, exe: '/usr/bin/ninja' }, '11:2': identities['11:2']! };
    const proposed = makePlan(
      [{ ...drafts[0]!, action: 'kill', targets: [10, 11].map((pid) => ({ pid, startTime: pid === 10 ? 888 : 2 })) }],
      again,
      bootId,
    );
    const stat = new Map([
      [10, 888],
      [11, 2],
    ]);
    const { steps, dropped } = check(fresh({ plan: proposed, identities: again }), stat);
    expect(dropped[0]).toMatchObject({ target: { pid: 10, startTime: 1 }, result: 'not_same_process' });
    expect(steps.flatMap((step) => (step.action === 'kill' ? step.targets : []))).toEqual([{ pid: 11, startTime: 2 }]);
  });

  it('drops whatever a fresh look does not propose, and adds nothing it proposes on top', () => {
    const other = makePlan([{ action: 'kill', targets: [{ pid: 50, startTime: 5 }], ...range(1, 1) }], {}, bootId);
    const { steps, dropped } = check(fresh({ plan: other, findings: [] }));
    expect(steps).toEqual([]);
    expect(dropped.map((d) => d.stepId)).toEqual(['kill-1', 'kill-1', 'remove-1', 'ipcrm-1', 'drop-1']);
  });

  it('reads start times from the newest look, whatever a process calls itself, and counts zombies as gone', () => {
    const stat = (pid: number, comm: string, state: string, start: number) =>
      `${pid} (${comm}) ${state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${start} 0 0\n`;
    const capture = {
      ...captureOf(plainBox, { '/proc/5/stat': stat(5, 'a', 'S', 1), '/proc/6/stat': stat(6, 'b', 'S', 2) }),
      later: { '/proc/5/stat': stat(5, 'a) S 1\nb (x', 'R', 77), '/proc/7/stat': stat(7, 'z', 'Z', 3) },
    };
    expect([...startTimesOf(capture)]).toEqual([[5, 77]]);
  });
});
