/** Gateways, workers, boxes and people around one store, and everything that must hold whatever they do. */
import { pino } from 'pino';
import { vi } from 'vitest';
import { lookJob } from '../../../jobs/look.ts';
import { runJob } from '../../../jobs/run.ts';
import type { Box } from '../../../src/box.ts';
import type { Config, Policy } from '../../../src/config/schema.ts';
import type { Deps } from '../../../src/deps.ts';
import { ReclaimError } from '../../../src/errors.ts';
import type { Capture } from '../../../src/memory/contract.ts';
import { chainProblems } from '../../../src/requests/chain.ts';
import { requestService } from '../../../src/requests/service-impl.ts';
import type { RequestService } from '../../../src/requests/service.ts';
import { isOpen } from '../../../src/requests/state.ts';
import type { RequestRecord } from '../../../src/requests/types.ts';
import { renderCard } from '../../../src/slack/blocks/card.ts';
import { stateWords } from '../../../src/slack/blocks/words.ts';
import { makeBox, type ProcSpec } from '../../memory/box.ts';
import { depsWith } from '../../queue/deps.ts';
import { policyOf, TestClock, TestDirectory } from '../fixtures.ts';
import { type Fault, Life, MemoryDb } from './memory-db.ts';
import { effectsOf, mayApprove, neededFor } from './rules.ts';

export type Mutant = Fault | 'open_door' | 'one_is_enough';

const people = { ana: 'UANN', bo: 'UBOB' };
export const policies: readonly Policy[] = [
  { approvers: ['UAAA', 'UBBB', 'UCCC', 'UGST'] },
  { approvers: ['UAAA', 'SGRP', 'UANN'], self_approval: 'own_processes' },
  { approvers: ['UANN', 'UBBB', 'UGST'], self_approval: 'always', break_glass: true, required: { kill_others: 3 } },
  { approvers: [] },
  { approvers: ['UANN', 'UBBB', 'UCCC'], self_approval: 'never', required: { kill: 2 } },
].map((given) => policyOf({ people, ...given }));

/** What a person clicked on, as it was shown to them. */
interface Approval {
  readonly request: string;
  readonly person: string;
  readonly effects: string;
  readonly glass: boolean;
  /** By the rules and the directory of that moment: who could approve this plan, and how many had to. */
  readonly able: ReadonlySet<string>;
  readonly needed: number;
}

interface Working {
  readonly host: string;
  readonly life: Life;
  readonly goOn: () => void;
  readonly done: Promise<unknown>;
}

const everybody = ['UANN', 'UBOB', 'UAAA', 'UBBB', 'UCCC', 'UGGG', 'UGST', 'UZZZ'] as const;
const captures = new Map<string, Capture>();

export class World {
  readonly clock = new TestClock();
  readonly directory = new TestDirectory();
  readonly db: MemoryDb;
  readonly queue: { what: 'look' | 'run'; id: string }[] = [];
  readonly cards = new Map<string, RequestRecord>();
  readonly working = new Map<string, Working>();
  readonly kills: { request: string; target: string }[] = [];
  readonly violations: string[] = [];
  readonly refusals: string[] = [];
  policy = 0;
  readonly #approvals: Approval[] = [];
  readonly #finished = new Set<string>();
  readonly #mutant: Mutant | undefined;
  readonly #alive = new Map<string, ProcSpec[]>();
  #pids = 7000;
  #lives = 0;

  constructor(mutant?: Mutant) {
    this.#mutant = mutant;
    const inStore = mutant === 'blind_writes' || mutant === 'mute' || mutant === 'forgetful' ? mutant : undefined;
    this.db = new MemoryDb(this.clock, inStore);
    this.directory.groups.set('SGRP', ['UGGG', 'UBBB']);
    this.directory.standings.set('UGST', 'guest');
    this.leave('box-a', [1001]);
    this.leave('box-b', [1001, 1002]);
  }

