/** `reclaim trust HOST`: shows the key a host has now, and files it after a yes. */
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import { exitCodes, ReclaimError } from '../errors.ts';
import { offerTrust } from '../ssh/trust.ts';
import { onePositional, readArgs, type Command } from './io.ts';
import { cliBoxes } from './source.ts';

const usage = 'reclaim trust HOST [--yes]';

export const trustCommand: Command = {
  summary: 'Show the key of a host and add it to known_hosts after a yes.',
  usage,
  examples: ['reclaim trust gpu-box-3'],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { yes: { type: 'boolean' } }, usage);
    const config = loadConfig({ cwd: io.cwd, env: io.env, file: values.config });
    const host = findHost(config, onePositional(positionals, 'a host', usage)).name;
    const boxes = cliBoxes(config);
    try {
      const offer = await offerTrust(boxes.road, host, io.signal);
      io.out(`${host} (${offer.address}:${offer.port}) shows ${offer.keyType} ${offer.fingerprint}\n`);
      if (offer.trusted) {
        io.out(`That key is in ${offer.file} already. Nothing to do.\n`);
        return exitCodes.done;
      }
      io.out('Compare it on the box itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\n');
      const answer = values.yes === true ? 'yes' : await io.ask('Is it the same? Type yes to trust it: ');
      if (answer?.trim().toLowerCase() !== 'yes') {
        throw new ReclaimError('not_allowed', 'You did not say yes, so nothing was added and the host stays refused.');
      }
      await offer.add();
      io.out(`Added to ${offer.file}.\n`);
      return exitCodes.done;
    } finally {
      boxes.close();
    }
  },
};
