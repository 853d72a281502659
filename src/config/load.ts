/**
 * Reads .env and reclaim.yaml into one checked Config. Every fault is listed at once, with file, line and path, and an
 * unknown key names the nearest one that exists. Secrets never appear in what is said about them.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { LineCounter, isNode, parseDocument, type Document } from 'yaml';
import type { z } from 'zod';
import { ReclaimError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { withSecretFiles } from './secrets.ts';
import {
  envSchema,
  yamlSchema,
  type Config,
  type Env,
  type HostConfig,
  type HostSettings,
  type Yaml,
} from './schema.ts';

export interface ConfigSources {
  readonly cwd: string;
  /** The real environment: it wins over `.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** From --config; RECLAIM_CONFIG and ./reclaim.yaml are looked for otherwise. */
  readonly file?: string | undefined;
}

/** @throws ReclaimError `config_invalid` with every fault, one a line. */
export function loadConfig(sources: ConfigSources): Config {
  const faults: string[] = [];
  const env = readEnv(sources, faults);
  const file = findFile(sources, env);
  const yaml = file === null ? yamlSchema.parse({}) : readYaml(file, faults);
  if (env === null || yaml === null || faults.length > 0) {
    const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
    throw new ReclaimError(
      'config_invalid',
      `The configuration has ${count}, so nothing was started. Mend ${faults.length === 1 ? 'it' : 'them'} and try again:\n` +
        faults.map((fault) => `  - ${fault}`).join('\n'),
    );
  }
  const base = file === null ? sources.cwd : dirname(file);
  const dataDir = resolve(sources.cwd, env.RECLAIM_DATA_DIR);
  return {
    file,
    env,
    hosts: new Map(Object.entries(yaml.hosts).map(([name, host]) => [name, hostConfig(name, host, yaml, base)])),
    policy: yaml.policy,
    policyVersion: createHash('sha256').update(JSON.stringify(yaml.policy)).digest('hex').slice(0, 12),
    alerts: yaml.alerts,
    retention: yaml.retention,
    dataDir,
    queueUrl: env.QUEUE_URL ?? `pglite:${join(dataDir, 'store')}`,
  };
}

function readEnv(sources: ConfigSources, faults: string[]): Env | null {
  const path = join(sources.cwd, '.env');
  const fromFile = existsSync(path) ? parseEnv(readText(path)) : {};
  const merged: Record<string, string> = {};
  for (const [key, value] of Object.entries({ ...fromFile, ...sources.env })) {
    // An empty line in .env.example means "not set".
    if (value !== undefined && value !== '') merged[key] = value;
  }
  const parsed = envSchema.safeParse(withSecretFiles(merged, sources.cwd, faults));
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const key = String(issue.path[0] ?? '');
    faults.push(`${key in fromFile ? '.env' : 'environment'}: ${key}: ${issue.message}`);
  }
  return null;
}

function findFile(sources: ConfigSources, env: Env | null): string | null {
  const named = sources.file ?? env?.RECLAIM_CONFIG;
  if (named !== undefined) {
    const path = resolve(sources.cwd, named);
    if (!existsSync(path)) {
      throw new ReclaimError(
        'config_invalid',
        `There is no configuration file at ${path}, so nothing was started. Name another with --config, or copy reclaim.example.yaml there.`,
      );
    }
    return path;
  }
  const path = join(sources.cwd, 'reclaim.yaml');
  return existsSync(path) ? path : null;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ReclaimError(
      'config_invalid',
      `${path} cannot be read, so nothing was started. Check its owner and mode, then try again.`,
      { cause },
    );
  }
}

function readYaml(file: string, faults: string[]): Yaml | null {
  const lines = new LineCounter();
  const document = parseDocument(readText(file), { lineCounter: lines, uniqueKeys: true });
  for (const error of document.errors) {
    faults.push(`${file}:${lines.linePos(error.pos[0]).line}: ${error.message.split('\n')[0] ?? 'not valid YAML'}`);
  }
  if (document.errors.length > 0) return null;
  const parsed = yamlSchema.safeParse(document.toJS() ?? {});
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) faults.push(...describeIssue(issue, document, lines, file));
  return null;
}