  /** A dead build for each of these users. */
  leave(host: string, uids: readonly number[]): void {
    const made = uids.flatMap((uid): ProcSpec[] => {
      const first = (this.#pids += 10);
      const cwd = `/tmp/pip-install-x${uid}/flash-attn (deleted)`;
      const common = { cwd, session: first, uid, secondsOld: 7200 };
      const cicc = '/usr/local/cuda/nvvm/bin/cicc';
      const argv = [cicc, '--orig_src_file_name', 'flash_bwd_hdim128_bf16_sm90.cu'];
      return [
        {
          ...common,
          pid: first + 1,
          ppid: 1,
          comm: 'ninja',
          argv: ['ninja', '-v'],
          exe: '/usr/bin/ninja',
          anonKiB: 20_480,
        },
        { ...common, pid: first + 2, ppid: first + 1, comm: 'cicc', argv, exe: cicc, anonKiB: 921_600 },
      ];
    });
    this.#alive.set(host, [...(this.#alive.get(host) ?? []).slice(-4), ...made]);
  }

  #capture(host: string): Capture {
    const processes = this.#alive.get(host) ?? [];
    const key = processes.map((p) => p.pid).join();
    const known = captures.get(key) ?? makeBox({ processes });
    captures.set(key, known);
    return known;
  }

