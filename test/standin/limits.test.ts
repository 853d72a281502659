import { describe, expect, it } from 'vitest';
import { blocksTooLong, faultsInBlocks, faultsInView } from '../../src/standin/limits.ts';

const plain = (text: string) => ({ type: 'plain_text', text });
const x = (n: number) => 'x'.repeat(n);
const section = (n: number) => ({ type: 'section', text: { type: 'mrkdwn', text: x(n) } });
const button = (more: object = {}) => ({ type: 'button', text: plain('Go'), action_id: 'go', ...more });
const actions = (...elements: object[]) => ({ type: 'actions', elements });
const confirm = (more: object = {}) => ({
  title: plain('T'),
  text: plain('t'),
  confirm: plain('Y'),
  deny: plain('N'),
  ...more,
});
const table = (rows: number, cells: number, text = 'a') => ({
  type: 'table',
  rows: Array.from({ length: rows }, () => Array.from({ length: cells }, () => ({ type: 'raw_text', text }))),
});
const options = (n: number, more: object = {}) =>
  Array.from({ length: n }, (_, i) => ({ text: plain(`o${i}`), value: `${i}`, ...more }));

const taken: [string, object[]][] = [
  ['50 blocks', Array.from({ length: 50 }, () => ({ type: 'divider' }))],
  ['a section of 3000 characters', [section(3000)]],
  ['3000 emoji, which are one character each', [{ type: 'section', text: plain('🦙'.repeat(3000)) }]],
  ['a header of 150', [{ type: 'header', text: plain(x(150)) }]],
  ['a button with 75 characters and a value of 2000', [actions(button({ text: plain(x(75)), value: x(2000) }))]],
  [
    'a confirm dialog at its limits',
    [actions(button({ confirm: confirm({ title: plain(x(100)), text: plain(x(300)), confirm: plain(x(30)) }) }))],
  ],
  ['a table of 100 rows', [table(100, 5)]],
  [
    'preformatted rich text',
    [
      {
        type: 'rich_text',
        elements: [{ type: 'rich_text_preformatted', elements: [{ type: 'text', text: '<!channel>' }] }],
      },
    ],
  ],
];

const refused: [string, object[], string][] = [
  [
    '51 blocks',
    Array.from({ length: 51 }, () => ({ type: 'divider' })),
    'no more than 50 items allowed [json-pointer:/blocks]',
  ],
  ['a section of 3001', [section(3001)], 'must be less than 3001 characters [json-pointer:/blocks/0/text/text]'],
  ['an empty section', [section(0)], 'must be more than 0 characters [json-pointer:/blocks/0/text/text]'],
  ['a section with neither text nor fields', [{ type: 'section' }], 'missing required field: text or fields'],
  [
    'a field of 2001',
    [{ type: 'section', fields: [plain(x(2001))] }],
    'must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]',
  ],
  [
    '11 fields',
    [{ type: 'section', fields: Array.from({ length: 11 }, () => plain('a')) }],
    'no more than 10 items allowed',
  ],
  ['a header of 151', [{ type: 'header', text: plain(x(151)) }], 'must be less than 151 characters'],
  ['a header in mrkdwn', [{ type: 'header', text: { type: 'mrkdwn', text: 'a' } }], 'must be plain_text'],
  [
    '11 context elements',
    [{ type: 'context', elements: Array.from({ length: 11 }, () => plain('a')) }],
    'no more than 10 items allowed',
  ],
  [
    '26 buttons',
    [actions(...Array.from({ length: 26 }, (_, i) => button({ action_id: `a${i}` })))],
    'no more than 25 items allowed',
  ],
  ['two buttons with one action id', [actions(button(), button())], '`action_id` "go" already exists'],
  ['a button label of 76', [actions(button({ text: plain(x(76)) }))], 'must be less than 76 characters'],
  ['a button value of 2001', [actions(button({ value: x(2001) }))], 'must be less than 2001 characters'],
  ['an unknown style', [actions(button({ style: 'warning' }))], 'must be one of: primary, danger'],
  [
    'a confirm title of 101',
    [actions(button({ confirm: confirm({ title: plain(x(101)) }) }))],
    'must be less than 101 characters',
  ],
  [
    'a confirm text of 301',
    [actions(button({ confirm: confirm({ text: plain(x(301)) }) }))],
    'must be less than 301 characters',
  ],
  [
    'a confirm button of 31',
    [actions(button({ confirm: confirm({ deny: plain(x(31)) }) }))],
    'must be less than 31 characters',
  ],
  [
    '11 checkboxes',
    [actions({ type: 'checkboxes', action_id: 'c', options: options(11) })],
    'no more than 10 items allowed',
  ],
  [
    'an option value of 151',
    [actions({ type: 'static_select', action_id: 's', options: options(1, { value: x(151) }) })],
    'must be less than 151 characters',
  ],
  ['no options', [actions({ type: 'radio_buttons', action_id: 'r', options: [] })], 'no fewer than 1 items required'],
  ['101 rows', [table(101, 2)], 'no more than 100 items allowed [json-pointer:/blocks/0/rows]'],
  ['21 cells', [table(1, 21)], 'no more than 20 items allowed'],
  ['an empty cell', [table(1, 1, '')], 'must be more than 0 characters [json-pointer:/blocks/0/rows/0/0/text]'],
  ['too much text in cells', [table(100, 10, x(11))], 'must be less than 10001 characters in all cells'],
  ['two tables', [table(1, 1), table(1, 1)], 'only one table block is allowed'],
  ['an unknown block', [{ type: 'carousel' }], 'unsupported type: carousel'],
  [
    'one block id twice',
    [
      { type: 'divider', block_id: 'b' },
      { type: 'divider', block_id: 'b' },
    ],
    '`block_id` "b" already exists',
  ],
  [
    'an empty piece of rich text',
    [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text: '' }] }] }],
    'must be more than 0 characters',
  ],
];

