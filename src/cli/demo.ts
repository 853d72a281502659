/** `reclaim demo [--auto]`: everything on this machine, with nothing but Node. */
import { exitCodes, ReclaimError } from '../errors.ts';
import type { SituationName } from '../demo/situations.ts';
import { readArgs, type CliIo, type Command } from './io.ts';

const usage = 'reclaim demo [--auto] [--situation NAME] [--port N]';

export const demoCommand: Command = {
  summary: 'Try everything on this machine: a local Slack page, a real leftover build, two people to play.',
  usage,
  examples: ['reclaim demo', 'reclaim demo --auto', 'reclaim demo --situation live-build'],
  async run(args, io) {
    const { values } = readArgs(
      args,
      { auto: { type: 'boolean' }, port: { type: 'string' }, situation: { type: 'string' } },
      usage,
    );
    const port = values.port === undefined ? 0 : Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new ReclaimError('usage', `--port takes a number from 0 to 65535. Nothing was started. Usage: ${usage}`);
    }
    const logLevel = io.env['LOG_LEVEL'] ?? 'warn';
    if (process.platform !== 'linux') {
      const { replayed } = await import('../demo/replay.ts');
      io.out(replayed(io.columns, io.color));
      return exitCodes.done;
    }
    const situation = await situationOf(values.situation);
    io.err(`Starting the embedded queue, a local ssh server, a local Slack, and the box (${situation}) …\n`);
    const { startWorld } = await import('../demo/world.ts');
    const world = await startWorld({ port, logLevel, situation });
    try {
      return values.auto === true ? await auto(world, io) : await byHand(world, io);
    } finally {
      await world.close();
    }
  },
};

async function situationOf(wanted = 'leftover-build'): Promise<SituationName> {
  const { situationNames, situations } = await import('../demo/situations.ts');
  const found = situationNames.find((name) => name === wanted);
  if (found !== undefined) return found;
  const list = situationNames.map((name) => `  ${name.padEnd(18)}${situations[name].summary}`).join('\n');
  throw new ReclaimError('usage', `There is no situation "${wanted}", so nothing was started. There are:\n${list}`);
}

type World = Awaited<ReturnType<(typeof import('../demo/world.ts'))['startWorld']>>;

async function auto(world: World, io: CliIo): Promise<number> {
  const { play } = await import('../demo/play.ts');
  io.out(`The page of this channel: ${world.slack.url}\n\n`);
  const played = await play(
    world,
    (text) => {
      io.out(`${text}\n`);
    },
    io.signal,
  );
  (played.ok ? io.out : io.err)(`${played.reason}\n`);
  return played.ok ? exitCodes.done : exitCodes.failed;
}

async function byHand(world: World, io: CliIo): Promise<number> {
  io.out(`Open ${world.slack.url} and type /reclaim gpu-box-3. Switch to Bo to approve. Ctrl-C ends everything.\n`);
  await new Promise<void>((resolve) => {
    if (io.signal.aborted) resolve();
    io.signal.addEventListener('abort', () => {
      resolve();
    });
  });
  io.err('Cleaning up …\n');
  return exitCodes.done;
}