  /** A process that starts now, with the policy as it is now. */
  start(fuse?: number): { life: Life; requests: RequestService; deps: Deps } {
    const life = new Life(fuse);
    const store = life.on(this.db);
    const policy = policies[this.policy]!;
    const lax = { ...policy, required: { kill: 1, kill_others: 1, drop_caches: 1, remove_files: 1 } };
    const put = (what: 'look' | 'run') => (id: string) =>
      life.does('enqueue', () => {
        if (!this.queue.some((job) => job.what === what && job.id === id)) this.queue.push({ what, id });
        return Promise.resolve();
      });
    const log = pino({ level: 'silent' });
    const requests = requestService({
      store,
      clock: this.clock,
      log,
      policy: { policy: this.#mutant === 'one_is_enough' ? lax : policy, policyVersion: `p${this.policy}` },
      enqueue: { look: put('look'), run: put('run') },
    });
    const openBox = (host: string) => Promise.resolve(this.#box(host, life));
    const config = { policy } as Config;
    const instance = `process-${(this.#lives += 1)}`;
    return { life, requests, deps: depsWith({ store, clock: this.clock, log, requests, openBox, config, instance }) };
  }

  #box(host: string, life: Life, run = ''): Box {
    const nothing = () => Promise.resolve([]);
    return {
      host,
      hostKey: `SHA256:${host}`,
      forRun: (id) => this.#box(host, life, id),
      journal: () => Promise.resolve({ state: 'ended', lines: [] }),
      collect: () => life.does('collect', () => Promise.resolve({ ...this.#capture(host), host })),
      kill: async (order) => {
        await this.#killing(
          host,
          life,
          run,
          order.targets.map((t) => `${t.pid}:${t.startTime}`),
        );
        const pids = new Set(order.targets.map((t) => t.pid));
        this.#alive.set(
          host,
          (this.#alive.get(host) ?? []).filter((p) => !pids.has(p.pid)),
        );
        return order.targets.map(({ pid, startTime }) => ({ pid, startTime, result: 'exited' as const }));
      },
      removeFiles: nothing,
      ipcrm: nothing,
      sync: () => Promise.resolve({ state: 'done' }),
      dropCaches: () => Promise.resolve({ state: 'done' }),
      close: () => Promise.resolve(),
    };
  }

  /** The one effect: everything an approval promises is checked here, then it waits until somebody lets it go on. */
  async #killing(host: string, life: Life, run: string, targets: readonly string[]): Promise<void> {
    const record = [...this.db.records.values()].find((r) => r.run?.id === run);
    if (record === undefined) {
      this.violations.push(`a kill on ${host} by run ${run} that no request knows`);
      return;
    }
    this.#checkKill(record, targets);
    this.kills.push(...targets.map((target) => ({ request: record.id, target })));
    const wishes = await this.db.kept(host, record.bootId ?? '');
    for (const { target, by } of wishes) {
      if (targets.includes(target)) this.violations.push(`${target} is ended although ${by} keeps it`);
    }
    let goOn = (): void => undefined;
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    this.#parked?.({ host, life, goOn, id: record.id });
    await gate;
  }
  #parked: ((at: { host: string; life: Life; goOn: () => void; id: string }) => void) | undefined;

  #checkKill(record: RequestRecord, targets: readonly string[]): void {
    const wrong = (what: string) => this.violations.push(`${what} (request ${record.id}, ${record.reason})`);
    if (record.state !== 'running') wrong(`a kill while the request is ${record.state}`);
    const ordered = this.kills.filter((k) => k.request === record.id).map((k) => k.target);
    if (targets.some((key) => ordered.includes(key))) wrong('a second kill of one process in one request');
    for (const other of this.working.values()) {
      if (other.host === record.host && !other.life.dead) wrong('two runs on one host');
    }
    const effects = effectsOf(record.plan);
    for (const key of targets) if (!effects.includes(key)) wrong(`${key} was not in the plan`);
    const votes = this.#approvals.filter((a) => a.request === record.id && a.effects === effects);
    const enough = votes.some((last, n) => {
      const before = new Set(votes.slice(0, n + 1).map((a) => a.person));
      const counting = [...before].filter((person) => last.able.has(person)).length;
      return counting >= last.needed || (last.glass && last.able.has(last.person));
    });
    if (!enough) wrong(`a kill without enough people: ${votes.map((v) => v.person).join()} for ${effects}`);
  }

  /** Notes an approval before it is tried: a process that dies may have written it down or not. */
  noteApproval(person: string, shown: RequestRecord, without: readonly string[], glass: boolean): void {
    const effects = effectsOf(shown.plan, without);
    const policy = policies[this.policy]!;
    const facts = { record: shown, policy, effects, directory: this.directory };
    const able = new Set<string>(everybody.filter((id) => mayApprove(id, facts, glass && id === person)));
    this.#approvals.push({
      request: shown.id,
      person,
      effects,
      glass: glass && policy.break_glass,
      able,
      needed: neededFor(shown, policy, effects),
    });
  }

  directoryOf(): TestDirectory {
    if (this.#mutant !== 'open_door') return this.directory;
    const open = new TestDirectory();
    open.groups.set('SGRP', [...everybody]);
    return open;
  }

  /** Does it in a process of its own. A refusal must have a sentence, a code, and a line in the log. */
  async tries(who: string, fuse: number | undefined, work: (on: RequestService) => Promise<unknown>): Promise<void> {
    const { life, requests } = this.start(fuse);
    const logged = () => this.db.log.filter((e) => e.who === who).length;
    const before = logged();
    const thrown: unknown = await Promise.race([
      life.died,
      work(requests).then(
        () => undefined,
        (error: unknown) => error,
      ),
    ]);
    if (thrown === undefined || thrown === 'died') return;
    if (!(thrown instanceof ReclaimError) || thrown.code === 'internal' || !/\w.*\.$/s.test(thrown.userText)) {
      this.violations.push(`a refusal without a reason: ${thrown instanceof Error ? thrown.message : 'no error'}`);
    } else if (logged() <= before && thrown.code !== 'request_unknown') {
      this.violations.push(`a refusal that left no trace: ${thrown.userText}`);
    } else this.refusals.push(thrown.code);
  }

  /** Takes a job off the queue and works it until it ends, dies, or stands in the middle of a kill. */
  async work(n: number, { twice = false, fuse }: { twice?: boolean; fuse?: number | undefined } = {}): Promise<void> {
    const [job] = this.queue.splice(n % Math.max(1, this.queue.length), 1);
    if (job === undefined) return;
    const ends: Promise<unknown>[] = [];
    const parked = this.#nextPark(() => Promise.all(ends));
    const signal = new AbortController().signal;
    const workers = Array.from({ length: twice ? 2 : 1 }, () => this.start(fuse));
    for (const { life, deps } of workers) {
      const payload = { requestId: job.id };
      const ended = job.what === 'look' ? lookJob.handle(payload, deps, signal) : runJob.handle(payload, deps, signal);
      ends.push(Promise.race([life.died, ended.catch(() => undefined)]));
    }
    await Promise.race([parked, Promise.all(ends)]);
    // A second worker that was late is given the time to find out.
    await new Promise((resolve) => setImmediate(resolve));
    if (workers.some((w) => w.life.dead) && job.what === 'look') this.queue.push(job);
  }

  async release(n: number, dies: boolean): Promise<void> {
    const [id, run] = [...this.working.entries()][n % Math.max(1, this.working.size)] ?? [];
    if (id === undefined || run === undefined) return;
    this.working.delete(id);
    if (dies) {
      run.life.die();
      return;
    }
    this.#finished.add(id);
    // A plan may end the processes of several builds, one step after the other.
    const parked = this.#nextPark(() => run.done);
    run.goOn();
    await Promise.race([parked, run.done]);
  }

  #nextPark(done: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      this.#parked = (at) => {
        this.working.set(at.id, { ...at, done: done() });
        resolve();
      };
    });
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 5_000) {
      this.clock.ms += Math.min(5_000, left);
      if (this.working.size === 0) {
        this.clock.ms += Math.max(0, left - 5_000);
        return;
      }
      await vi.advanceTimersByTimeAsync(5_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  deliver(): void {
    for (const { id, view } of this.db.due.values()) if (view === 'card') this.cards.set(id, this.db.records.get(id)!);
    this.db.due.clear();
  }

  /** Everything up again, no more clicks: every request comes to its end, and then all that was said must be true. */
  async settle(): Promise<void> {
    while (this.working.size > 0) await this.release(0, false);
    for (let n = 0; n < 40 && [...this.db.records.values()].some((r) => isOpen(r.state)); n += 1) {
      await this.pass(n % 10 === 9 ? 16 * 60_000 : 5_000);
      await this.start().requests.sweep();
      while (this.queue.length > 0) await this.work(0);
      while (this.working.size > 0) await this.release(0, false);
    }
    this.deliver();
    for (const record of this.db.records.values()) this.#checkEnd(record);
    this.violations.push(...chainProblems(this.db.log));
  }

  #checkEnd(record: RequestRecord): void {
    const wrong = (what: string) => this.violations.push(`${record.id} ${record.state}: ${what}`);
    const kills = this.kills.filter((k) => k.request === record.id).length;
    if (isOpen(record.state)) wrong('it never ends');
    if (['denied', 'expired', 'cancelled', 'superseded', 'blocked'].includes(record.state) && kills > 0) {
      wrong('it says that nothing was done');
    }
    const killing = record.plan?.steps.some((step) => step.action === 'kill') === true;
    const claims = killing && record.run?.report?.outcome === 'succeeded';
    if (claims && !this.#finished.has(record.id)) wrong('it claims success');
    const told = this.db.log.filter((e) => e.request === record.id).map((e) => e.what);
    for (const once of [['approved', 'break_glass'], ['run_started'], ['run_finished'], ['denied'], ['cancelled']]) {
      if (told.filter((what) => once.includes(what)).length > 1) wrong(`the log tells ${once[0]} twice`);
    }
    if (record.channel === undefined) return;
    const shown = this.cards.get(record.id);
    if (shown === undefined) {
      wrong('it has no card');
      return;
    }
    const context = { now: this.clock.now(), approvers: ['UAAA'], breakGlass: true, planFilePosted: true };
    const card = renderCard(shown, context);
    const text = JSON.stringify(card.blocks);
    if (!text.includes(stateWords(record))) wrong(`its card says ${shown.state}`);
    if (text.includes('"type":"button"')) wrong('its card still has a button');
  }
}
