/** `reclaim serve`: the bot, until it is asked to end. */
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { roles, serve, type Role } from '../serve.ts';
import { readArgs, type Command } from './io.ts';

const usage = 'reclaim serve [--role all|gateway|worker]';

const isRole = (text: string): text is Role => roles.some((role) => role === text);

export const serveCommand: Command = {
  summary: 'Run the bot: gateway (Slack), worker (ssh), or both in one process.',
  usage,
  examples: ['reclaim serve', 'reclaim serve --role worker'],
  async run(args, io) {
    const { values } = readArgs(args, { role: { type: 'string', default: 'all' } }, usage);
    if (!isRole(values.role)) {
      throw new ReclaimError(
        'usage',
        `There is no role "${values.role.slice(0, 40)}", so nothing was started. Usage: ${usage}`,
      );
    }
    const load = () => loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const config = load();
    const server = await serve(config, values.role);
    io.err(`reclaim serve: ${values.role} is up, http on ${config.env.HTTP_HOST}:${server.httpPort}\n`);
    io.onHangup?.(() => {
      void server.reload(load);
    });
    await new Promise<void>((resolve) => {
      io.signal.addEventListener('abort', () => {
        resolve();
      });
    });
    await server.stop();
    return exitCodes.done;
  },
};
