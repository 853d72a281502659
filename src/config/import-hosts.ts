/**
 * Hosts out of what a team has already: an ssh config, an Ansible inventory (INI or YAML) or plain lines. Pure. Only what
 * names one machine is taken; patterns, and names that reclaim.yaml would refuse, are told instead.
 */
import { parse } from 'yaml';
import { hostNameSchema } from './schema.ts';

export interface ImportedHost {
  readonly name: string;
  readonly address: string;
  readonly port?: number;
  readonly user?: string;
  readonly groups: readonly string[];
}

export interface Imported {
  readonly format: 'ssh config' | 'Ansible inventory' | 'plain lines';
  readonly hosts: readonly ImportedHost[];
  /** What was not taken and why, one sentence each. */
  readonly left: readonly string[];
}

/** Any text in, no error out: what is not understood is in `left`. */
export function importHosts(text: string): Imported {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.trim());
  const said = lines.filter((line) => line !== '' && !/^[#;]/.test(line) && line !== '---');
  if (said.some((line) => /^host\s*[\s=]\s*\S/i.test(line))) return sshConfig(said);
  if (said[0]?.startsWith('[') === true || said.some((line) => /\bansible_\w+=/.test(line))) return ansibleIni(said);
  if (said.some((line) => /^(hosts|children):/.test(line))) return ansibleYaml(text);
  return plainLines(said);
}

interface Draft {
  address?: string | undefined;
  port?: number | undefined;
  user?: string | undefined;
  groups: Set<string>;
}

class Drafts {
  private readonly byName = new Map<string, Draft>();
  private readonly left = new Set<string>();

  leave(sentence: string): void {
    this.left.add(sentence.length > 200 ? `${sentence.slice(0, 199)}…` : sentence);
  }

  /** Null when the name cannot be one machine's. */
  of(name: string): Draft | null {
    if (/[*?![]/.test(name)) {
      this.leave(`"${name}" is a pattern, not one machine.`);
      return null;
    }
    if (!hostNameSchema.safeParse(name).success) {
      this.leave(`"${name}" is no name for a host here: letters, digits, dots, dashes and underscores only.`);
      return null;
    }
    const known = this.byName.get(name) ?? { groups: new Set<string>() };
    this.byName.set(name, known);
    return known;
  }

  done(format: Imported['format']): Imported {
    const hosts = [...this.byName].flatMap(([name, { address = name, port, user, groups }]) => {
      if (!/^[A-Za-z0-9][A-Za-z0-9._:%-]*$/.test(address)) {
        this.leave(`"${address}", the address of ${name}, is none.`);
        return [];
      }
      const more = { ...(port === undefined ? {} : { port }), ...(user === undefined ? {} : { user }) };
      return [{ name, address, ...more, groups: [...groups].sort() }];
    });
    return { format, hosts, left: [...this.left] };
  }
}

function portOf(text: string | undefined): number | undefined {
  const port = Number(text);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

const userPattern = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$/;
const userOf = (text: string | undefined): string | undefined =>
  text !== undefined && userPattern.test(text) ? text : undefined;

function sshConfig(lines: readonly string[]): Imported {
  const drafts = new Drafts();
  let current: Draft[] = [];
  for (const line of lines) {
    const match = /^([A-Za-z]+)\s*(?:=|\s)\s*"?(.*?)"?$/.exec(line);
    const key = match?.[1]?.toLowerCase();
    const value = match?.[2] ?? '';
    if (key === 'host') {
      const names = value.split(/\s+/).filter((name) => name !== '*');
      current = names.flatMap((name) => drafts.of(name) ?? []);
    } else if (key === 'match') current = [];
    else if (key === 'include') drafts.leave(`Include ${value} was not followed: import that file too.`);
    for (const draft of current) {
      // The first value of a key wins, as in ssh.
      if (key === 'hostname' && !value.includes('%')) draft.address ??= value;
      if (key === 'port') draft.port ??= portOf(value);
      if (key === 'user') draft.user ??= userOf(value);
    }
  }
  return drafts.done('ssh config');
}

function takeVariables(draft: Draft, variables: ReadonlyMap<string, string>): void {
  draft.address ??= variables.get('ansible_host') ?? variables.get('ansible_ssh_host');
  draft.port ??= portOf(variables.get('ansible_port') ?? variables.get('ansible_ssh_port'));
  draft.user ??= userOf(variables.get('ansible_user') ?? variables.get('ansible_ssh_user'));
}

function ansibleIni(lines: readonly string[]): Imported {
  const drafts = new Drafts();
  let group: string | null = '';
  for (const line of lines) {
    const section = /^\[([^\]:]+)(:\w+)?\]$/.exec(line);
    if (section !== null) {
      // `:vars` and `:children` sections name no machines.
      group = section[2] === undefined ? (section[1] ?? '') : null;
      continue;
    }
    if (group === null) continue;
    const [name = '', ...rest] = line.split(/\s+/);
    const variables = new Map(
      rest.flatMap((word): [string, string][] => {
        const at = word.indexOf('=');
        return at < 1 ? [] : [[word.slice(0, at), word.slice(at + 1).replace(/^["']|["']$/g, '')]];
      }),
    );
    const draft = drafts.of(name);
    if (draft === null) continue;
    takeVariables(draft, variables);
    if (group !== '' && group !== 'ungrouped' && group !== 'all') draft.groups.add(group);
  }
  return drafts.done('Ansible inventory');
}

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value);

function ansibleYaml(text: string): Imported {
  const drafts = new Drafts();
  let tree: unknown;
  try {
    tree = parse(text, { maxAliasCount: 20, logLevel: 'error' });
  } catch {
    drafts.leave('The inventory is not valid YAML, so no host was taken from it.');
  }
  const walk = (group: string, node: unknown, depth: number): void => {
    if (!isTree(node) || depth > 20) return;
    for (const [name, variables] of Object.entries(isTree(node['hosts']) ? node['hosts'] : {})) {
      const draft = drafts.of(name);
      if (draft === null) continue;
      const words = Object.entries(isTree(variables) ? variables : {}).filter(
        (entry): entry is [string, string | number] => typeof entry[1] === 'string' || typeof entry[1] === 'number',
      );
      takeVariables(draft, new Map(words.map(([key, value]) => [key, String(value)])));
      if (group !== 'all' && group !== 'ungrouped') draft.groups.add(group);
    }
    for (const [child, below] of Object.entries(isTree(node['children']) ? node['children'] : {}))
      walk(child, below, depth + 1);
  };
  for (const [group, node] of Object.entries(isTree(tree) ? tree : {})) walk(group, node, 0);
  return drafts.done('Ansible inventory');
}

/** `name`, `name address`, `name=address`, `user@address:port`. */
function plainLines(lines: readonly string[]): Imported {
  const drafts = new Drafts();
  for (const line of lines) {
    const [first = '', second, ...more] = line.replace(/\s+#.*$/, '').split(/[\s=,]+/);
    const match =
      more.length > 0 ? null : /^(?:([^@]+)@)?(\[[0-9a-fA-F:.]+\]|[^:@]+)(?::(\d+))?$/.exec(second ?? first);
    if (match === null) {
      drafts.leave(`"${line.slice(0, 80)}" is not a name, a name and an address, or user@address:port.`);
      continue;
    }
    const address = (match[2] ?? '').replace(/^\[|\]$/g, '');
    const draft = drafts.of(second === undefined ? address.replaceAll(':', '-') : first);
    if (draft === null) continue;
    draft.address ??= address;
    draft.user ??= userOf(match[1]);
    draft.port ??= portOf(match[3]);
  }
  return drafts.done('plain lines');
}