describe('the limits of blocks', () => {
  it.each(taken)('takes %s', (_what, blocks) => {
    expect(faultsInBlocks(blocks, 'message')).toEqual([]);
  });

  it.each(refused)('refuses %s', (_what, blocks, why) => {
    const faults = faultsInBlocks(blocks, 'message');
    expect(
      faults.some((f) => f.includes(why)),
      faults.join('\n'),
    ).toBe(true);
  });

  it('counts the text of a whole message', () => {
    expect(blocksTooLong([section(3000), section(3000), section(3000), section(3000)])).toBe(false);
    expect(blocksTooLong([section(3000), section(3000), section(3000), section(3000), section(1201)])).toBe(true);
  });
});

describe('the limits of views', () => {
  const modal = (more: object = {}) => ({ type: 'modal', title: plain('Title'), blocks: [], ...more });

  it.each([
    ['a title of 24', modal({ title: plain(x(24)) })],
    ['100 blocks', modal({ blocks: Array.from({ length: 100 }, () => ({ type: 'divider' })) })],
    ['private metadata of 3000', modal({ private_metadata: x(3000) })],
  ])('takes %s', (_what, view) => {
    expect(faultsInView(view)).toEqual([]);
  });

  it.each([
    [
      'a title of 25',
      modal({ title: plain(x(25)) }),
      'must be less than 25 characters [json-pointer:/view/title/text]',
    ],
    [
      '101 blocks',
      modal({ blocks: Array.from({ length: 101 }, () => ({ type: 'divider' })) }),
      'no more than 100 items allowed',
    ],
    ['private metadata of 3001', modal({ private_metadata: x(3001) }), 'must be less than 3001 characters'],
    [
      'an input without a submit button',
      modal({ blocks: [{ type: 'input', label: plain('L'), element: { type: 'plain_text_input', action_id: 'a' } }] }),
      'missing required field: submit',
    ],
    ['no title', { type: 'modal', blocks: [] }, 'missing required field'],
  ])('refuses %s', (_what, view, why) => {
    const faults = faultsInView(view);
    expect(
      faults.some((f) => f.includes(why)),
      faults.join('\n'),
    ).toBe(true);
  });
});
