/** A whole run over a real sshd whose connection is killed in the middle of its first step: the report is true all the same. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { act, type ActDeps, type Order } from '../../src/act.ts';
import type { Box } from '../../src/box.ts';
import { makeLeftovers } from '../../src/demo/leftovers.ts';
import { isAlive } from '../../src/demo/process-facts.ts';
import { look } from '../../src/look.ts';
import type { Plan, Step } from '../../src/memory/contract.ts';
import { defaultThinkOptions } from '../../src/memory/think.ts';
import { boxOver } from '../../src/ssh/host-program.ts';
import { systemClock } from '../../src/system-clock.ts';
import { createFixture } from './road-fixture.ts';
import { haveSshd, isRoot, sessionsOf, signalAll, startSshd } from './sshd.ts';

const fixture = createFixture();
afterAll(() => fixture.end());

const options = { ...defaultThinkOptions, minAgeSeconds: { process: 0, shm: 0, sysv: 300 } };
/** No number in its name: the pid of a living process there would tell that it is in use. */
const shmFile = `/dev/shm/reclaim-test-x${randomBytes(6).toString('hex')}`;

/** Of what the look proposes on this machine, only what this test made. */
function ours(plan: Plan | null, pids: ReadonlySet<number>): Plan {
  const { ino } = statSync(shmFile);
  const steps = (plan?.steps ?? []).flatMap((step): Step[] => {
    if (step.action === 'kill') {
      const targets = step.targets.filter((target) => pids.has(target.pid));
      return targets.length === 0 ? [] : [{ ...step, targets }];
    }
    if (step.action !== 'remove_files') return step.action === 'drop_caches' ? [step] : [];
    const targets = step.targets.filter((target) => target.ino === ino && target.path === shmFile);
    return targets.length === 0 ? [] : [{ ...step, targets }];
  });
  return { digest: plan?.digest ?? '', steps };
}

describe.skipIf(!haveSshd() || !isRoot)('a run whose connection is killed in its first step', () => {
  it('reads on the box what happened, goes on, signals nobody twice and reports it', { timeout: 120_000 }, async () => {
    const sshd = await startSshd({ authorized: [fixture.key.publicKey] });
    const host = fixture.host({
      ...{ port: sshd.port, user: 'root', privilege: 'root' },
      knownHosts: [fixture.knownHosts(sshd.knownHosts())],
    });
    let opened = 0;
    const open = async (): Promise<Box> => {
      opened += 1;
      return boxOver(await fixture.transport(host), { privilege: 'root', clock: systemClock });
    };
    const leftovers = await makeLeftovers({ totalMiB: 280, cacheMiB: 8 });
    try {
      writeFileSync(shmFile, Buffer.alloc(80 << 20));
      const box = await open();
      const { thought } = await look(box, options);
      const plan = ours(thought.diagnosis.plan, new Set(leftovers.processes.map(({ pid }) => pid)));
      expect(plan.steps.map((step) => step.action).slice(0, 2)).toEqual(['kill', 'remove_files']);
      const kill = plan.steps.flatMap((step) => (step.action === 'kill' ? [step] : []));
      const targets = kill.flatMap((step) => step.targets);
      // A stopped process takes no TERM, so the step goes on until its grace is over.
      const slow = targets.at(-1)!;
      let broken = false;
      const deps: ActDeps = {
        clock: systemClock,
        reopen: open,
        progress(report, doing) {
          if (doing?.startsWith('asking') === true) signalAll([slow.pid], 'SIGSTOP');
          const begun = report.steps[0]!.targets.some((target) => target.result !== undefined);
          if (begun && !broken) {
            broken = true;
            signalAll(sessionsOf(sshd), 'SIGKILL');
          }
          return Promise.resolve(true);
        },
      };
      const order: Order = {
        ...{ run: `act-lost-${process.pid}`, request: 'request', plan, identities: thought.identities },
        ...{ bootId: thought.bootId, hostKey: box.hostKey, options, graceMs: 2_000, dryRun: false },
      };
      const report = await act(box, order, deps);

      expect(opened).toBe(2);
      expect(report).toMatchObject({ outcome: 'succeeded' });
      expect(report.steps[0]).toMatchObject({
        ...{ action: 'kill', state: 'done', measured: expect.anything() as object },
        reason: expect.stringContaining('journal') as string,
      });
      const first = report.steps[0]!;
      const results = new Map(first.action === 'kill' ? first.targets.map((t) => [t.pid, t.result]) : []);
      expect(results.get(slow.pid)).toBe('killed');
      expect(targets.every(({ pid }) => ['exited', 'killed', 'already_gone'].includes(results.get(pid)!))).toBe(true);
      expect(report.steps[1]).toMatchObject({ state: 'done', targets: [{ path: shmFile, result: 'removed' }] });

      expect(targets.filter(isAlive)).toEqual([]);
      expect(leftovers.lookalikes.every(isAlive)).toBe(true);
      expect(existsSync(shmFile)).toBe(false);
      const journal = readFileSync(`/run/reclaim/run-${order.run}`, 'utf8').split('\n');
      const terms = journal.flatMap((line) => / signal 15 (\d+):/.exec(line)?.[1] ?? []);
      expect(terms.toSorted()).toEqual([...new Set(terms)].toSorted());
      await box.close();
    } finally {
      rmSync(shmFile, { force: true });
      await leftovers.dispose();
      await sshd.stop();
    }
  });
});
