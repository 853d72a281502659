/** The one path of text to Slack, against what hosts and people may put into it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cut, escapeMrkdwn, mrkdwn, oneLine, withPeople } from '../../src/slack/text.ts';

describe('text for Slack', () => {
  it('never cuts through a code point, and never exceeds the limit', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, max) => {
        const out = cut(text, max);
        expect(out.length).toBeLessThanOrEqual(max);
        expect(out).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
      }),
    );
  });

  it('makes invisible and reordering characters visible', () => {
    expect(oneLine('a\u202eb\u0000c\u200bd\ud800e\nf')).toBe('a\ufffdb\ufffdc\ufffdd\ufffde f');
  });

  it('keeps mrkdwn within its limit after escaping, and whole', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('<', '&', '>', 'x', '*', '😀') })),
        fc.integer({ min: 3, max: 200 }),
        (texts, max) => {
          const out = mrkdwn(texts, max);
          expect(out.length).toBeLessThanOrEqual(max);
          expect(out.replace(/&(amp|lt|gt);/g, '')).not.toMatch(/[<>&]/);
        },
      ),
    );
  });

  it('escapes the three characters that begin markup', () => {
    expect(escapeMrkdwn('<!channel> & <@U0ANN>')).toBe('&lt;!channel&gt; &amp; &lt;@U0ANN&gt;');
  });

  it('puts no blank inside the asterisks of bold, where Slack would show them as they are', () => {
    expect(mrkdwn([{ bold: 'Who may approve: ' }, { who: 'U0BO' }])).toBe('*Who may approve:* <@U0BO>');
    expect(mrkdwn([{ bold: 'a*b' }])).toBe('*a∗b*');
  });

  it('mentions only people the record names, and says other ids as text', () => {
    const pieces = withPeople('Denied by @U0BO; a note says @U0EVE and @unix:ann.', new Set(['U0BO']));
    expect(mrkdwn(pieces)).toBe('Denied by <@U0BO>; a note says @U0EVE and @unix:ann.');
    expect(mrkdwn([{ who: 'unix:<!here>' }])).toBe('the Unix user &lt;!here&gt;');
  });

  it('shows moments in the reader’s own time, with UTC where that is not possible', () => {
    expect(mrkdwn([{ at: '2026-11-30T20:54:00Z', style: 'time' }])).toBe('<!date^1796072040^{time}|20:54 UTC>');
  });
});
