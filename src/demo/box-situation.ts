/** Which situation the demo's box is in, and how the visitor changes it. */
import { situations, situationNames, type Situation, type SituationName } from './situations.ts';

export interface BoxSituation {
  name(): SituationName;
  now(): Situation;
  /** Undoes the present situation and makes another. @throws Error with a sentence when it cannot */
  choose(name: string): Promise<void>;
  /** Undoes what is there. Safe to call twice. */
  dispose(): Promise<void>;
}

const empty: Situation = { lingering: [], innocent: [], staleFiles: [], dispose: () => Promise.resolve() };

const isSituation = (name: string): name is SituationName => Object.hasOwn(situations, name);

export async function startSituation(first: SituationName): Promise<BoxSituation> {
  let name = first;
  let now: Situation = await situations[first].make();
  let busy = false;
  let ended = false;
  return {
    name: () => name,
    now: () => now,
    choose: async (wanted) => {
      if (!isSituation(wanted)) throw new Error(`There is no "${wanted}". Choose one of ${situationNames.join(', ')}.`);
      if (busy) throw new Error('The box is being changed already. Wait until that is done, then choose again.');
      busy = true;
      try {
        await now.dispose();
        now = empty;
        name = wanted;
        now = await situations[wanted].make();
        // The demo may have ended while this was being made.
        if (ended) await now.dispose();
      } finally {
        busy = false;
      }
    },
    dispose: async () => {
      ended = true;
      await now.dispose();
    },
  };
}
