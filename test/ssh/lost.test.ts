/** The connection breaks in the middle of a step, over a real sshd: the box finishes what it began, and is asked about it. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { afterLoss, isLost, type Aftermath } from '../../src/aftermath.ts';
import type { Box, KillOrder } from '../../src/box.ts';
import { asReclaimError, type ReclaimError } from '../../src/errors.ts';
import type { StepReport } from '../../src/memory/contract.ts';
import { defaultThinkOptions } from '../../src/memory/think.ts';
import { boxOver } from '../../src/ssh/host-program.ts';
import type { RoadLimits } from '../../src/ssh/limits.ts';
import type { Transport } from '../../src/ssh/transport.ts';
import { systemClock } from '../../src/system-clock.ts';
import { makeBox } from '../memory/box.ts';
import { bootId, Crowd, isAlive, startTimeOf, targetOf } from '../host/real-box.ts';
import { createFixture } from './road-fixture.ts';
import { haveSshd, isRoot, sessionsOf, signalAll, startSshd, type Sshd } from './sshd.ts';

const fixture = createFixture();
const crowd = new Crowd();
let sshd: Sshd;

const host = () =>
  fixture.host({
    port: sshd.port,
    user: 'root',
    privilege: 'root',
    knownHosts: [fixture.knownHosts(sshd.knownHosts())],
  });
const limits: Partial<RoadLimits> = { keepaliveMs: 300, keepaliveMisses: 2, handshakeMs: 1_500 };

async function open(more: Partial<RoadLimits> = {}): Promise<Box> {
  const transport = await fixture.transport(host(), { limits: { ...limits, ...more } });
  return boxOver(transport, { privilege: 'root', clock: systemClock });
}

type Started = Awaited<ReturnType<Crowd['named']>>;
const ignoresTerm = 'import signal\nsignal.signal(15, signal.SIG_IGN)';
const orderFor = (targets: readonly Started[], graceMs = 1_500): KillOrder => ({
  ...{ bootId, graceMs, protect: [] },
  targets: targets.map(targetOf),
});
const stepFor = (targets: readonly Started[]): StepReport => ({
  ...{ id: 's1', action: 'kill', state: 'not_run', tookMs: 0, targets: targets.map(targetOf) },
  ...{ expectedFreeKiB: { low: 0, high: 0 }, expectedAvailableKiB: { low: 0, high: 0 } },
});

let runs = 0;
const newRun = () => `lost-test-${process.pid}-${(runs += 1)}`;

/** What a step ends in when its connection breaks as soon as the first result is in. */
async function broken(run: string, targets: readonly Started[], breakIt: () => void): Promise<ReclaimError> {
  const box = (await open()).forRun(run);
  const thrown: unknown = await box.kill(orderFor(targets), breakIt).catch((error: unknown) => error);
  await box.close();
  return asReclaimError(thrown);
}

type Pause = (ms: number) => Promise<void>;

function learn(
  run: string,
  targets: readonly Started[],
  error: ReclaimError,
  sleep: Pause = delay,
): Promise<Aftermath> {
  const before = makeBox({});
  return afterLoss(
    { clock: { now: Date.now, sleep: (ms) => sleep(ms) }, reopen: () => open() },
    { run, bootId, hostKey: fixtureKey, options: defaultThinkOptions, before },
    stepFor(targets),
    error,
  );
}
let fixtureKey = '';
const resultsOf = ({ step }: Aftermath) => step.targets.map((target) => target.result);

