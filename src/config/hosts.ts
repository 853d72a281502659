/** From what a person typed to a configured host. Exact names only: a near miss is answered with a question, never acted on. */
import { ReclaimError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import type { Config, HostConfig } from './schema.ts';

/** @throws ReclaimError `host_unknown`, with the nearest name where there is one. */
export function findHost(config: Pick<Config, 'hosts'>, said: string): HostConfig {
  const wanted = said.toLowerCase();
  const names: string[] = [];
  for (const host of config.hosts.values()) {
    const all = [host.name, ...host.aliases];
    if (all.some((name) => name.toLowerCase() === wanted)) return host;
    names.push(...all);
  }
  const near = nearest(said, names);
  const shown = said.length > 64 ? `${Array.from(said).slice(0, 64).join('')}…` : said;
  let next = `Known hosts: ${[...config.hosts.keys()].slice(0, 20).join(', ')}.`;
  if (near !== null) next = `Did you mean ${near}?`;
  else if (config.hosts.size === 0) next = 'No hosts are configured: add one under "hosts" in reclaim.yaml.';
  throw new ReclaimError(
    'host_unknown',
    `There is no host "${shown}" in reclaim.yaml, so nothing was looked at. ${next}`,
  );
}
