/** Which host comes before which: `jump` of reclaim.yaml, or ProxyJump of the ssh config file it names. */
import type { HostConfig } from '../config/schema.ts';
import { ReclaimError } from '../errors.ts';
import type { Route } from './ssh-config.ts';

/** One host on the way. */
export interface Stop {
  /** Names its connection, so that hosts behind one jump host share it. */
  readonly key: string;
  readonly config: HostConfig;
  /** The hop before it, where a ProxyJump list says so. */
  readonly via?: Stop;
}

type Hosts = ReadonlyMap<string, HostConfig>;

/** @throws ReclaimError host_unknown */
export function configuredStop(name: string, hosts: Hosts): Stop {
  const config = hosts.get(name);
  if (config === undefined) {
    throw new ReclaimError('host_unknown', `There is no host "${name}" in reclaim.yaml, so nothing was connected.`);
  }
  return { key: name, config };
}

/** The hop right before `stop`, or null when it is reached directly. */
export function jumpOf(stop: Stop, route: Route, hosts: Hosts): Stop | null {
  if (stop.via !== undefined) return stop.via;
  if (stop.config.jump !== undefined) return configuredStop(stop.config.jump, hosts);
  let before: Stop | null = null;
  for (const said of route.proxyJump) before = proxyStop(said, stop, before);
  return before;
}

/** A hop that only ProxyJump names: looked up in the same ssh config file, verified against the same known_hosts. */
function proxyStop(said: string, target: Stop, before: Stop | null): Stop {
  const m = /^(?:ssh:\/\/)?(?:([^@]+)@)?(\[[^\]]+\]|[^:]+)(?::(\d+))?\/?$/.exec(said);
  const address = m?.[2]?.replace(/^\[|\]$/g, '');
  if (m === null || address === undefined) {
    throw new ReclaimError(
      'ssh_config_invalid',
      `The jump host "${said.slice(0, 80)}" of ${target.config.name} cannot be understood. Nothing was connected. ` +
        'Write ProxyJump as user@host:port.',
    );
  }
  const [, user, , port] = m;
  const { identity, agentIdentity, sshConfig, knownHosts } = target.config;
  const config: HostConfig = {
    name: address,
    address,
    port: port === undefined ? 22 : Number(port),
    user: user ?? target.config.user,
    privilege: 'none',
    knownHosts,
    ...(identity === undefined ? {} : { identity }),
    ...(agentIdentity === undefined ? {} : { agentIdentity }),
    ...(sshConfig === undefined ? {} : { sshConfig }),
    aliases: [],
    groups: [],
    defaulted: [
      ...(user === undefined ? (['user'] as const) : []),
      ...(port === undefined ? (['port'] as const) : []),
      'identity',
      'knownHosts',
    ],
  };
  const key = `${before?.key ?? target.config.sshConfig ?? ''} > ${said}`;
  return before === null ? { key, config } : { key, config, via: before };
}
