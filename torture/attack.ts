/** Attack: from the workspace, from the network, from the box, and through the environment. */
import { Arena } from './arena.ts';
import { lie, plantEnvironment, swapFiles } from './box-attack.ts';
import { type Part, rounds, Tally, type Told } from './part.ts';
import { SlackDoors } from './slack-attack.ts';

export const attack: Part = {
  name: 'attack',
  about: 'forged requests, a stolen token, lying boxes, swapped files, a planted environment',
  short: { seconds: 20, inputs: 0 },
  long: { seconds: 600, inputs: 0 },
  async run(seed, { seconds }, told: Told) {
    const tally = new Tally();
    const [arena, doors] = await Promise.all([Arena.open(), SlackDoors.open()]);
    const played = await rounds(seed, seconds, async (at, chance) => {
      const breach = (what: string) => {
        told.breach(at, what);
      };
      told.at(at, 'the doors of the gateway');
      for (let n = 0; n < 8; n += 1) await doors.attack(chance, tally, breach);
      await doors.stolenToken(chance, tally, breach);
      told.at(at, 'a box that lies');
      await lie(chance, tally, breach);
      told.at(at, 'swapped files');
      await swapFiles(arena, chance, tally, breach);
      told.at(at, 'a planted environment');
      await plantEnvironment(arena, chance, tally, breach);
    });
    await doors.close();
    arena.close();
    return { rounds: played, ...tally.counts() };
  },
};
