/** What every part of the torture is: it works in rounds until its budget is used up, counts, and names each breach. */
export interface Budget {
  /** How long the part may take. A round that has begun is ended. */
  readonly seconds: number;
  /** Inputs to try, for the parts that count them; those end with whichever comes first. */
  readonly inputs: number;
}

export type Counts = Readonly<Record<string, number>>;

export interface Part {
  readonly name: string;
  /** One line for the table. */
  readonly about: string;
  readonly short: Budget;
  readonly long: Budget;
  run(seed: number, budget: Budget, told: Told): Promise<Counts>;
}

/** Where a part says what went wrong, and where it is: when it hangs or dies, that is the last thing known of it. */
export interface Told {
  /** `seed` is that of the round, so that the round can be played again alone. */
  breach(seed: number, what: string): void;
  at(seed: number, what: string): void;
}

/** Seeded chance (mulberry32): the same seed plays the same round. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  yes(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const [first] = from;
    if (first === undefined) throw new Error('nothing to pick from');
    return from[this.below(from.length)] ?? first;
  }

  /** Some of them, in their order. */
  some<T>(from: readonly T[], probability: number): T[] {
    return from.filter(() => this.yes(probability));
  }
}

/** The seeds of the rounds: the first is the seed itself, so `--seed` with that of a later round begins with that round. */
export function* roundSeeds(seed: number): Generator<number, never> {
  for (let at = seed >>> 0; ; at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0) yield at;
}

/** A round after the other, each with a seed and chance of its own, until the time is up. */
export async function rounds(
  seed: number,
  seconds: number,
  play: (seed: number, chance: Chance) => Promise<void>,
): Promise<number> {
  const endAt = performance.now() + seconds * 1000;
  let played = 0;
  for (const at of roundSeeds(seed)) {
    if (played > 0 && performance.now() > endAt) break;
    await play(at, new Chance(at));
    played += 1;
  }
  return played;
}

/** Counts by name. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string, by = 1): void {
    this.#counts.set(name, this.of(name) + by);
  }

  most(name: string, value: number): void {
    this.#counts.set(name, Math.max(this.of(name), value));
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  counts(): Counts {
    return Object.fromEntries(this.#counts);
  }
}

/** Polls for a state; false when the time is up. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  timeoutMs: number,
  everyMs = 10,
): Promise<boolean> {
  const endAt = performance.now() + timeoutMs;
  for (;;) {
    if (await holds()) return true;
    if (performance.now() > endAt) return false;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
