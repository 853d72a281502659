/** `trace`, `export` and `import`, as a person in a terminal uses them, over the embedded store. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../../src/cli/cli.ts';
import { openRecords } from '../../src/compose.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openStates } from '../../src/requests/state.ts';
import { totalsOf } from '../../src/requests/totals.ts';
import { TestDirectory, thoughtOf } from '../requests/fixtures.ts';

const folder = mkdtempSync(join(tmpdir(), 'reclaim-backup-'));

async function reclaim(dir: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await cli(args, {
    out: (text) => (out += text),
    err: (text) => (err += text),
    ask: () => Promise.resolve(null),
    env: { RECLAIM_DATA_DIR: dir },
    cwd: folder,
    columns: 200,
    color: false,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}
const configOf = (dir: string) => loadConfig({ cwd: folder, env: { RECLAIM_DATA_DIR: dir } });

describe('trace, export and import', () => {
  let ended = '';
  let backup = '';

  beforeAll(async () => {
    writeFileSync(join(folder, 'reclaim.yaml'), 'policy: { approvers: [UAAA] }\n');
    for (const dir of ['a', 'b', 'c']) mkdirSync(join(folder, dir));
    const records = await openRecords(configOf('a'));
    const { requests } = records;
    const ask = async (host: string) =>
      (await requests.ask({ host, requester: { id: 'UANN' }, surface: 'cli' })).record.id;
    ended = await ask('box-1');
    await requests.looked(ended, { thought: thoughtOf([{ pid: 7, user: 'ann' }]), hostKey: 'SHA256:k' });
    const person = { id: 'UAAA' };
    await requests.decide(
      { id: ended, person, surface: 'cli', verdict: 'deny', reason: 'not now' },
      new TestDirectory(),
    );
    const approved = await ask('box-2');
    await requests.looked(approved, { thought: thoughtOf([{ pid: 8, user: 'ann' }]), hostKey: 'SHA256:k' });
    for (const id of ['UAAA']) {
      await requests.decide({ id: approved, person: { id }, surface: 'cli', verdict: 'approve' }, new TestDirectory());
    }
    await ask('box-3');
    await records.close();
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('traces one request, with the lines of the log that name it and no others', async () => {
    const line = (request: string, msg: string) =>
      JSON.stringify({ level: 'warn', time: Date.now(), instance: 'worker-9', job: 'look', request, msg });
    writeFileSync(join(folder, 'log'), ['not json', line(ended, 'slow box'), line('other', ended)].join('\n'));
    const { code, out } = await reclaim('a', 'trace', ended, '--json', '--log', 'log');
    expect(code).toBe(0);
    const { trace, ...about } = JSON.parse(out) as {
      trace: { from: string; who: string; what: string; why: string }[];
    };
    expect(about).toMatchObject({
      request: ended,
      host: 'box-1',
      state: 'denied',
      policyVersion: configOf('a').policyVersion,
    });
    expect(trace.map((t) => [t.from, t.what])).toEqual([
      ['audit', 'asked'],
      ['audit', 'looked'],
      ['audit', 'denied'],
      ['log', 'look'],
    ]);
    expect(trace[2]).toMatchObject({ who: 'UAAA', why: expect.stringContaining('not now') as string });
    const human = await reclaim('a', 'trace', ended);
    expect(human.out).toMatch(/^request r\w+, host box-1, state denied, policyVersion \w+\n/);
    expect(human.out).toMatch(/audit\s+UAAA\s+denied\s+Denied by @UAAA/);
    expect(await reclaim('a', 'trace', 'r000')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no request r000') as string,
    });
  });

  it('exports everything, one object a line', async () => {
    const { code, out, err } = await reclaim('a', 'export');
    expect(code).toBe(0);
    backup = out;
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => Object.keys(JSON.parse(line) as object)[0]);
    expect(lines.filter((kind) => kind === 'request')).toHaveLength(3);
    expect([lines[0], lines.at(-1)]).toEqual(['backup', 'end']);
    expect(err).toMatch(/^3 requests and \d+ audit events\.$/m);
  });

  it('imports into an empty store: the same history, nothing open that could still be run, and twice changes nothing', async () => {
    writeFileSync(join(folder, 'backup.jsonl'), backup);
    expect((await reclaim('b', 'import', 'backup.jsonl')).code).toBe(0);
    expect((await reclaim('b', 'import', 'backup.jsonl')).code).toBe(0);
    const opened = await openRecords(configOf('b'));
    const { store } = opened;
    expect(await store.list({ states: openStates, limit: 10 })).toEqual([]);
    const records = await store.list({ limit: 10 });
    expect(Object.fromEntries(records.map((r) => [r.host, r.state]))).toEqual({
      'box-1': 'denied',
      'box-2': 'superseded',
      'box-3': 'failed',
    });
    expect(await store.totals()).toEqual(totalsOf(records, await store.events({ limit: 1_000 })));
    expect(await store.get(ended)).toEqual(
      (JSON.parse(backup.split('\n').find((l) => l.includes(`"id":"${ended}"`))!) as { request: object }).request,
    );
    await opened.close();
  });

  it('refuses what is not whole, was changed, or meets another history, and takes nothing in', async () => {
    const lines = backup.trimEnd().split('\n');
    const bad = {
      'cut short': lines.slice(0, -1),
      'a line missing': lines.filter((_, n) => n !== 2),
      'an event changed': lines.map((line) => line.replace('"who":"UAAA"', '"who":"UBBB"')),
      'an event missing': lines.filter((line) => !line.includes('"what":"denied"')),
      'no backup at all': ['{"hello":1}'],
      'not JSON': ['hello'],
      'more behind the end': [...lines, lines[1]!],
    };
    for (const [what, said] of Object.entries(bad)) {
      writeFileSync(join(folder, 'bad.jsonl'), said.join('\n'));
      const answer = await reclaim('c', 'import', 'bad.jsonl');
      expect([what, answer.code, answer.err]).toEqual([what, 1, expect.stringContaining('Nothing of it was taken in')]);
    }
    const opened = await openRecords(configOf('c'));
    const { store, requests } = opened;
    expect(await store.list({ limit: 10 })).toEqual([]);
    await requests.ask({ host: 'own', requester: { id: 'UANN' }, surface: 'cli' });
    await opened.close();
    const other = await reclaim('c', 'import', 'backup.jsonl');
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining('audit log of its own') as string });
  });
});
