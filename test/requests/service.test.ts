import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ReclaimError } from '../../src/errors.ts';
import type { RunReport } from '../../src/memory/contract.ts';
import type { RequestService } from '../../src/requests/service.ts';
import { requestService } from '../../src/requests/service-impl.ts';
import type { Store } from '../../src/requests/store.ts';
import { openSqlStore } from '../../src/requests/store-sql.ts';
import type { RequestRecord } from '../../src/requests/types.ts';
import { openPglitePool, type PglitePool } from '../../src/sql/pglite-pool.ts';
import { type FakeProcess, policyOf, TestClock, TestDirectory, thoughtOf } from './fixtures.ts';

const log = pino({ level: 'silent' });
const own: FakeProcess[] = [{ pid: 100, user: 'ann' }];
const foreign: FakeProcess[] = [
  { pid: 100, user: 'ann' },
  { pid: 200, user: 'bob' },
];

let pool: PglitePool;
let store: Store;
const clock = new TestClock();
let directory: TestDirectory;
let put: string[] = [];
let queueIsDown = false;
let hosts = 0;
let host = '';

function service(policy: Record<string, unknown> = {}, policyVersion = 'p1'): RequestService {
  const enqueue = (what: string) => (id: string) => {
    if (queueIsDown) return Promise.reject(new Error('queue_down'));
    put.push(`${what} ${id}`);
    return Promise.resolve();
  };
  return requestService({
    store,
    clock,
    log,
    policy: { policy: policyOf(policy), policyVersion },
    enqueue: { look: enqueue('look'), run: enqueue('run') },
  });
}

const person = (id: string) => ({ id, team: 'T1' });
const click = (id: string, who: string, more: object = {}) => ({
  id,
  person: person(who),
  surface: 'slack' as const,
  verdict: 'approve' as const,
  ...more,
});

async function pendingRequest(on: RequestService, processes = own, more: Parameters<typeof thoughtOf>[1] = {}) {
  const { record } = await on.ask({ host, requester: person('UANN'), surface: 'slack', channel: 'C1' });
  return await on.looked(record.id, { thought: thoughtOf(processes, { host, ...more }), hostKey: 'SHA256:k' });
}

async function refusal(attempt: Promise<unknown>): Promise<ReclaimError> {
  const thrown: unknown = await attempt.then(
    () => 'it was allowed',
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ name: 'ReclaimError' });
  return thrown as ReclaimError;
}

const killed = (record: RequestRecord) => record.plan?.steps.flatMap((s) => (s.action === 'kill' ? s.targets : []));

function reportOf(id: string, run: string, outcome: RunReport['outcome'] = 'succeeded'): RunReport {
  const { diagnosis } = thoughtOf(own, { host });
  const { memory } = diagnosis;
  const other = { freeKiB: 0, availableKiB: 0 };
  return { run, request: id, host, outcome, diagnosis, before: memory, after: memory, steps: [], other, advice: [] };
}

beforeAll(async () => {
  pool = await openPglitePool('memory://');
  store = await openSqlStore({ pool, clock });
});
afterAll(async () => {
  await store.close();
  await pool.close();
});
beforeEach(() => {
  directory = new TestDirectory();
  put = [];
  queueIsDown = false;
  host = `host-${(hosts += 1)}`;
  clock.ms += 3_600_000;
});

