/** What `npm pack` makes, installed as anybody would: in an empty folder and globally, run from somewhere else. */
import { execFile, execFileSync, spawn, spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
/** From the cache that installing this checkout filled; the network only for what is not there. */
const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', '--omit=dev'];

describe('the packed program', { timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-pack-'));
  const [empty, prefix, elsewhere] = ['empty', 'prefix', 'elsewhere'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, npm_config_cache: npmCache() };
  let files: string[] = [];
  let slack: LocalSlack;

  beforeAll(async () => {
    for (const dir of [empty, prefix, elsewhere]) mkdirSync(dir);
    const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root, stdio: 'pipe' });
    const [about] = JSON.parse(packed.toString()) as { filename: string; files: { path: string }[] }[];
    files = about!.files.map((file) => file.path);
    const tarball = join(folder, about!.filename);
    await run('npm', ['install', ...quietly, tarball], { cwd: empty, env });
    await run('npm', ['install', '--global', '--prefix', prefix, ...quietly, tarball], { cwd: elsewhere, env });
    slack = await startLocalSlack({ people: [], channels: [], botToken: 'xoxb-p', appToken: 'xapp-p' });
  }, 300_000);
  afterAll(async () => {
    await slack.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The global one, found by its link, from a folder that has nothing to do with it. */
  const reclaim = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync(join(prefix, 'bin/reclaim'), args, { cwd: elsewhere, env, encoding: 'utf8' });

  it('holds what it needs to run and to be run, and nothing of its making', () => {
    for (const needed of [
      'bin/reclaim.mjs',
      'host/reclaim-host.sh',
      'src/cli/main.ts',
      'jobs/index.ts',
      'manifest.yaml',
      'reclaim.example.yaml',
      '.env.example',
      'deploy/reclaim.service',
      'deploy/prometheus-rules.yml',
      'docs/reference.md',
      'README.md',
      'LICENSE',
    ]) {
      expect(files).toContain(needed);
    }
    const allowed =
      /^(bin|src|jobs|host|deploy|docs)\/|^(package\.json|README\.md|LICENSE|manifest\.yaml|reclaim\.example\.yaml|\.env\.example)$/;
    expect(files.filter((path) => !allowed.test(path))).toEqual([]);
    expect(
      files.filter((path) => /(^|\/)(test|bench|node_modules|\.git|\.env$)|\.test\.ts$|\.log$/.test(path)),
    ).toEqual([]);
  });

  it('runs by its name in the folder it was installed in', () => {
    const said = spawnSync('npx', ['--no-install', 'reclaim', 'doctor', '--json'], {
      cwd: empty,
      env,
      encoding: 'utf8',
    });
    expect(said.stderr).toBe('');
    expect(said.status).toBe(0);
    const { rows } = JSON.parse(said.stdout) as { rows: { what: string; state: string }[] };
    expect(rows.filter((row) => row.state === 'fail')).toEqual([]);
    expect(rows.find((row) => row.what === 'store')?.state).toBe('ok');
  });

  it('runs from anywhere when installed globally: help, a look at this machine, and a wrong word', () => {
    expect(reclaim('help')).toMatchObject({ status: 0, stderr: '' });
    expect(reclaim('diagnoze').status).toBe(2);
    const looked = reclaim('diagnose', '--local', '--json');
    expect(JSON.parse(looked.stdout)).toMatchObject({ partial: expect.any(Array) as unknown, memory: {} });
  });

  it('plays the whole demo by itself', () => {
    const played = reclaim('demo', '--auto');
    expect(played.stdout.slice(-2_000)).toMatch(/leftover processes are gone/);
    expect(played.status).toBe(0);
  });

  it('serves, answers for its health, and ends in order', async () => {
    const child = spawn(join(prefix, 'bin/reclaim'), ['serve'], {
      cwd: elsewhere,
      env: {
        ...env,
        HTTP_PORT: '0',
        SLACK_BOT_TOKEN: 'xoxb-p',
        SLACK_APP_TOKEN: 'xapp-p',
        SLACK_API_URL: slack.apiUrl,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let port = '';
    for await (const line of createInterface({ input: child.stderr })) {
      port = /is up, http on 127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? '';
      if (port !== '') break;
    }
    child.stderr.resume();
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect(await ready.json()).toMatchObject({ ready: true });
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number | null];
    expect(code).toBe(0);
  });
});

function npmCache(): string {
  return execFileSync('npm', ['config', 'get', 'cache']).toString().trim();
}
