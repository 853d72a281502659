/**
 * The request service: reads a record, asks the pure rules, writes by compare-and-swap, and tries again when somebody
 * else was first. What was refused is recorded too; then the person is told why, in one sentence.
 */
import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import type { Plan } from '../memory/contract.ts';
import { planWithout } from '../memory/plan.ts';
import type { Directory } from './directory.ts';
import { lookUp, mayDecide } from './people.ts';
import { abandon, claim, finish, progress } from './runs.ts';
import type { Asked, Decision, RequestService } from './service.ts';
import { whyClosed } from './sentences.ts';
import {
  type Act,
  auditEvent,
  cancel,
  draft,
  forcedByClock,
  handOver,
  isOpen,
  isoTime,
  type Move,
  type Refused,
  worksItself,
} from './state.ts';
import type { Store } from './store.ts';
import { sweepOnce } from './sweep.ts';
import type { Person, RequestRecord, Surface } from './types.ts';
import { approve, deny, type Found, keep, looked, lookFailed, openPlan, ownTargets, type PolicyNow } from './votes.ts';

export interface RequestServiceOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly policy: PolicyNow;
  /**
   * Puts the jobs up. They may reject with `queue_down`: the request stands, and the sweep puts them up again. A
   * request asked in a terminal is worked by that terminal, so nothing is put up for it.
   */
  readonly enqueue: {
    look(requestId: string): Promise<void>;
    run(requestId: string): Promise<void>;
  };
}

type Attempt = (record: RequestRecord) => Move | Refused | Promise<Move | Refused>;

/** Losing the race this often in a row means something is wrong, not busy. */
const attemptsAtMost = 60;

export const newId = (prefix: string): string => `${prefix}${randomBytes(6).toString('hex')}`;

function planLess(
  plan: Plan,
  from: Partial<Pick<RequestRecord, 'diagnosis' | 'identities' | 'bootId'>>,
  without: readonly string[],
): Plan | null {
  return planWithout(plan, without, from.identities ?? {}, from.bootId ?? '', from.diagnosis?.findings);
}

class Requests implements RequestService {
  readonly #o: RequestServiceOptions;

  constructor(options: RequestServiceOptions) {
    this.#o = options;
  }

  #act(who: string, surface: Surface): Act {
    return { who, surface, nowMs: this.#o.clock.now() };
  }