function describeIssue(issue: z.core.$ZodIssue, document: Document, lines: LineCounter, file: string): string[] {
  const at = (path: readonly PropertyKey[]): string => {
    for (let length = path.length; length > 0; length -= 1) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return `${file}:${lines.linePos(node.range[0]).line}`;
    }
    return file;
  };
  if (issue.code !== 'unrecognized_keys') {
    return [`${at(issue.path)}: ${issue.path.map(String).join('.') || '(top level)'}: ${issue.message}`];
  }
  return issue.keys.map((key) => {
    const known = knownKeys(issue.path);
    const near = nearest(key, known);
    const hint = near === null ? `known keys: ${known.join(', ')}` : `did you mean "${near}"?`;
    return `${at([...issue.path, key])}: ${[...issue.path.map(String), key].join('.')}: there is no such key; ${hint}`;
  });
}

/** The keys allowed at a path, read from the schema itself so that the hint can never be out of date. */
function knownKeys(path: readonly PropertyKey[]): string[] {
  let schema: unknown = yamlSchema;
  for (const part of path) {
    const shape = shapeOf(schema);
    schema = shape === null ? elementOf(schema) : shape[String(part)];
  }
  return Object.keys(shapeOf(schema) ?? {});
}

function unwrap(schema: unknown): unknown {
  let inner = schema;
  while (isRecord(inner) && isRecord(inner['def']) && 'innerType' in inner['def']) inner = inner['def']['innerType'];
  return inner;
}

function shapeOf(schema: unknown): Record<string, unknown> | null {
  const inner = unwrap(schema);
  return isRecord(inner) && isRecord(inner['shape']) ? inner['shape'] : null;
}

function elementOf(schema: unknown): unknown {
  const inner = unwrap(schema);
  if (!isRecord(inner) || !isRecord(inner['def'])) return null;
  return inner['def']['valueType'] ?? inner['def']['element'] ?? null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function hostConfig(name: string, host: HostSettings, yaml: Yaml, base: string): HostConfig {
  const d = yaml.defaults;
  const path = (text: string): string => expandPath(text, base);
  const agentIdentity = host.agentIdentity ?? d.agentIdentity;
  const identity = host.identity ?? d.identity ?? (agentIdentity === undefined ? '~/.ssh/reclaim_ed25519' : undefined);
  const sshConfig = host.sshConfig ?? d.sshConfig;
  const open = ['user', 'port', 'identity', 'knownHosts'] as const;
  const defaulted = open.filter((key) => host[key] === undefined && d[key] === undefined);
  return {
    name,
    address: host.address,
    port: host.port ?? d.port ?? 22,
    user: host.user ?? d.user ?? 'reclaim',
    privilege: host.privilege ?? d.privilege ?? 'sudo',
    ...(identity === undefined ? {} : { identity: path(identity) }),
    ...(agentIdentity === undefined ? {} : { agentIdentity: path(agentIdentity) }),
    knownHosts: (host.knownHosts ?? d.knownHosts ?? ['~/.ssh/known_hosts']).map(path),
    ...(sshConfig === undefined ? {} : { sshConfig: path(sshConfig) }),
    ...(defaulted.length === 0 ? {} : { defaulted }),
    ...(host.hostKeyAlias === undefined ? {} : { hostKeyAlias: host.hostKeyAlias }),
    ...(host.jump === undefined ? {} : { jump: host.jump }),
    aliases: host.aliases,
    groups: host.groups,
    ...(host.owner === undefined ? {} : { owner: host.owner }),
  };
}

function expandPath(text: string, base: string): string {
  if (text === '~' || text.startsWith('~/')) return join(homedir(), text.slice(2));
  return isAbsolute(text) ? text : resolve(base, text);
}
