/** A request that ran to its start, with its audit events: what receipts and backups are made of. */
import { claim } from '../src/requests/runs.ts';
import type { Move, Refused } from '../src/requests/state.ts';
import { approve, looked } from '../src/requests/votes.ts';
import { draftOf, policyOf, thoughtOf } from '../test/requests/fixtures.ts';

function done(step: Move | Refused): Move {
  if (!step.ok) throw new Error(step.text);
  return step;
}

export function finishedRun(): { readonly record: Move['record']; readonly events: Move['events'] } {
  const now = { policy: policyOf({}), policyVersion: 'p1' };
  const nowMs = Date.parse('2026-01-01T00:01:00.000Z');
  const thought = thoughtOf([{ pid: 100, user: 'ann' }]);
  const first = draftOf({});
  const found = { ...thought, hostKey: 'SHA256:k', plan: thought.diagnosis.plan, kept: [] };
  const second = done(looked(first.record, found, now, { who: 'system', surface: 'system', nowMs }));
  const without = { digest: undefined, unticked: [], reason: undefined, breakGlass: false, noLonger: [] };
  const vote = { ...without, plan: second.record.plan };
  const third = done(approve(second.record, vote, now, { who: 'UAAA', surface: 'slack', nowMs }));
  const fourth = done(claim(third.record, 'run1', now, { who: 'w1', surface: 'system', nowMs }));
  return { record: fourth.record, events: [first, second, third, fourth].flatMap((m) => m.events) };
}
