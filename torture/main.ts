/**
 * `npm run torture [-- --long] [--seed N] [--only NAME]`: what is promised about safety, measured. Each part runs in a process of
 * its own, so that one that hangs or dies is a breach like any other. Ends with a table; non-zero on any breach.
 */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { parts } from './parts.ts';
import type { Counts, Part } from './part.ts';

const { values } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
  },
});
const wanted = parts.filter((part) => values.only.length === 0 || values.only.includes(part.name));
const unknown = values.only.filter((name) => !parts.some((part) => part.name === name));
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
if (unknown.length > 0 || !Number.isSafeInteger(seed) || seed < 0) {
  const names = parts.map((part) => part.name).join(', ');
  process.stderr.write(`--only takes ${names}; --seed takes a whole number. Nothing was run.\n`);
  process.exit(2);
}

const form = values.long ? 'long' : 'short';

interface Outcome {
  readonly part: Part;
  readonly counts: Counts;
  readonly breaches: readonly string[];
  readonly seconds: number;
}

const messageSchema = z.union([
  z.object({ breach: z.string() }),
  z.object({ at: z.string() }),
  z.object({ counts: z.record(z.string(), z.number()) }),
]);

/** A part may take what its budget says, the round it is in, and its start and end. */
const graceMs = 300_000;

function play(part: Part): Promise<Outcome> {
  const startedAt = performance.now();
  process.stdout.write(`== ${part.name}: ${part.about} (seed ${seed}, ${form} form)\n`);
  return new Promise((resolve) => {
    const child = fork(new URL('one.ts', import.meta.url), [part.name, String(seed), form], {
      execArgv: ['--import', 'tsx'],
      // A group of its own, so that whatever it started goes with it.
      detached: true,
    });
    const breaches: string[] = [];
    let counts: Counts | undefined;
    let at = 'its start';
    let late = false;
    const breach = (what: string) => {
      breaches.push(what);
      if (breaches.length <= 20) process.stdout.write(`   BREACH ${part.name}: ${what}\n`);
    };
    child.on('message', (sent) => {
      const message = messageSchema.parse(sent);
      if ('breach' in message) breach(message.breach);
      else if ('at' in message) at = message.at;
      else counts = message.counts;
    });
    const timer = setTimeout(
      () => {
        late = true;
        // With all it started.
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      },
      part[form].seconds * 1000 + graceMs,
    );
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      if (late) breach(`it hung, last at ${at}`);
      else if (code !== 0 || counts === undefined) breach(`it ended with ${signal ?? code}, last at ${at}`);
      resolve({ part, counts: counts ?? {}, breaches, seconds: (performance.now() - startedAt) / 1000 });
    });
  });
}

// Two at a time: most of a part is waiting. The one that waits longest begins.
const waiting = wanted.values();
const outcomes: Outcome[] = [];
const lane = async () => {
  for (const part of waiting) outcomes.push(await play(part));
};
await Promise.all([lane(), lane()]);

const inOrder = wanted.flatMap((part) => outcomes.find((one) => one.part === part) ?? []);
const lines = inOrder.flatMap(({ part, counts, breaches, seconds }) => [
  `${part.name.padEnd(12)} ${String(breaches.length).padStart(8)} breaches   ${seconds.toFixed(0)} s`,
  ...Object.entries(counts).map(([name, n]) => `${' '.repeat(12)} ${String(n).padStart(8)} ${name}`),
]);
process.stdout.write(`\n${lines.join('\n')}\n`);
const all = outcomes.reduce((sum, one) => sum + one.breaches.length, 0);
process.stdout.write(
  `\n${all} breaches, seed ${seed}. Again: npm run torture -- ${values.long ? '--long ' : ''}--seed ${seed}\n`,
);
process.exitCode = all > 0 ? 1 : 0;
