/** Every public case is a test, or is left out for a reason that is written here. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cases } from '../cases.ts';
import { reports } from '../report-cases.ts';

const root = join(import.meta.dirname, '../../..');

/** Why the memory engine has no test of it; `shownBy`: where it is tested instead. */
const leftOut: Record<string, { why: string; shownBy?: string }> = {
  E03: {
    why: 'about reading a write-only file back, which no code of ours does',
    shownBy: 'test/host/give-back.test.ts',
  },
  E09: {
    why: 'about a sudoers line for tee; ours is a line for the installed helper',
    shownBy: 'test/host/give-back.test.ts',
  },
  E10: { why: 'about a cron job that drops caches while we act', shownBy: 'test/act.test.ts' },
  F21: { why: 'about what Slack makes of names', shownBy: 'test/slack/cards.test.ts' },
  F22: { why: 'about noise around the frames of the host program', shownBy: 'test/ssh/frames.test.ts' },
  F24: { why: 'about login shells other than sh', shownBy: 'test/ssh/exec.test.ts' },
  'lxd-5405-sunreclaim': { why: 'has no figures; its kind is netdata-3929-slab' },
  'nvidia-613-hostalloc': { why: 'has no figures; its kind is llamacpp-10050' },
  'claude-code-93607-pkill': { why: 'about pkill, which no code of ours runs', shownBy: 'test/tidy.test.ts' },
};

/** Cases that say the same as another one, of which they are the source. */
const same: Record<string, string> = {
  'vllm-55510': 'B02',
  'minefield-53': 'B04',
  'dask-1322': 'B13',
  'unsloth-3331': 'B05',
  'mxnet-4242': 'B08',
  'joblib-198': 'C09',
  'vllm-51317-offload': 'C04',
};

const own = import.meta.filename;
const tests = join(root, 'test/memory');
const sources = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => join(tests, path))
  .filter((path) => path !== own)
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');
const isNamed = (id: string): boolean => new RegExp(`(?<![\\w-])${id.replaceAll('.', '\\.')}(?![\\w-])`).test(sources);

const ids = [
  ...cases.map((c) => c.id),
  ...reports.filter((report) => 'ABCDEF'.includes(report.kind)).map((report) => report.id),
];

describe('every public case', () => {
  it('is there to be tested', () => {
    expect(ids.length).toBeGreaterThan(130);
  });

  it.each(ids)('%s is named by a test, or left out for a reason', (id) => {
    const left = leftOut[id];
    if (left === undefined) expect(isNamed(same[id] ?? id)).toBe(true);
    else if (left.shownBy !== undefined) expect(existsSync(join(root, left.shownBy))).toBe(true);
  });

  it('that is left out is one of them, and no test names it', () => {
    const known = new Set(ids);
    expect([...Object.keys(leftOut), ...Object.keys(same)].filter((id) => !known.has(id))).toEqual([]);
    expect(Object.keys(leftOut).filter(isNamed)).toEqual([]);
  });
});
