/** Runs a part and reports to the process that started this one. */
import type { Budget, Part } from './part.ts';

const send = (message: object) =>
  new Promise<void>((resolve) => {
    if (process.send === undefined) throw new Error('A part is started by torture/main.ts.');
    process.send(message, undefined, {}, () => {
      resolve();
    });
  });

export async function bringToCount(part: Part, seed: number, budget: Budget): Promise<void> {
  process.on('unhandledRejection', (reason) => {
    void send({ breach: `nobody waited for: ${String(reason)}` });
  });
  // Whoever started us is gone: nothing of ours stays behind.
  process.on('disconnect', () => {
    process.kill(-process.pid, 'SIGKILL');
  });
  const counts = await part.run(seed, budget, {
    breach: (of, what) => {
      void send({ breach: `${what} (again: --only ${part.name} --seed ${of})` });
    },
    at: (of, what) => {
      void send({ at: `${what} (seed ${of})` });
    },
  });
  await send({ counts });
  // Whatever is still open: the part has ended what it started.
  process.exit(0);
}
