import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { findHost } from '../../src/config/hosts.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ReclaimError } from '../../src/errors.ts';

const folders: string[] = [];
afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true });
});

function folder(files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-config-'));
  folders.push(dir);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

function faultOf(run: () => unknown): ReclaimError {
  try {
    run();
  } catch (error) {
    if (error instanceof ReclaimError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const load = (files: Record<string, string>, env: Record<string, string> = {}) =>
  loadConfig({ cwd: folder(files), env });

describe('the configuration', () => {
  it('starts empty with safe defaults when there is no file', () => {
    const config = load({});
    expect(config.hosts.size).toBe(0);
    expect(config.policy).toMatchObject({
      approvers: [],
      self_approval: 'never',
      required: { kill: 1, kill_others: 2, drop_caches: 1, remove_files: 1 },
      pending_ttl: 900_000,
      unused_ttl: 120_000,
      grace: 10_000,
      min_age: { process: 0, shm: 300_000, sysv: 300_000 },
      break_glass: false,
    });
    expect(config.queueUrl).toMatch(/^pglite:.*\.reclaim\/store$/);
  });

  it.each([
    ['policy: { pending_ttl: 0s }', 'policy.pending_ttl: this must be longer than nothing'],
    ['policy: { unused_ttl: 0.0m }', 'policy.unused_ttl: this must be longer than nothing'],
    ['alerts: { watch: { every: 0s } }', 'alerts.watch.every: this must be longer than nothing'],
    ['retention: { requests: 0d }', 'retention.requests: this must be longer than nothing'],
    [`policy: { grace: ${'9'.repeat(400)}s }`, 'policy.grace: a duration is at most a hundred years'],
  ])('refuses a time that cannot be: %s', (yaml, said) => {
    expect(faultOf(() => load({ 'reclaim.yaml': yaml })).userText).toContain(said);
  });

  it('fills every host with the defaults and lets the host win', () => {
    const config = load({
      'reclaim.yaml': `
defaults: { user: ops, port: 2222, privilege: root, knownHosts: [keys/known_hosts] }
hosts:
  gpu-box-3: { address: 192.0.2.13, aliases: [node-3], groups: [train] }
  gpu-box-4: { address: 192.0.2.14, port: 22, user: other, jump: gpu-box-3 }
`,
    });
    expect(config.hosts.get('gpu-box-3')).toMatchObject({ user: 'ops', port: 2222, privilege: 'root' });
    expect(config.hosts.get('gpu-box-3')?.knownHosts[0]).toMatch(/^\/.*\/keys\/known_hosts$/);
    expect(config.hosts.get('gpu-box-4')).toMatchObject({ user: 'other', port: 22, jump: 'gpu-box-3' });
  });

  it('lists every fault at once, with file, line, path and the nearest key', () => {
    const error = faultOf(() =>
      load(
        {
          'reclaim.yaml': [
            'hosts:',
            '  gpu-box-3: { adress: 192.0.2.13 }',
            'policy:',
            '  pending_ttl: soon',
            '  requird: { kill: 1 }',
          ].join('\n'),
          '.env': 'SLACK_BOT_TOKEN=nope\n',
        },
        { HTTP_PORT: 'many' },
      ),
    );
    expect(error.code).toBe('config_invalid');
    expect(error.userText).toMatch(/reclaim\.yaml:2: hosts\.gpu-box-3\.adress: .*did you mean "address"/);
    expect(error.userText).toMatch(/reclaim\.yaml:4: policy\.pending_ttl: write a duration like 90s, 15m or 2h/);
    expect(error.userText).toMatch(/reclaim\.yaml:5: policy\.requird: .*did you mean "required"/);
    expect(error.userText).toMatch(/\.env: SLACK_BOT_TOKEN: a bot token begins with xoxb-/);
    expect(error.userText).toMatch(/environment: HTTP_PORT/);
    expect(error.userText).not.toContain('nope');
  });

  it.each([
    ['not YAML', 'hosts: [', /reclaim\.yaml:1: /],
    ['the same key twice', 'hosts: {}\nhosts: {}', /reclaim\.yaml:2: /],
    [
      'a name used by two hosts',
      'hosts: { a: { address: x, aliases: [B] }, b: { address: y } }',
      /already names host a/,
    ],
    ['a jump over an unknown host', 'hosts: { a: { address: x, jump: nowhere } }', /there is no host "nowhere"/],
    ['a host name with a shell in it', 'hosts: { "a;reboot": { address: x } }', /hosts/],
    ['an approver who is no Slack id', 'policy: { approvers: [ana] }', /a Slack user id looks like/],
    ['a protect rule that names nothing', 'policy: { protect: [{}] }', /name one of exe, comm, unit, user/],
  ])('refuses %s', (_what, yaml, said) => {
    expect(faultOf(() => load({ 'reclaim.yaml': yaml })).userText).toMatch(said);
  });

  it('lets the real environment win over .env, and reads an empty line as not set', () => {
    const config = load({ '.env': 'HTTP_PORT=1\nQUEUE_URL=\n' }, { HTTP_PORT: '2' });
    expect(config.env.HTTP_PORT).toBe(2);
    expect(config.queueUrl).toMatch(/^pglite:/);
  });

  it('says which file is missing when one was named', () => {
    const error = faultOf(() => loadConfig({ cwd: folder({}), env: {}, file: 'other.yaml' }));
    expect(error.userText).toMatch(/no configuration file at .*other\.yaml/);
  });

  it('gives another policy another version', () => {
    const one = load({ 'reclaim.yaml': 'policy: { grace: 10s }' });
    const two = load({ 'reclaim.yaml': 'policy: { grace: 11s }' });
    expect(one.policyVersion).not.toBe(two.policyVersion);
  });
});

describe('finding a host', () => {
  const config = load({ 'reclaim.yaml': 'hosts: { gpu-box-3: { address: 192.0.2.13, aliases: [node-3] } }' });

  it.each(['gpu-box-3', 'GPU-Box-3', 'node-3'])('knows it as %s', (said) => {
    expect(findHost(config, said).name).toBe('gpu-box-3');
  });

  it('answers a near miss with a question and never with the box', () => {
    expect(faultOf(() => findHost(config, 'gpu-bx-3')).userText).toMatch(/Did you mean gpu-box-3\?/);
  });

  it('names the known hosts when nothing is near', () => {
    expect(faultOf(() => findHost(config, '192.0.2.13')).userText).toMatch(/Known hosts: gpu-box-3\./);
  });
});