  async #put(what: 'look' | 'run', record: RequestRecord): Promise<void> {
    if (worksItself(record)) return;
    try {
      await this.#o.enqueue[what](record.id);
    } catch (error) {
      this.#o.log.warn({ err: error, request: record.id, job: what }, 'could not put up the job; the sweep will');
    }
  }

  async #refused(record: RequestRecord, act: Act, refusal: Refused, raced: boolean): Promise<never> {
    const what = raced ? 'race_lost' : refusal.code === 'expired' ? 'expired_click' : 'refused';
    await this.#o.store.appendEvents([auditEvent(record, act, what, refusal.text)]);
    throw new ReclaimError(refusal.code, refusal.text);
  }

  /** One change: read, let the clock have its say, decide, compare-and-swap; again when somebody else was first. */
  async #change(id: string, who: { id: string; surface: Surface }, attempt: Attempt): Promise<RequestRecord> {
    let raced = false;
    for (let n = 0; n < attemptsAtMost; n += 1) {
      const record = await this.#current(id);
      const act = this.#act(who.id, who.surface);
      const forced = forcedByClock(record, act.nowMs);
      const next = forced ?? (await attempt(record));
      if (!next.ok) return await this.#refused(record, act, next, raced);
      const written = await this.#o.store.update(next);
      if (!written.ok) raced = true;
      else if (forced === null) return written.record;
    }
    throw new ReclaimError(
      'request_changed',
      'Too many people changed this at the same moment. Nothing was done. Try again.',
    );
  }

  async #current(id: string): Promise<RequestRecord> {
    const record = await this.#o.store.get(id);
    if (record === null) {
      throw new ReclaimError('request_unknown', 'There is no such request (any more). Nothing was done.');
    }
    return record;
  }

  async ask(asked: Asked): Promise<{ readonly record: RequestRecord; readonly existing: boolean }> {
    const { policyVersion } = this.#o.policy;
    for (let n = 0; n < attemptsAtMost; n += 1) {
      const nowMs = this.#o.clock.now();
      const first = draft({ ...asked, id: newId('r'), policyVersion, nowMs });
      const made = await this.#o.store.create(first);
      if (made.ok) {
        await this.#put('look', made.record);
        return { record: made.record, existing: false };
      }
      if (made.current === null || made.why !== 'host_busy') continue;
      const forced = forcedByClock(made.current, nowMs);
      if (forced === null) {
        const act = this.#act(asked.requester.id, asked.surface);
        const why = `${asked.host} has this request open already.`;
        await this.#o.store.appendEvents([auditEvent(made.current, act, 'linked', why)]);
        return { record: made.current, existing: true };
      }
      await this.#o.store.update(forced);
    }
    throw new ReclaimError('request_changed', `Too many requests for ${asked.host} at the same moment. Try again.`);
  }

  async looked(id: string, { thought, hostKey }: Parameters<RequestService['looked']>[1]): Promise<RequestRecord> {
    const { diagnosis, identities, bootId } = thought;
    return await this.#change(id, { id: 'system', surface: 'system' }, async (record) => {
      const wishes = await this.#o.store.kept(record.host, bootId);
      const { plan } = diagnosis;
      const inPlan = new Set(
        plan?.steps.flatMap((s) => (s.action === 'kill' ? s.targets.map((t) => `${t.pid}:${t.startTime}`) : [])),
      );
      const kept = wishes.filter((w) => inPlan.has(w.target)).map((w) => ({ ...w, why: 'mine, keep it' }));
      const without = kept.map((k) => k.target);
      const left =
        plan === null || without.length === 0 ? plan : planLess(plan, { diagnosis, identities, bootId }, without);
      const found: Found = { diagnosis, identities, hostKey, bootId, plan: left, kept };
      return looked(record, found, this.#o.policy, this.#act('system', 'system'));
    });
  }

  async lookFailed(id: string, code: string, userText: string): Promise<RequestRecord> {
    return await this.#change(id, { id: 'system', surface: 'system' }, (record) =>
      lookFailed(record, code, userText, this.#act('system', 'system')),
    );
  }

  async decide(decision: Decision, directory: Directory): Promise<RequestRecord> {
    const { person, surface } = decision;
    const lookups = lookUp(this.#o.policy.policy, directory);
    const record = await this.#change(decision.id, { id: person.id, surface }, async (current) => {
      const open = openPlan(current);
      if ('ok' in open) return open;
      const without = decision.without ?? [];
      const plan = without.length === 0 ? open.plan : planLess(open.plan, current, without);
      const refusal = await mayDecide({
        record: current,
        decision,
        plan: plan ?? open.plan,
        policy: this.#o.policy.policy,
        lookups,
      });
      if (refusal !== null) return refusal;
      const act = this.#act(person.id, surface);
      if (decision.verdict === 'deny') return deny(current, decision.reason, act);
      const earlier = current.votes.map((v) => v.person).filter((id) => id !== person.id);
      const noLonger = await lookups.noLongerApprovers(earlier, {
        plan: plan ?? open.plan,
        diagnosis: open.diagnosis,
        requester: current.requester.id,
      });
      const vote = { digest: decision.digest, plan, unticked: without, reason: decision.reason, noLonger };
      return approve(current, { ...vote, breakGlass: decision.breakGlass === true }, this.#o.policy, act);
    });
    if (record.state === 'approved') await this.#put('run', record);
    return record;
  }

  async cancel(id: string, person: Person, surface: Surface): Promise<RequestRecord> {
    return await this.#change(id, { id: person.id, surface }, (record) =>
      cancel(record, this.#act(person.id, surface)),
    );
  }

  async handOver(id: string, person: Person, channel: string): Promise<RequestRecord> {
    return await this.#change(id, { id: person.id, surface: 'cli' }, (record) =>
      handOver(record, channel, this.#act(person.id, 'cli')),
    );
  }

  async keep(id: string, person: Person, targets: readonly string[], surface: Surface): Promise<RequestRecord> {
    return await this.#change(id, { id: person.id, surface }, async (record) => {
      const act = this.#act(person.id, surface);
      const own = ownTargets(record, this.#o.policy.policy, person.id, targets);
      if (own.length === 0) {
        return {
          ok: false,
          code: 'not_allowed',
          text: 'None of these processes is known to be yours. Nothing was changed.',
        };
      }
      for (const target of own) {
        const wish = { host: record.host, bootId: record.bootId ?? '', target, by: person.id, at: isoTime(act.nowMs) };
        await this.#o.store.keep(wish);
      }
      const open = openPlan(record);
      if ('ok' in open) return { ...open, text: `Your wish is remembered for the next look. ${open.text}` };
      const plan = planLess(open.plan, record, own);
      return keep(record, { targets: own, plan }, this.#o.policy, act);
    });
  }

  async claim(id: string, worker: string): Promise<RequestRecord | null> {
    const runId = newId('run');
    for (let n = 0; n < attemptsAtMost; n += 1) {
      const record = await this.#o.store.get(id);
      if (record === null) return null;
      const act = this.#act(worker, 'system');
      const next = forcedByClock(record, act.nowMs) ?? claim(record, runId, this.#o.policy, act);
      if (!next.ok) return null;
      const written = await this.#o.store.update(next);
      if (written.ok)
        return written.record.state === 'running' && written.record.run?.id === runId ? written.record : null;
    }
    return null;
  }

  async progress(...[id, runId, doing, report]: Parameters<RequestService['progress']>): Promise<boolean> {
    for (let n = 0; n < attemptsAtMost; n += 1) {
      const record = await this.#o.store.get(id);
      if (record === null) return false;
      const next = progress(record, runId, { doing, report }, this.#act(record.run?.worker ?? 'system', 'system'));
      if (!next.ok) return false;
      if ((await this.#o.store.update(next)).ok) return true;
    }
    return false;
  }

  async finish(...[id, runId, report]: Parameters<RequestService['finish']>): Promise<RequestRecord> {
    return await this.#end(id, runId, (record, act) => finish(record, runId, report, act));
  }

  async abandon(...[id, runId, to, code, why]: Parameters<RequestService['abandon']>): Promise<RequestRecord> {
    return await this.#end(id, runId, (record, act) => abandon(record, runId, { to, code, why }, act));
  }

  /** Ends are written by the run's worker alone and may be repeated after an answer was lost: then they change nothing. */
  async #end(
    id: string,
    runId: string,
    end: (record: RequestRecord, act: Act) => Move | Refused,
  ): Promise<RequestRecord> {
    for (let n = 0; n < attemptsAtMost; n += 1) {
      const record = await this.#current(id);
      const act = this.#act(record.run?.worker ?? 'system', 'system');
      const next = end(record, act);
      if (!next.ok && record.run?.id === runId && !isOpen(record.state)) return record;
      if (!next.ok)
        return await this.#refused(record, act, { ...next, text: `${next.text} ${whyClosed(record).text}` }, false);
      const written = await this.#o.store.update(next);
      if (written.ok) return written.record;
    }
    throw new ReclaimError('request_changed', 'The end of the run could not be written down. Look at the box again.');
  }

  async sweep(): Promise<void> {
    await sweepOnce({ ...this.#o, put: (what, record) => this.#put(what, record), ask: (asked) => this.ask(asked) });
  }
}

export function requestService(options: RequestServiceOptions): RequestService {
  return new Requests(options);
}
