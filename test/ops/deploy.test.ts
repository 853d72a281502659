/**
 * What is handed out for running Reclaim: compose file, image, systemd unit. There is no Docker here, so nothing below
 * starts a container: the compose file is read as compose reads it, the image is laid out by hand and run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { commands } from '../../src/cli/commands.ts';
import { envSchema } from '../../src/config/schema.ts';
import { secretNames } from '../../src/config/secrets.ts';
import { roles } from '../../src/serve.ts';
import { has } from '../requests/servers.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The keys of the compose specification that this file may use: a misspelt one is refused here, as compose does. */
const service = z.strictObject({
  build: z.literal('.').optional(),
  image: z.string(),
  init: z.literal(true).optional(),
  read_only: z.literal(true),
  user: z.string(),
  cap_drop: z.tuple([z.literal('ALL')]),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]),
  tmpfs: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  stop_grace_period: z.string().optional(),
  restart: z.literal('unless-stopped').optional(),
  networks: z.array(z.string()).optional(),
  network_mode: z.string().optional(),
  depends_on: z.record(z.string(), z.strictObject({ condition: z.literal('service_healthy') })).optional(),
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string()).optional(),
  secrets: z.array(z.string()).optional(),
  ports: z.array(z.string().startsWith('127.0.0.1:')).optional(),
  deploy: z.strictObject({ replicas: z.number() }).optional(),
  healthcheck: z
    .union([
      z.strictObject({ disable: z.literal(true) }),
      z.strictObject({ test: z.array(z.string()), interval: z.string(), timeout: z.string(), retries: z.number() }),
    ])
    .optional(),
  profiles: z.array(z.string()).optional(),
  mem_limit: z.string().optional(),
});
const composeSchema = z.object({
  name: z.string(),
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.strictObject({ internal: z.boolean().optional() })),
  volumes: z.record(z.string(), z.null()),
  secrets: z.record(z.string(), z.strictObject({ file: z.string() })),
});

describe('docker-compose.yml', () => {
  const compose = composeSchema.parse(parse(read('docker-compose.yml'), { merge: true }));
  const { redis, gateway, worker, demo } = compose.services;
  const ours = Object.entries(compose.services).filter(([name]) => name !== 'redis');

  it('has redis with a log and no eviction, published nowhere, one gateway, two workers, and a demo apart', () => {
    expect(redis!.command.join(' ')).toMatch(/--appendonly yes .*--maxmemory-policy noeviction/);
    expect(redis!.ports).toBeUndefined();
    expect(redis!.networks!.every((name) => compose.networks[name]!.internal === true)).toBe(true);
    expect(gateway!.command).toEqual(['serve', '--role', 'gateway']);
    expect(worker!.command).toEqual(['serve', '--role', 'worker']);
    expect(worker!.deploy?.replicas).toBe(2);
    expect(demo!.profiles).toEqual(['demo']);
    expect(Object.values(compose.services).filter((s) => s.profiles !== undefined)).toHaveLength(1);
  });

  it('starts nothing before what it depends on is healthy, and lets jobs end', () => {
    expect(redis!.healthcheck).toMatchObject({ test: ['CMD', 'redis-cli', 'ping'] });
    expect(Object.keys(gateway!.depends_on!)).toEqual(['redis']);
    expect(Object.keys(worker!.depends_on!)).toEqual(['redis', 'gateway']);
    expect(read('Dockerfile')).toMatch(/^HEALTHCHECK [\s\S]*\/readyz/m);
    expect(Number.parseInt(gateway!.stop_grace_period!, 10)).toBeGreaterThan(25 + 5);
  });

  it('hands secrets over as files, to the gateway alone, by names the program reads', () => {
    const fromFiles = secretNames.map((name) => `${name}_FILE`);
    for (const [, { environment = {}, secrets = [] }] of ours) {
      for (const [name, value] of Object.entries(environment)) {
        expect([...Object.keys(envSchema.shape), ...fromFiles]).toContain(name);
        if (name.endsWith('_FILE')) expect(secrets).toContain(basename(value));
        else expect(value).not.toMatch(/xox|xapp/);
      }
      for (const secret of secrets) expect(compose.secrets[secret]).toBeDefined();
    }
    expect(worker!.secrets).toBeUndefined();
    expect(Object.keys(gateway!.environment!)).toEqual(expect.arrayContaining(['SLACK_BOT_TOKEN_FILE', 'QUEUE_URL']));
  });

  it('names networks, volumes and commands that exist', () => {
    for (const [, s] of Object.entries(compose.services)) {
      for (const network of s.networks ?? []) expect(Object.keys(compose.networks)).toContain(network);
      for (const volume of s.volumes ?? []) {
        if (!volume.startsWith('.')) expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0]);
      }
    }
    for (const [, { command }] of ours) expect(Object.keys(commands)).toContain(command[0]);
    for (const { command } of [gateway!, worker!]) expect(roles).toContain(command[2]);
  });
});

describe('the Dockerfile', () => {
  const text = read('Dockerfile');
  const [, final = ''] = text.split(/^FROM .* AS packages$/m)[1]!.split(/^(?=FROM )/m);
  const copies = [...final.matchAll(/^COPY (?!--from)(.*) (\S+)$/gm)].map((m) => ({
    from: m[1]!.split(' '),
    to: m[2]!,
  }));

  it('installs from the lock file in a stage of its own, and ends as an unprivileged user', () => {
    expect(text).toMatch(/^RUN npm ci --omit=dev/m);
    expect([...final.matchAll(/^USER (\S+)/gm)].map((m) => m[1])).toEqual(['node']);
    expect(final).toMatch(/^COPY --from=packages \/app\/node_modules node_modules$/m);
    expect(text).not.toMatch(/:latest|curl |apt-get/);
  });

  it('lets into the build what it copies, and nothing else', () => {
    const allowed = [...read('.dockerignore').matchAll(/^!(.*)$/gm)].map((m) => m[1]);
    expect(read('.dockerignore')).toMatch(/^\*$/m);
    const copied = [...copies.flatMap((c) => c.from), 'package-lock.json'];
    expect(copied.sort()).toEqual(allowed.sort());
  });

  it('makes a folder in which the program runs', () => {
    const app = mkdtempSync(join(tmpdir(), 'reclaim-image-'));
    for (const { from, to } of copies) {
      for (const path of from)
        cpSync(join(root, path), to === './' ? join(app, path) : join(app, to), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(app, 'node_modules'));
    const said = spawnSync(process.execPath, [join(app, 'bin/reclaim.mjs'), 'capture', '--local'], {
      cwd: tmpdir(),
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    rmSync(app, { recursive: true, force: true });
    expect(said.status).toBe(0);
    expect(JSON.parse(said.stdout)).toMatchObject({ capture: 1 });
  });
});

describe.skipIf(!has('systemd-analyze'))('the systemd unit', () => {
  const unit = join(root, 'deploy/reclaim.service');

  it('is one systemd takes without a word', () => {
    const checked = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' });
    expect(checked.stderr.split('\n').filter((line) => line.includes('reclaim.service'))).toEqual([]);
    expect(checked.status).toBe(0);
  });

  it('is hardened further than systemd calls OK, reloads by SIGHUP and leaves jobs time to end', () => {
    const said = execFileSync('systemd-analyze', ['security', '--offline=true', unit], { stdio: 'pipe' }).toString();
    expect(Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(said)?.[1])).toBeLessThan(2);
    const text = readFileSync(unit, 'utf8');
    expect(text).toMatch(/^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1])).toBeGreaterThan(25);
    expect(existsSync(join(root, 'docs/reference.md'))).toBe(true);
  });
});
