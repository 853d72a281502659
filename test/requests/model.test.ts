/**
 * Whatever people click, clocks do, policies become and processes die of: no run without enough distinct people who may,
 * no second run, no card that lies, no refusal without a reason. The rules are written down a second time in model/rules.ts,
 * from the specification; here random days are played through the real service and the real jobs.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isOpen } from '../../src/requests/state.ts';
import type { RequestRecord } from '../../src/requests/types.ts';
import { type Mutant, policies, World } from './model/world.ts';

const hosts = ['box-a', 'box-b'] as const;
const anyHost = fc.constantFrom(...hosts);
const anybody = fc.constantFrom('UANN', 'UBOB', 'UAAA', 'UBBB', 'UCCC', 'UGGG', 'UGST', 'UZZZ');
/** After how many points between writes the process dies; mostly it does not. */
const fuse = fc.option(fc.nat(9), { freq: 4, nil: undefined });

const click = fc.record({
  host: anyHost,
  who: anybody,
  /** Which tick is taken out; mostly none. */
  untick: fc.option(fc.nat(4), { freq: 4, nil: undefined }),
  glass: fc.boolean(),
  deny: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  fuse,
});
type Click = typeof click extends fc.Arbitrary<infer C> ? C : never;

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('ask' as const), host: anyHost, who: anybody, fuse }) },
  { weight: 7, arbitrary: fc.record({ do: fc.constant('work' as const), n: fc.nat(3), twice: fc.boolean(), fuse }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('clicks' as const),
      clicks: fc.array(click, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('release' as const), n: fc.nat(1), dies: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('keep' as const), host: anyHost, who: anybody, fuse }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), host: anyHost, who: anybody, fuse }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), s: fc.constantFrom(3, 6, 16, 130, 950) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('sweep' as const), fuse }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('policy' as const), to: fc.nat(policies.length - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('person' as const), who: anybody, guest: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('directory' as const), down: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leftovers' as const), host: anyHost }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('deliver' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** The newest card of a host, as it was last shown: perhaps an old one. */
function cardOf(world: World, host: string): RequestRecord | undefined {
  return [...world.cards.values()].filter((r) => r.host === host).at(-1);
}

async function clicked(world: World, { host, who, untick, glass, deny, fuse: dies }: Click): Promise<void> {
  const shown = cardOf(world, host);
  if (shown === undefined) return;
  const decision = { id: shown.id, person: { id: who }, surface: 'slack' as const };
  if (deny) {
    await world.tries(who, dies, (on) => on.decide({ ...decision, verdict: 'deny' }, world.directoryOf()));
    return;
  }
  if (shown.digest === undefined) return;
  const keys = shown.plan?.steps.flatMap((s) =>
    s.action === 'kill' ? s.targets.map((t) => `${t.pid}:${t.startTime}`) : [`step:${s.id}`],
  );
  const without = untick === undefined ? [] : (keys ?? []).slice(untick, untick + 1);
  const breakGlass = glass && world.policy === 2;
  world.noteApproval(who, shown, without, breakGlass);
  const vote = { ...decision, verdict: 'approve' as const, digest: shown.digest, without };
  const how = breakGlass ? { breakGlass, reason: 'it burns' } : {};
  await world.tries(who, dies, (on) => on.decide({ ...vote, ...how }, world.directoryOf()));
}

async function play(world: World, { ...s }: Step): Promise<void> {
  const open =
    'host' in s ? [...world.db.records.values()].find((r) => r.host === s.host && isOpen(r.state)) : undefined;
  switch (s.do) {
    case 'ask': {
      await world.tries(s.who, s.fuse, (on) =>
        on.ask({ host: s.host, requester: { id: s.who }, surface: 'slack', channel: 'C1' }),
      );
      return;
    }
    case 'work': {
      await world.work(s.n, s);
      return;
    }
    case 'clicks':
      await Promise.all(s.clicks.map((c) => clicked(world, c)));
      return;
    case 'release': {
      await world.release(s.n, s.dies);
      return;
    }
    case 'keep': {
      const keys = open?.diagnosis?.findings.flatMap((f) => f.processes ?? []).map((p) => `${p.pid}:${p.startTime}`);
      if (open !== undefined)
        await world.tries(s.who, s.fuse, (on) => on.keep(open.id, { id: s.who }, keys ?? [], 'slack'));
      return;
    }
    case 'cancel':
      if (open !== undefined) await world.tries(s.who, s.fuse, (on) => on.cancel(open.id, { id: s.who }, 'slack'));
      return;
    case 'pass': {
      await world.pass(s.s * 1000);
      return;
    }
    case 'sweep': {
      await world.tries('nobody', s.fuse, (on) => on.sweep());
      return;
    }
    case 'policy':
      world.policy = s.to;
      return;
    case 'person':
      if (s.guest) world.directory.standings.set(s.who, 'guest');
      else world.directory.standings.delete(s.who);
      return;
    case 'directory':
      world.directory.down = s.down;
      return;
    case 'leftovers':
      world.leave(s.host, [1001, 1002]);
      return;
    case 'deliver':
      world.deliver();
  }
}

/** Most days begin with a card in the channel, else little would come of the clicks. */
const opening: readonly Step[] = hosts.flatMap((host): Step[] => [
  { do: 'ask', host, who: 'UANN', fuse: undefined },
  { do: 'work', n: 0, twice: false, fuse: undefined },
  { do: 'deliver' },
]);

interface Day {
  readonly policy: number;
  readonly steps: readonly Step[];
}
const day: fc.Arbitrary<Day> = fc.record({
  policy: fc.nat(policies.length - 1),
  steps: fc.array(step, { maxLength: 30, size: 'max' }),
});

async function played({ policy, steps }: Day, mutant?: Mutant): Promise<World> {
  const world = new World(mutant);
  world.policy = policy;
  for (const s of [...opening, ...steps]) {
    await play(world, s);
    if (world.violations.length > 0) return world;
  }
  await world.settle();
  return world;
}

beforeAll(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterAll(() => {
  vi.useRealTimers();
});

describe('whatever people, clocks, policies and crashes do', { timeout: 120_000 }, () => {
  it('gives no run without enough distinct allowed people, no second run, and no card that lies', async () => {
    const seen = { kills: 0, refusals: new Set<string>(), states: new Set<string>() };
    const property = fc.asyncProperty(day, async (given) => {
      const world = await played(given);
      seen.kills += world.kills.length;
      for (const code of world.refusals) seen.refusals.add(code);
      for (const record of world.db.records.values()) seen.states.add(record.state);
      expect(world.violations).toEqual([]);
    });
    await fc.assert(property, { numRuns: 150, seed: 2026 });
    await fc.assert(property, { numRuns: 50 });
    // The days were worth playing: runs happened, ended in every way, and people were refused for every reason.
    expect(seen.kills).toBeGreaterThan(10);
    const states = ['succeeded', 'unknown', 'denied', 'expired', 'cancelled', 'superseded'];
    expect([...seen.states]).toEqual(expect.arrayContaining(states));
    const reasons = ['not_allowed', 'no_approvers', 'request_closed', 'request_changed', 'expired', 'lookup_failed'];
    expect([...seen.refusals]).toEqual(expect.arrayContaining(reasons));
  });

  it.each<[string, Mutant, RegExp]>([
    ['a store that lets stale writes through', 'blind_writes', /twice|never ends|its card/],
    ['a policy that takes one person for enough', 'one_is_enough', /without enough people/],
    ['a directory that takes everybody for a member', 'open_door', /without enough people/],
    ['a state that does not reach its card', 'mute', /its card/],
    ['a refusal nobody writes down', 'forgetful', /left no trace/],
  ])('would notice %s', async (_what, mutant, said) => {
    const found = await fc.check(
      fc.asyncProperty(day, async (given) => (await played(given, mutant)).violations.length === 0),
      { numRuns: 400, endOnFailure: true, seed: 7 },
    );
    expect(found.failed).toBe(true);
    const [worst] = found.counterexample ?? [];
    const { violations } = await played(worst ?? { policy: 0, steps: [] }, mutant);
    expect(violations.join(' ')).toMatch(said);
  });
});
