/** `reclaim host-install HOST`: prints, or places, the root-owned helper that `privilege: helper` uses. */
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { install, planInstallation, sudoersPath, type Installation } from '../ssh/install.ts';
import { helperPath } from '../ssh/transport.ts';
import { onePositional, readArgs, type Command } from './io.ts';
import { cliBoxes } from './source.ts';

const usage = 'reclaim host-install HOST [--print] [--place]';

export const hostInstallCommand: Command = {
  summary: 'Print the script that installs the root-owned helper on a host, or run it there with --place.',
  usage,
  examples: [
    'reclaim host-install gpu-box-3',
    'reclaim host-install gpu-box-3 --print | ssh admin@gpu-box-3 sudo sh',
    'reclaim host-install gpu-box-3 --place',
  ],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { print: { type: 'boolean' }, place: { type: 'boolean' } }, usage);
    if (values.print === true && values.place === true) {
      throw new ReclaimError('usage', `Print it or place it, not both. Nothing was done. Usage: ${usage}`);
    }
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const host = findHost(config, onePositional(positionals, 'a host', usage));
    const plan = await planInstallation(host);
    if (values.place !== true) {
      io.out(plan.script);
      io.err(`\nThat script is for root on ${host.name}; nothing was done there yet.\n${whatFollows(host.name, plan)}`);
      return exitCodes.done;
    }
    const boxes = cliBoxes(config);
    try {
      await install(boxes.road, host, plan, io.signal);
    } finally {
      boxes.close();
    }
    io.out(`Installed ${helperPath} on ${host.name}.\n${whatFollows(host.name, plan)}`);
    return exitCodes.done;
  },
};

function whatFollows(name: string, { sudoersLine, forcedLine }: Installation): string {
  const sudo = sudoersLine === null ? '' : `The one line of ${sudoersPath}:\n  ${sudoersLine}\n`;
  return `${sudo}Then set "privilege: helper" for ${name} in reclaim.yaml.
Optional, in the authorized_keys of that account, so that the key can do nothing else:
  ${forcedLine}
`;
}