describe('who may approve', () => {
  const cases: [string, Record<string, unknown>, string, Partial<{ pids: FakeProcess[]; drop: boolean }>, string][] = [
    ['an approver', {}, 'UAAA', {}, 'approved'],
    ['somebody who is no approver', {}, 'UZZZ', {}, 'not_allowed'],
    ['the requester, by default', { approvers: ['UANN'] }, 'UANN', {}, 'not_allowed'],
    [
      'the requester where self-approval is always allowed',
      { approvers: ['UANN'], self_approval: 'always' },
      'UANN',
      {},
      'approved',
    ],
    [
      'the requester for own processes',
      { approvers: ['UANN'], self_approval: 'own_processes' },
      'UANN',
      {},
      'approved',
    ],
    [
      'the requester for other people’s processes',
      { approvers: ['UANN'], self_approval: 'own_processes' },
      'UANN',
      { pids: foreign },
      'not_allowed',
    ],
    [
      'the requester for dropping caches',
      { approvers: ['UANN'], self_approval: 'own_processes' },
      'UANN',
      { drop: true },
      'not_allowed',
    ],
    [
      'the requester for processes of unknown users',
      { approvers: ['UANN'], self_approval: 'own_processes' },
      'UANN',
      { pids: [{ pid: 7, user: null }] },
      'not_allowed',
    ],
    ['anybody when no approver is configured', { approvers: [] }, 'UAAA', {}, 'no_approvers'],
    ['a member of an approving group', { approvers: ['SGRP'] }, 'UGGG', {}, 'approved'],
    ['somebody outside the approving group', { approvers: ['SGRP'] }, 'UAAA', {}, 'not_allowed'],
    ['a member when another group cannot be read', { approvers: ['SGRP', 'SDOWN'] }, 'UGGG', {}, 'approved'],
    ['somebody else when a group cannot be read', { approvers: ['SGRP', 'SDOWN'] }, 'UAAA', {}, 'lookup_failed'],
    ['a Unix user nobody mapped', {}, 'unix:root', {}, 'not_allowed'],
  ];
  it.each(cases)('%s', async (_title, policy, who, plan, expected) => {
    directory.groups.set('SGRP', ['UGGG']);
    const requests = service(policy);
    const { id } = await pendingRequest(requests, plan.pids ?? own, { drop: plan.drop === true });
    const outcome = requests.decide(click(id, who), directory);
    if (expected === 'approved') {
      const record = await outcome;
      expect(['approved', 'pending']).toContain(record.state);
      expect(record.votes).toHaveLength(1);
    } else {
      const error = await refusal(outcome);
      expect(error.code).toBe(expected);
      expect((await store.get(id))?.state).toBe('pending');
      expect((await store.events({ request: id, limit: 10 })).at(-1)).toMatchObject({ what: 'refused', who });
    }
  });

  it.each(['guest', 'stranger', 'deactivated', 'bot'] as const)('a %s may not, even when listed', async (standing) => {
    directory.standings.set('UAAA', standing);
    const requests = service();
    const { id } = await pendingRequest(requests);
    expect((await refusal(requests.decide(click(id, 'UAAA'), directory))).code).toBe('not_allowed');
  });

  it('refuses the requester before anybody is looked up', async () => {
    directory.down = true;
    const requests = service({ approvers: ['UANN'] });
    const { id } = await pendingRequest(requests);
    expect((await refusal(requests.decide(click(id, 'UANN'), directory))).code).toBe('not_allowed');
    expect(directory.asked).toEqual([]);
  });

  it('takes a directory that does not answer as a no', async () => {
    directory.down = true;
    const requests = service();
    const { id } = await pendingRequest(requests);
    expect((await refusal(requests.decide(click(id, 'UAAA'), directory))).code).toBe('lookup_failed');
  });

  it('says with the word approver that nobody is configured, also on the card', async () => {
    const requests = service({ approvers: [] });
    const record = await pendingRequest(requests);
    expect(record).toMatchObject({ state: 'pending' });
    expect(record.reason).toContain('approver');
    expect((await refusal(requests.decide(click(record.id, 'UAAA'), directory))).userText).toContain('approver');
  });
});

describe('how many must agree', () => {
  it('counts distinct people, and one person once', async () => {
    const requests = service();
    const { id, required } = await pendingRequest(requests, foreign);
    expect(required).toBe(2);
    const first = await requests.decide(click(id, 'UAAA'), directory);
    expect(first).toMatchObject({ state: 'pending', reason: '1 of 2: approved by @UAAA.' });
    expect((await refusal(requests.decide(click(id, 'UAAA'), directory))).code).toBe('request_closed');
    const second = await requests.decide(click(id, 'UBBB'), directory);
    expect(second).toMatchObject({ state: 'approved', reason: 'Approved by @UAAA and @UBBB.' });
    expect(put).toContain(`run ${id}`);
  });

  it('asks for as many people as the strictest step', async () => {
    const requests = service({ required: { drop_caches: 3 } });
    const record = await pendingRequest(requests, own, { drop: true, files: true });
    expect(record.required).toBe(3);
    expect(record.requiredWhy).toContain('3 people');
  });

  it('drops the approval of somebody who is no approver any more', async () => {
    const { id } = await pendingRequest(service(), foreign);
    await service().decide(click(id, 'UAAA'), directory);
    const later = service({ approvers: ['UBBB', 'UCCC'] }, 'p2');
    const record = await later.decide(click(id, 'UBBB'), directory);
    expect(record).toMatchObject({ state: 'pending' });
    expect(record.votes.map((v) => v.person)).toEqual(['UBBB']);
    expect(record.reason).toContain('@UAAA fell');
  });
});

