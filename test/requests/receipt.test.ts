import { describe, expect, it } from 'vitest';
import { chainEvents, emptyChain } from '../../src/requests/chain.ts';
import { receiptOf, verifyReceipt } from '../../src/requests/receipt.ts';
import { claim } from '../../src/requests/runs.ts';
import type { Move, Refused } from '../../src/requests/state.ts';
import { approve, looked } from '../../src/requests/votes.ts';
import { draftOf, policyOf, thoughtOf } from './fixtures.ts';

const now = { policy: policyOf({}), policyVersion: 'p1' };
const nowMs = Date.parse('2026-01-01T00:01:00.000Z');

function done(step: Move | Refused): Move {
  if (!step.ok) throw new Error(step.text);
  return step;
}

function receiptText(): string {
  const thought = thoughtOf([{ pid: 100, user: 'ann' }]);
  const first = draftOf({});
  const found = { ...thought, hostKey: 'SHA256:k', plan: thought.diagnosis.plan, kept: [] };
  const second = done(looked(first.record, found, now, { who: 'system', surface: 'system', nowMs }));
  const vote = {
    digest: undefined,
    plan: second.record.plan,
    unticked: [],
    reason: undefined,
    breakGlass: false,
    noLonger: [],
  };
  const third = done(approve(second.record, vote, now, { who: 'UAAA', surface: 'slack', nowMs }));
  const fourth = done(claim(third.record, 'run1', now, { who: 'w1', surface: 'system', nowMs }));
  const events = [first, second, third, fourth].flatMap((m) => m.events);
  return JSON.stringify(receiptOf(fourth.record, chainEvents(emptyChain, events)), null, 2);
}

describe('a receipt', () => {
  it('is whole as it was written, however it is laid out', () => {
    expect(verifyReceipt(receiptText()).problems).toEqual([]);
    expect(verifyReceipt(JSON.stringify(JSON.parse(receiptText()))).problems).toEqual([]);
  });

  it.each([
    ['another target', '"pid": 100', '"pid": 101', 'digest'],
    ['another approver', '"person": "UAAA"', '"person": "UBBB"', 'SHA-256'],
    ['another boot', '"bootId": "boot-1"', '"bootId": "boot-2"', 'digest'],
    ['fewer people asked for', '"required": 1', '"required": 0', 'SHA-256'],
    ['more people asked for', '"required": 1', '"required": 2', '2 people had to approve'],
    ['an event rewritten', '"who": "UAAA"', '"who": "UBBB"', 'was changed'],
  ])('shows %s', (_title, from, to, problem) => {
    const text = receiptText();
    expect(text).toContain(from);
    expect(verifyReceipt(text.replaceAll(from, to)).problems.join(' ')).toContain(problem);
  });

  it.each(['', 'null', '{}', '[]', '{"receipt":2}', 'PK\u0003\u0004'])('says of %j that it is no receipt', (text) => {
    const { receipt, problems } = verifyReceipt(text);
    expect(receipt).toBeNull();
    expect(problems).toHaveLength(1);
  });
});