describe.skipIf(!haveSshd() || !isRoot)('a connection that breaks in the middle of a step', { timeout: 90_000 }, () => {
  beforeAll(async () => {
    sshd = await startSshd({ authorized: [fixture.key.publicKey] });
    const box = await open();
    fixtureKey = box.hostKey;
    await box.close();
  });
  afterEach(() => {
    crowd.end();
  });
  afterAll(async () => {
    await fixture.end();
    await sshd.stop();
  });

  it('because its session was killed: the box goes on by itself, and its journal tells the whole', async () => {
    const targets = [await crowd.named('cicc'), await crowd.named('ninja', ignoresTerm)];
    const run = newRun();
    const error = await broken(run, targets, () => {
      signalAll(sessionsOf(sshd), 'SIGKILL');
    });
    expect(error.code).toBe('ssh_lost');
    const told = await learn(run, targets, error);
    expect(told.step.state).toBe('done');
    expect(resultsOf(told)).toEqual(['exited', 'killed']);
    expect(told.step.reason).toContain('journal');
    expect(targets.map((t) => t.signalCode)).toEqual(['SIGTERM', 'SIGKILL']);
    await told.box?.close();
  });

  it('because its session froze: no worker waits for it, and the outcome is learned over a new one', async () => {
    const targets = [await crowd.named('cicc'), await crowd.named('ninja', ignoresTerm)];
    const run = newRun();
    let frozen: number[] = [];
    try {
      const error = await broken(run, targets, () => {
        if (frozen.length === 0) signalAll((frozen = sessionsOf(sshd)), 'SIGSTOP');
      });
      expect(isLost(error)).toBe(true);
      const told = await learn(run, targets, error);
      expect([told.step.state, ...resultsOf(told)]).toEqual(['done', 'exited', 'killed']);
      await told.box?.close();
    } finally {
      signalAll(frozen, 'SIGCONT');
    }
  });

  it('because the whole server stopped: it is dialled until it goes on', async () => {
    const targets = [await crowd.named('cicc'), await crowd.named('ninja', ignoresTerm)];
    const run = newRun();
    let frozen: number[] = [];
    const goOn = () => {
      signalAll(frozen, 'SIGCONT');
    };
    try {
      const error = await broken(run, targets, () => {
        if (frozen.length === 0) signalAll((frozen = [sshd.pid, ...sessionsOf(sshd)]), 'SIGSTOP');
      });
      let pauses = 0;
      const told = await learn(run, targets, error, async (ms) => {
        if ((pauses += 1) === 1) goOn();
        await delay(ms);
      });
      expect([told.step.state, ...resultsOf(told)]).toEqual(['done', 'exited', 'killed']);
      expect(pauses).toBeGreaterThan(0);
      await told.box?.close();
    } finally {
      goOn();
    }
  });

  it('before the request arrived: the run is closed there, and the request, coming late, does nothing', async () => {
    const target = await crowd.named('ptxas');
    const run = newRun();
    const real = await fixture.transport(host(), { limits });
    let late: Uint8Array = Buffer.alloc(0);
    const slow: Transport = {
      ...{ host: real.host, hostKey: real.hostKey, close: () => Promise.resolve() },
      run: (stdin) => {
        late = stdin;
        const nothing = Buffer.alloc(0);
        return Promise.resolve({
          ...{ code: null, signal: null, stdout: nothing, stderr: nothing },
          ...{ truncated: false, lost: true, timedOut: false },
        });
      },
    };
    const box = boxOver(slow, { privilege: 'root', clock: systemClock, run });
    const error = asReclaimError(await box.kill(orderFor([target])).catch((thrown: unknown) => thrown));
    const told = await learn(run, [target], error);
    expect(told.step).toMatchObject({ state: 'not_run' });
    const output = await real.run(late, { timeoutMs: 15_000, maxBytes: 100_000, privileged: true });
    expect(Buffer.from(output.stdout).toString()).toMatch(/ error sealed\n/);
    expect(isAlive(target)).toBe(true);
    expect(startTimeOf(target.pid)).toBe(target.startTime);
    await Promise.all([told.box?.close(), real.close()]);
  });

  it('and whose program was killed there: what has no word in the journal is unknown, and not done again', async () => {
    const targets = [await crowd.named('cicc'), await crowd.named('ninja', ignoresTerm)];
    const run = newRun();
    const error = await broken(run, targets, () => {
      const holder = readFileSync('/run/reclaim/holder', 'utf8').split(' ');
      if (holder[0] === run) signalAll([Number(holder[2])], 'SIGKILL');
      signalAll(sessionsOf(sshd), 'SIGKILL');
    });
    const told = await learn(run, targets, error);
    expect([told.step.state, ...resultsOf(told)]).toEqual(['unknown', 'exited', 'still_there']);
    expect(isAlive(targets[1]!)).toBe(true);
    await told.box?.close();
  });

  it('and a box that does not come back: unknown, with nothing claimed', async () => {
    const targets = [await crowd.named('cicc'), await crowd.named('ninja', ignoresTerm)];
    const run = newRun();
    const doomed = sshd;
    const error = await broken(run, targets, () => {
      signalAll([doomed.pid, ...sessionsOf(doomed)], 'SIGKILL');
    });
    const told = await learn(run, targets, error, () => Promise.resolve());
    expect(told.box).toBeNull();
    expect(told.step).toMatchObject({
      state: 'unknown',
      reason: expect.stringMatching(/could not find out/) as string,
    });
    expect(resultsOf(told)).toEqual([undefined, undefined]);
    // What the box began it still ends, so that the next test finds the lock free.
    await expect.poll(() => targets.map((t) => t.signalCode), { timeout: 20_000 }).toEqual(['SIGTERM', 'SIGKILL']);
    sshd = await startSshd({ authorized: [fixture.key.publicKey] });
  });
});
