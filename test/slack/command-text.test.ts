/** What people type, and what their clients make of it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCommand, type Command } from '../../src/slack/command-text.ts';

const looks = (...hosts: string[]): Command => ({ verb: 'look', hosts, groups: [], all: false });

const table: readonly (readonly [string, Command])[] = [
  ['', { verb: 'help' }],
  ['  ', { verb: 'help' }],
  ['help', { verb: 'help' }],
  ['HELP', { verb: 'help' }],
  ['?', { verb: 'help' }],
  ['hosts', { verb: 'hosts' }],
  ['status', { verb: 'status' }],
  ['history', { verb: 'history', host: null }],
  ['History gpu-box-3', { verb: 'history', host: 'gpu-box-3' }],
  ['cancel gpu-box-3', { verb: 'cancel', host: 'gpu-box-3' }],
  ['silence gpu-box-3 8h', { verb: 'silence', host: 'gpu-box-3', durationText: '8h' }],
  ['gpu-box-3', looks('gpu-box-3')],
  ['gpu-box-3, gpu-box-4 gpu-box-3', looks('gpu-box-3', 'gpu-box-4')],
  ['look gpu-box-3', looks('gpu-box-3')],
  ['“gpu-box-3”', looks('gpu-box-3')],
  ['`gpu-box-3`', looks('gpu-box-3')],
  ['gpu-box-3.', looks('gpu-box-3')],
  ['<http://gpu-box-3.lab|gpu-box-3.lab>', looks('gpu-box-3.lab')],
  ['<https://gpu-box-3.lab/>', looks('gpu-box-3.lab')],
  ['gpu-box-3\u00a0gpu-box-4', looks('gpu-box-3', 'gpu-box-4')],
  ['all', { verb: 'look', hosts: [], groups: [], all: true }],
  ['@train gpu-box-9', { verb: 'look', hosts: ['gpu-box-9'], groups: ['train'], all: false }],
  ['<!subteam^S0123|@train>', { verb: 'look', hosts: [], groups: ['train'], all: false }],
];

describe('the text of a command', () => {
  it.each(table)('%j', (text, meant) => {
    expect(parseCommand(text)).toEqual(meant);
  });

  it.each([
    'cancel',
    'cancel a b',
    'history a b',
    'hosts now',
    'silence gpu-box-3',
    'look',
    'gpu-box-3; rm -rf /',
    '$(reboot)',
    '../../etc/passwd',
    '-oProxyCommand=x',
    '<@U0ANN>',
  ])('is refused with a sentence that says nothing was done: %s', (text) => {
    const parsed = parseCommand(text);
    expect(parsed.verb).toBe('wrong');
    expect(parsed).toMatchObject({ why: expect.stringContaining('Nothing was done') as string });
  });

  it('never throws, and only ever lets plain names through', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const parsed = parseCommand(text);
        if (parsed.verb !== 'look') return;
        for (const name of [...parsed.hosts, ...parsed.groups]) expect(name).toMatch(/^[A-Za-z0-9][A-Za-z0-9._@:-]*$/);
      }),
    );
  });
});
