import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scrubbed } from '../../src/log.ts';

const module = resolve(import.meta.dirname, '../../src/log.ts');

describe('the log', () => {
  it('writes JSON with the ids of a job, and no secret wherever it stands', () => {
    const script = `
      import { createLog, jobLog } from ${JSON.stringify(module)};
      const log = createLog('info', { role: 'worker', instance: 'w1' });
      jobLog(log, 'look', { requestId: 'r1', host: 'gpu-box-3', other: 'x' }).info({ token: 'plain', deep: { password: 'plain' } }, 'hello');
      jobLog(log, 'sweep', 'nothing').warn({ err: new Error('connect redis://bot:hunter2@redis:6379 refused') }, 'Bearer abc.def-1');
      log.info('xoxb-12345-abcdef and xapp-1-A0-999');
    `;
    const said = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(said.stdout).toBe('');
    const lines = said.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines[0]).toMatchObject({
      level: 'info',
      role: 'worker',
      instance: 'w1',
      job: 'look',
      request: 'r1',
      host: 'gpu-box-3',
    });
    expect(lines[1]).toMatchObject({ level: 'warn', job: 'sweep' });
    expect(said.stderr).not.toMatch(/plain|hunter2|abc\.def|12345|A0-999/);
    expect(said.stderr).toContain('redis://bot:[secret]@redis:6379');
  });

  it('stays JSON and keeps everything else, whatever is logged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.stringMatching(/^[a-z0-9]{6,20}$/), (value, secret) => {
        const line = JSON.stringify({ value, said: `a xoxb-${secret} b`, to: `https://me:${secret}@host/x` });
        const clean = JSON.parse(scrubbed(line)) as { said: string; to: string };
        expect(clean.said).toBe('a [secret] b');
        expect(clean.to).toBe('https://me:[secret]@host/x');
      }),
    );
  });
});