describe('what is approved', () => {
  it('refuses a click on a plan that has changed since', async () => {
    const requests = service();
    const before = await pendingRequest(requests, foreign);
    const digest = before.digest!;
    await requests.decide(click(before.id, 'UAAA', { digest }), directory);
    const after = await requests.decide(click(before.id, 'UBBB', { digest, without: ['200:2000'] }), directory);
    expect(after.digest).not.toBe(digest);
    expect(after).toMatchObject({ state: 'approved', required: 1 });
    expect(after.reason).toContain('@UAAA fell');
    expect(after.kept).toEqual([{ target: '200:2000', by: 'UBBB', why: 'unticked' }]);
    expect(after.plan?.steps[0]?.targets).toEqual([{ pid: 100, startTime: 1000 }]);
  });

  it('says request_changed to whoever saw the older plan', async () => {
    const requests = service({ required: { kill: 2 } });
    const before = await pendingRequest(requests, own, { drop: true });
    await requests.decide(click(before.id, 'UAAA', { without: [`step:${before.plan!.steps[1]!.id}`] }), directory);
    const error = await refusal(requests.decide(click(before.id, 'UBBB', { digest: before.digest }), directory));
    expect(error.code).toBe('request_changed');
  });

  it('does not take an approval of nothing', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    expect((await refusal(requests.decide(click(id, 'UAAA', { without: ['100:1000'] }), directory))).code).toBe(
      'usage',
    );
  });

  it('blocks a box that does not tell its boot id', async () => {
    expect(await pendingRequest(service(), own, { bootId: '' })).toMatchObject({ state: 'blocked' });
  });

  it('ends at once when there is nothing to approve', async () => {
    const record = await pendingRequest(service(), []);
    expect(record).toMatchObject({ state: 'succeeded', plan: null });
  });
});

describe('owners', () => {
  it('take their processes out, and are remembered for the life of the process', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests, foreign);
    await requests.decide(click(id, 'UAAA'), directory);
    const kept = await requests.keep(id, person('UBOB'), ['200:2000', '100:1000'], 'slack');
    expect(killed(kept)).toEqual([{ pid: 100, startTime: 1000 }]);
    expect(kept.votes).toEqual([]);
    expect(kept.reason).toContain('@UAAA fell');
    await requests.cancel(id, person('UANN'), 'slack');
    const again = await pendingRequest(requests, foreign);
    expect(again.kept).toEqual([{ target: '200:2000', by: 'UBOB', why: 'mine, keep it' }]);
    expect(killed(again)).toEqual([{ pid: 100, startTime: 1000 }]);
  });

  it('keep nothing that is not theirs', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests, foreign);
    expect((await refusal(requests.keep(id, person('UBOB'), ['100:1000'], 'slack'))).code).toBe('not_allowed');
    expect(await store.kept(host, 'boot-1')).toEqual([]);
  });

  it('end the request when nothing else is in it', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    expect(await requests.keep(id, person('UANN'), ['100:1000'], 'slack')).toMatchObject({ state: 'cancelled' });
  });
});

describe('the end of a request', () => {
  it('is denied by an approver, whose reason stays in the vote', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    const deny = { ...click(id, 'UAAA'), verdict: 'deny' as const, reason: 'my <!channel> job' };
    const record = await requests.decide(deny, directory);
    expect(record).toMatchObject({ state: 'denied', reason: 'Denied by @UAAA. Nothing was done.' });
    expect(record.votes[0]).toMatchObject({ verdict: 'deny', reason: 'my <!channel> job' });
    expect((await refusal(requests.decide(click(id, 'UBBB'), directory))).userText).toContain('denied by @UAAA');
  });

  it('is cancelled by the requester alone', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    expect((await refusal(requests.cancel(id, person('UAAA'), 'slack'))).code).toBe('not_allowed');
    expect(await requests.cancel(id, person('UANN'), 'slack')).toMatchObject({ state: 'cancelled' });
  });

  it('comes by itself when nobody decides, counted from the report; the late click is told so', async () => {
    const requests = service();
    const { record } = await requests.ask({ host, requester: person('UANN'), surface: 'slack', channel: 'C1' });
    clock.ms += 5 * 60_000;
    await requests.looked(record.id, { thought: thoughtOf(own, { host }), hostKey: 'k' });
    clock.ms += 14 * 60_000;
    await requests.sweep();
    expect((await store.get(record.id))?.state).toBe('pending');
    clock.ms += 60_000;
    expect((await refusal(requests.decide(click(record.id, 'UAAA'), directory))).code).toBe('expired');
    expect((await store.get(record.id))?.state).toBe('expired');
  });

  it('comes when an approval was not used in time', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    await requests.decide(click(id, 'UAAA'), directory);
    clock.ms += 2 * 60_000;
    expect(await requests.claim(id, 'w1')).toBeNull();
    expect((await store.get(id))?.state).toBe('expired');
  });

  it('supersedes an approval when the policy changed before it ran', async () => {
    const { id } = await pendingRequest(service());
    await service().decide(click(id, 'UAAA'), directory);
    expect(await service({ self_approval: 'always' }, 'p2').claim(id, 'w1')).toBeNull();
    expect((await store.get(id))?.state).toBe('superseded');
  });

  it('tells the loser who was first', async () => {
    const requests = service();
    const { id } = await pendingRequest(requests);
    await requests.decide(click(id, 'UAAA'), directory);
    const error = await refusal(requests.decide(click(id, 'UBBB'), directory));
    expect(error.userText).toBe('Already approved by @UAAA; it is about to run.');
  });
});

