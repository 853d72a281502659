/**
 * Bad input: everything that reads what others wrote gets spoiled copies of real input, and the host program spoiled requests.
 * A breach is anything but an answer or an error we meant: another error, a second of work for one input, or something that
 * got past the checks.
 */
import { ReclaimError } from '../src/errors.ts';
import { Arena } from './arena.ts';
import { feedHostProgram } from './host-input.ts';
import { mutated, reshaped, strangeValues } from './mutate.ts';
import { type Chance, type Part, rounds, Tally, type Told } from './part.ts';
import { type Reader, readers, removeReadersFolder } from './readers.ts';

const slowMs = 2_000;

/** A spoiled copy: of the text, or of the value it stands for. */
function spoiled(chance: Chance, reader: Reader, parsed: readonly unknown[], strange: readonly unknown[]): string {
  const which = chance.below(reader.good.length);
  if (!reader.isJson || chance.yes(0.4)) return mutated(chance, reader.good[which] ?? '');
  return JSON.stringify(reshaped(chance, parsed[which], strange));
}

function feed(reader: Reader, text: string, tally: Tally, breach: (what: string) => void): void {
  const shown = JSON.stringify(text).slice(0, 300);
  const startedAt = process.cpuUsage();
  try {
    reader.read(text);
    tally.add('inputs taken');
  } catch (thrown) {
    if (thrown instanceof ReclaimError && thrown.code !== 'internal') tally.add('inputs refused with a sentence');
    else
      breach(
        `${reader.name}: ${thrown instanceof Error ? (thrown.stack ?? '').split('\n').slice(0, 3).join(' | ') : String(thrown)} on ${shown}`,
      );
  }
  const { user, system } = process.cpuUsage(startedAt);
  if (user + system > slowMs * 1000) breach(`${reader.name}: took ${(user + system) / 1000} ms for ${shown}`);
}

export const badInput: Part = {
  name: 'bad-input',
  about: 'what others wrote, spoiled, into everything that reads it',
  short: { seconds: 20, inputs: 100_000 },
  long: { seconds: 900, inputs: 1_200_000 },
  async run(seed, { seconds, inputs }, told: Told) {
    const tally = new Tally();
    const arena = await Arena.open();
    const parsed = new Map(readers.map((r) => [r.name, r.isJson ? r.good.map((t): unknown => JSON.parse(t)) : []]));
    await rounds(seed, seconds, async (at, chance) => {
      if (tally.of('inputs') >= inputs) return;
      const breach = (what: string) => {
        told.breach(at, what);
      };
      const strange = strangeValues(chance, 60);
      for (const reader of readers) {
        told.at(at, reader.name);
        for (let n = 0; n < reader.batch; n += 1)
          feed(reader, spoiled(chance, reader, parsed.get(reader.name) ?? [], strange), tally, breach);
        tally.add('inputs', reader.batch);
        tally.add(`of them ${reader.name}`, reader.batch);
      }
      told.at(at, 'the host program');
      for (const shell of ['dash', 'bash --posix', 'busybox sh']) await feedHostProgram(arena, chance, shell, breach);
      tally.add('inputs', 3);
      tally.add('of them requests to the host program', 3);
    });
    arena.close();
    removeReadersFolder();
    return tally.counts();
  },
};
