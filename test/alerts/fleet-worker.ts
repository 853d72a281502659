/** A worker process for the fleet test: says when it has taken hosts, and is slow enough to be killed in the middle. */
import { openFleet } from './fleet-world.ts';

const [queueUrl = '', folder = '', hosts = ''] = process.argv.slice(2);
const world = await openFleet({
  ...{ queueUrl, folder, hosts: hosts.split(','), collectMs: 400 },
  kindOf: () => 'fine',
  seen: () => process.stdout.write('seen\n'),
});
await world.work();