describe('a run', () => {
  async function running(on: RequestService) {
    const { id } = await pendingRequest(on);
    await on.decide(click(id, 'UAAA'), directory);
    const claimed = await on.claim(id, 'w1');
    return { id, run: claimed!.run!.id };
  }

  it('is claimed once and ends with its report, however often the end is told', async () => {
    const requests = service();
    const { id, run } = await running(requests);
    expect(await requests.claim(id, 'w2')).toBeNull();
    expect(await requests.progress(id, 'another run', 'x', null)).toBe(false);
    expect(await requests.progress(id, run, 'waiting', null)).toBe(true);
    const done = await requests.finish(id, run, reportOf(id, run));
    expect(done).toMatchObject({ state: 'succeeded', run: { id: run } });
    expect(await requests.finish(id, run, reportOf(id, run))).toEqual(done);
    expect(await requests.progress(id, run, 'late', null)).toBe(false);
  });

  it('ends as unknown when its worker is gone, and the box is looked at anew in the same thread', async () => {
    const requests = service();
    const { id, run } = await running(requests);
    clock.ms += 14_000;
    expect(await requests.progress(id, run, null, null)).toBe(true);
    clock.ms += 14_000;
    await requests.sweep();
    expect((await store.get(id))?.state).toBe('running');
    clock.ms += 1_000;
    await requests.sweep();
    expect(await store.get(id)).toMatchObject({ state: 'unknown', errorCode: 'outcome_unknown' });
    expect(await requests.progress(id, run, null, null)).toBe(false);
    const anew = await store.openFor(host);
    expect(anew).toMatchObject({ state: 'draft', surface: 'system', requester: { id: 'UANN' } });
    expect(put.filter((p) => p.startsWith('run'))).toEqual([`run ${id}`]);
    const late = await requests.finish(id, run, reportOf(id, run));
    expect(late).toMatchObject({ state: 'unknown', run: { report: { outcome: 'succeeded' } } });
  });
});

describe('asking', () => {
  it('links to the open request of the host', async () => {
    const requests = service();
    const first = await requests.ask({ host, requester: person('UANN'), surface: 'slack', channel: 'C1' });
    const second = await requests.ask({ host, requester: person('UBOB'), surface: 'slack', channel: 'C2' });
    expect(second).toEqual({ record: first.record, existing: true });
    expect(put).toEqual([`look ${first.record.id}`]);
  });

  it('does not lose what the queue did not take', async () => {
    queueIsDown = true;
    const requests = service();
    const { record } = await requests.ask({ host, requester: person('UANN'), surface: 'slack', channel: 'C1' });
    await requests.sweep();
    queueIsDown = false;
    clock.ms += 5_000;
    await requests.sweep();
    expect(put).toEqual([`look ${record.id}`]);
    queueIsDown = true;
    await requests.looked(record.id, { thought: thoughtOf(own, { host }), hostKey: 'k' });
    await requests.decide(click(record.id, 'UAAA'), directory);
    queueIsDown = false;
    clock.ms += 5_000;
    await requests.sweep();
    expect(put).toEqual([`look ${record.id}`, `run ${record.id}`]);
  });

  it('gives up a look nobody makes', async () => {
    const requests = service();
    const { record } = await requests.ask({ host, requester: person('UANN'), surface: 'slack', channel: 'C1' });
    clock.ms += 10 * 60_000;
    await requests.sweep();
    expect((await store.get(record.id))?.state).toBe('failed');
  });
});

describe('break-glass', () => {
  const glass = { breakGlass: true, reason: 'the box is on fire' };
  it('is refused while it is switched off, without a reason, and to those who are no approvers', async () => {
    const { id } = await pendingRequest(service(), foreign);
    expect((await refusal(service().decide(click(id, 'UAAA', glass), directory))).code).toBe('not_allowed');
    const on = service({ break_glass: true });
    expect((await refusal(on.decide(click(id, 'UAAA', { breakGlass: true, reason: ' ' }), directory))).code).toBe(
      'usage',
    );
    expect((await refusal(on.decide(click(id, 'UZZZ', glass), directory))).code).toBe('not_allowed');
  });

  it('lets one approver stand for all, flagged in vote and audit', async () => {
    const on = service({ break_glass: true, approvers: ['UANN'] });
    const { id } = await pendingRequest(on, foreign);
    const record = await on.decide(click(id, 'UANN', glass), directory);
    expect(record).toMatchObject({ state: 'approved', votes: [{ breakGlass: true, reason: 'the box is on fire' }] });
    expect((await store.events({ request: id, limit: 10 })).at(-1)).toMatchObject({ what: 'break_glass' });
    expect(await on.claim(id, 'w')).toMatchObject({ state: 'running' });
  });
});
