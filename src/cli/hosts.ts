/** `reclaim hosts`: what is configured, without reaching for any of it. */
import { loadConfig } from '../config/load.ts';
import { exitCodes } from '../errors.ts';
import { readArgs, type Command } from './io.ts';
import { table } from './table.ts';

const usage = 'reclaim hosts [--json | --names]';

export const hostsCommand: Command = {
  summary: 'List the configured hosts.',
  usage,
  examples: ['reclaim hosts', 'reclaim hosts --json'],
  run(args, io) {
    const { values } = readArgs(args, { json: { type: 'boolean' }, names: { type: 'boolean' } }, usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const hosts = [...config.hosts.values()];
    if (values.json === true) {
      const shown = hosts.map(({ name, address, port, user, privilege, aliases, groups }) => {
        return { name, address, port, user, privilege, aliases, groups };
      });
      io.out(`${JSON.stringify({ hosts: shown }, null, 2)}\n`);
    } else if (values.names === true) {
      for (const { name } of hosts) io.out(`${name}\n`);
    } else if (hosts.length === 0) {
      io.out('No hosts are configured. Add one under "hosts" in reclaim.yaml; reclaim.example.yaml shows how.\n');
    } else {
      const rows = hosts.map((h) => [
        h.name,
        `${h.user}@${h.address}:${h.port}`,
        h.privilege,
        h.aliases.join(' '),
        h.groups.join(' '),
      ]);
      io.out(`${table([['host', 'address', 'privilege', 'aliases', 'groups'], ...rows])}\n`);
    }
    return Promise.resolve(exitCodes.done);
  },
};
