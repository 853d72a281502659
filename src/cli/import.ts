/** `reclaim import FILE`: takes what `reclaim export` wrote into an empty store. */
import { openRecords } from '../compose.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes } from '../errors.ts';
import { closed, parseBackup } from '../requests/backup-lines.ts';
import { onePositional, readArgs, type Command } from './io.ts';
import { readTextFile } from './output.ts';

const usage = 'reclaim import FILE';
const atOnce = 100;

export const importCommand: Command = {
  summary: 'Take a backup into an empty store: the whole of it is checked first; requests that were open are over.',
  usage,
  examples: ['reclaim import reclaim-backup.jsonl'],
  async run(args, io) {
    const { values, positionals } = readArgs(args, {}, usage);
    const file = onePositional(positionals, 'a file', usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const { records, events, totals, takenAt } = closed(parseBackup(await readTextFile(file, io.cwd)));
    const opened = await openRecords(config);
    const { store } = opened;
    try {
      // The events first: they tell at once whether this store has a history of its own. Done twice, it changes nothing.
      const already = await store.events({ limit: 1 });
      const rest =
        already.length === 0 ? events : await missing(events, (afterSeq) => store.events({ afterSeq, limit: 1 }));
      for (const part of parts(rest)) await store.restore({ events: part });
      for (const part of parts(records)) await store.restore({ records: part });
      await store.restore({ totals });
      io.out(`${records.length} requests and ${events.length} audit events of ${takenAt} are in the store.\n`);
      return exitCodes.done;
    } finally {
      await opened.close();
    }
  },
};

function* parts<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += atOnce) yield all.slice(from, from + atOnce);
}

/** The events after the last one an import that was cut short had brought in. */
async function missing<E extends { readonly seq: number; readonly hash: string }>(
  events: readonly E[],
  after: (seq: number) => Promise<readonly { readonly hash: string }[]>,
): Promise<readonly E[]> {
  for (let n = events.length; n > 0; n -= 1) {
    const event = events[n - 1];
    if (event === undefined) continue;
    const [there] = await after(event.seq - 1);
    if (there?.hash === event.hash) return events.slice(n);
  }
  return events;
}
