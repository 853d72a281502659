import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../src/cli/cli.ts';
import { loadConfig } from '../../src/config/load.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reclaim-init-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function run(
  args: string[],
  answers: (string | null)[] = [],
): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const left = [...answers];
  const code = await cli(['init', ...args], {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    ask: () => Promise.resolve(left.shift() ?? null),
    env: {},
    cwd: folder,
    columns: 100,
    color: false,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

const path = (name: string) => join(folder, name);

describe('reclaim init', () => {
  it('writes from flags what the bot then reads, and says what comes next', async () => {
    writeFileSync(path('ssh'), 'Host gpu-box-4\n  HostName 192.0.2.14\nHost gpu-*\n');
    const { code, out, err } = await run([
      ...['--from', 'ssh', '--host', 'gpu-box-3=192.0.2.13', '--privilege', 'helper', '--approver', 'U0123ABCD'],
    ]);
    expect([code, err]).toEqual([0, expect.stringMatching(/1 host\.\n {2}left out: "gpu-\*" is a pattern/)]);
    expect(out).toMatch(/ssh-keygen .*reclaim trust gpu-box-3.*manifest\.yaml.*reclaim doctor.*reclaim serve/s);
    const config = loadConfig({ cwd: folder, env: {} });
    expect([...config.hosts.values()].map((h) => [h.name, h.address, h.privilege])).toEqual([
      ['gpu-box-3', '192.0.2.13', 'helper'],
      ['gpu-box-4', '192.0.2.14', 'helper'],
    ]);
    expect(config.policy.approvers).toEqual(['U0123ABCD']);
    expect(statSync(path('.env')).mode & 0o777).toBe(0o600);
  });

  it('asks where nothing was said, and takes Enter for an answer', async () => {
    const { code, out } = await run([], ['gpu-box-3=192.0.2.13', '', '', '']);
    expect(code).toBe(0);
    expect(out).toMatch(/Name who may approve: policy\.approvers\. Until then nobody can\./);
    expect(loadConfig({ cwd: folder, env: {} }).hosts.get('gpu-box-3')).toMatchObject({
      user: 'reclaim',
      privilege: 'sudo',
    });
  });

  it('overwrites nothing', async () => {
    writeFileSync(path('.env'), 'SLACK_BOT_TOKEN=xoxb-mine\n');
    expect((await run(['--host', 'a=192.0.2.1'])).err).toMatch(/\.env is there already and was left alone/);
    expect(readFileSync(path('.env'), 'utf8')).toBe('SLACK_BOT_TOKEN=xoxb-mine\n');
    const before = readFileSync(path('reclaim.yaml'), 'utf8');
    const again = await run(['--host', 'b=192.0.2.2']);
    expect([again.code, again.err]).toEqual([2, expect.stringMatching(/there already, so nothing was written/)]);
    expect(readFileSync(path('reclaim.yaml'), 'utf8')).toBe(before);
  });

  it.each<[string, string[], (string | null)[], RegExp]>([
    ['no terminal to ask in', [], [null], /no terminal to ask in, so nothing was written/],
    ['a privilege there is not', ['--privilege', 'god'], [], /"god" is none of sudo, helper, root, none/],
    ['an approver by name', ['--approver', '@bo'], [], /"@bo" is no Slack id/],
    ['a user that is none', ['--user', 'a b'], [], /"a b" is not a Unix user name/],
    ['a host that is none', ['--host', 'gpu=box!'], [], /"box!", the address of gpu, is none\. Nothing was written/],
    ['a file that is not there', ['--from', 'nope'], [], /nope cannot be read \(there is no such file\)/],
  ])('says in a sentence what is wrong and writes nothing: %s', async (_what, args, answers, said) => {
    const { code, err } = await run(args, answers);
    expect(err).toMatch(said);
    expect(code).toBeGreaterThan(0);
    expect(existsSync(path('reclaim.yaml'))).toBe(false);
  });
});
