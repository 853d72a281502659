/** Requests, plans and people to test with. */
import type { Clock } from '../../src/clock.ts';
import { policySchema, type Policy } from '../../src/config/schema.ts';
import type { Diagnosis, Plan } from '../../src/memory/contract.ts';
import { makePlan } from '../../src/memory/plan.ts';
import type { DraftStep, Identity, Thought } from '../../src/memory/story.ts';
import type { Directory, PersonFacts } from '../../src/requests/directory.ts';
import { draft, type Move } from '../../src/requests/state.ts';

const range = { low: 0, high: 1000 };
const expected = { expectedFreeKiB: range, expectedAvailableKiB: range };
const memory = {
  totalKiB: 1000,
  usedKiB: 900,
  freeKiB: 50,
  availableKiB: 100,
  sharedKiB: 0,
  buffCacheKiB: 50,
  swapTotalKiB: 0,
  swapUsedKiB: 0,
};

export interface FakeProcess {
  readonly pid: number;
  readonly user: string | null;
}

/** A thought with one kill step over these processes, and further steps when asked for. */
export function thoughtOf(
  processes: readonly FakeProcess[],
  more: { drop?: boolean; files?: boolean; bootId?: string; host?: string } = {},
): Thought {
  const bootId = more.bootId ?? 'boot-1';
  const identities: Record<string, Identity> = Object.fromEntries(
    processes.map((p) => [`${p.pid}:${p.pid * 10}`, { uid: 1000, exe: '/usr/bin/ninja' }]),
  );
  const drafts: DraftStep[] = [];
  if (processes.length > 0) {
    drafts.push({
      action: 'kill',
      targets: processes.map((p) => ({ pid: p.pid, startTime: p.pid * 10 })),
      ...expected,
    });
  }
  if (more.files === true) {
    drafts.push({ action: 'remove_files', targets: [{ path: '/dev/shm/a', dev: 1, ino: 2, kiB: 5 }], ...expected });
  }
  if (more.drop === true) drafts.push({ action: 'drop_caches', targets: [{ level: 1 }], ...expected });
  const plan: Plan | null = makePlan(drafts, identities, bootId);
  const diagnosis: Diagnosis = {
    host: more.host ?? 'box',
    takenAt: '2026-01-01T00:00:00.000Z',
    verdict: plan === null ? 'nothing_to_reclaim' : 'lingering',
    headline: 'A headline.',
    confidence: 'high',
    partial: [],
    memory,
    accounting: [{ class: 'unaccounted', kiB: 1000 }],
    findings: [
      {
        class: 'leftover_build',
        kiB: 500,
        reclaimableKiB: range,
        action: 'kill',
        evidence: [],
        processes: processes.map((p) => ({
          pid: p.pid,
          startTime: p.pid * 10,
          uid: 1000,
          user: p.user,
          comm: 'ninja',
          command: 'ninja -j 64',
          kiB: 10,
        })),
      },
    ],
    plan,
  };
  return { diagnosis, identities, bootId };
}

export function policyOf(given: Record<string, unknown>): Policy {
  return policySchema.parse({ approvers: ['UAAA', 'UBBB', 'UCCC'], people: { ann: 'UANN', bob: 'UBOB' }, ...given });
}

export class TestClock implements Clock {
  ms = Date.parse('2026-01-01T00:00:00.000Z');
  now(): number {
    return this.ms;
  }
  sleep(): Promise<void> {
    return Promise.resolve();
  }
}

/** A directory where everybody is a member, unless said otherwise; `down` makes every look-up fail. */
export class TestDirectory implements Directory {
  down = false;
  standings = new Map<string, PersonFacts['standing']>();
  groups = new Map<string, string[]>();
  asked: string[] = [];

  person(id: string): Promise<PersonFacts> {
    this.asked.push(id);
    if (this.down) return Promise.reject(new Error('lookup failed'));
    return Promise.resolve({ id, standing: this.standings.get(id) ?? 'member' });
  }

  groupMembers(groupId: string): Promise<readonly string[]> {
    const members = this.groups.get(groupId);
    if (this.down || members === undefined) return Promise.reject(new Error('lookup failed'));
    return Promise.resolve(members);
  }
}

export function draftOf(given: { id?: string; host?: string; channel?: string; nowMs?: number }): Move {
  return draft({
    id: given.id ?? 'r1',
    host: given.host ?? 'box',
    requester: { id: 'UANN' },
    surface: 'slack',
    channel: given.channel ?? 'C1',
    policyVersion: 'p1',
    nowMs: given.nowMs ?? Date.parse('2026-01-01T00:00:00.000Z'),
  });
}
