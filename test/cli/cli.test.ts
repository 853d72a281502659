import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cli } from '../../src/cli/cli.ts';
import type { CliIo } from '../../src/cli/io.ts';
import { captureSchema, diagnosisSchema } from '../../src/memory/contract.ts';
import { freePort } from '../ssh/sshd.ts';

const folder = mkdtempSync(join(tmpdir(), 'reclaim-cli-'));
const samples = resolve(import.meta.dirname, '../fixtures/cases/samples');
const healthy = join(samples, 'healthy.capture.json');

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function run(args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const io: CliIo = {
    out: (text) => (out += text),
    err: (text) => (err += text),
    ask: () => Promise.resolve(null),
    env: { RECLAIM_DATA_DIR: join(folder, 'data') },
    cwd: folder,
    columns: 100,
    color: false,
    signal: new AbortController().signal,
  };
  const code = await cli(args, io);
  return { code, out, err };
}

describe('the command line', () => {
  it.each<[string, string[], number, RegExp]>([
    ['an unknown command, with the nearest one', ['diagnos'], 2, /no command "diagnos".*Did you mean "diagnose"/],
    ['an unknown option', ['diagnose', '--local', '--nope'], 2, /Unknown option '--nope'.*Usage: reclaim diagnose/],
    ['a host nobody configured', ['diagnose', 'gpu-box-3'], 2, /no host "gpu-box-3".*add one under "hosts"/],
    ['two things to look at', ['diagnose', '--local', healthy], 2, /a host or --local, not both/],
    ['nothing to look at', ['capture'], 2, /Name a host or --local/],
    ['a file that is not there', ['diagnose', './nope.json'], 1, /There is no file \.\/nope\.json/],
    ['a file that is no capture', ['diagnose', import.meta.filename], 1, /not a capture of a box/],
    ['a receipt that is not there', ['receipt', 'nope.json'], 1, /there is no such file/],
    ['a receipt that is none', ['receipt', healthy], 1, /does not hold/],
    ['an unknown role', ['serve', '--role', 'boss'], 2, /no role "boss"/],
    ['a bot without its token', ['serve'], 2, /SLACK_BOT_TOKEN is not set.*npm run demo/s],
    ['a configuration that is not there', ['hosts', '--config', 'no.yaml'], 2, /no configuration file at/],
  ])('answers %s with one sentence and an exit code', async (_what, args, code, said) => {
    const answer = await run(args);
    expect(answer.err).toMatch(said);
    expect(answer.err).not.toMatch(/\n\s+at /);
    expect(answer.code).toBe(code);
    expect(answer.out).toBe('');
  });

  it('says all at once what is wrong with reclaim.yaml', async () => {
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'hosts: { a: { adress: x } }\npolicy: { grace: soon }\n');
    const { code, err } = await run(['hosts', '--config', file]);
    expect(code).toBe(2);
    expect(err).toMatch(/bad\.yaml:1: .*did you mean "address"/);
    expect(err).toMatch(/bad\.yaml:2: policy\.grace/);
  });

  it('leaves with 4 when the box cannot be reached, and says what was not done', async () => {
    const file = join(folder, 'away.yaml');
    writeFileSync(join(folder, 'known_hosts'), '');
    const host = `address: 127.0.0.1, port: ${await freePort()}, identity: ./key, knownHosts: [./known_hosts]`;
    writeFileSync(file, `hosts: { away: { ${host} } }\n`);
    const { code, err } = await run(['diagnose', 'away', '--config', file]);
    expect(code).toBe(4);
    expect(err).toMatch(/away/);
  });

  it('prints with --json exactly one object of the contract', async () => {
    const { code, out } = await run(['diagnose', healthy, '--json']);
    expect(code).toBe(0);
    expect(diagnosisSchema.parse(JSON.parse(out)).verdict).toBe('nothing_to_reclaim');
  });

  it('prints a report without colours when nobody asked for them', async () => {
    const { out } = await run(['diagnose', healthy]);
    expect(out).toMatch(/Nothing to reclaim/);
    expect(out).not.toContain('\u001b');
  });

  it.skipIf(process.platform !== 'linux')('captures this machine in the format it diagnoses', async () => {
    const { code, out } = await run(['capture', '--local', '--redact']);
    expect(code).toBe(0);
    expect(captureSchema.parse(JSON.parse(out)).files['/proc/meminfo']).toMatch(/^MemTotal:/);
    const file = join(folder, 'here.json');
    writeFileSync(file, out);
    const diagnosed = await run(['diagnose', file, '--json']);
    expect(diagnosisSchema.parse(JSON.parse(diagnosed.out)).memory.totalKiB).toBeGreaterThan(0);
  });

  it('lists every command in its help, and examples in the help of each', async () => {
    const { out } = await run(['help']);
    for (const name of ['diagnose', 'capture', 'run', 'hosts', 'history', 'doctor', 'receipt', 'serve', 'demo']) {
      expect(out).toMatch(new RegExp(`^ {2}${name} `, 'm'));
      expect((await run([name, '--help'])).out).toMatch(/Examples:/);
    }
  });
});
