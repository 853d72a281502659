/** Every card in every state: valid for Slack, true in words, and final when nothing is left to decide. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/requests/types.ts';
import { decideBlockId, digestOfBlockId, renderCard } from '../../src/slack/blocks/card.ts';
import { freshMemory } from '../../src/slack/blocks/dialog-memory.ts';
import { breakGlassModal, denyModal, lookAtModal } from '../../src/slack/blocks/modals.ts';
import { renderView } from '../../src/slack/blocks/render.ts';
import { isFinal } from '../../src/slack/blocks/words.ts';
import type { Sample } from '../../src/alerts/watch/sample.ts';
import { homeView } from '../../src/slack/home.ts';
import { cardContext, everyCard, pending } from './records.ts';
import { messageFaults, mrkdwnIn, viewFaults } from './validate.ts';

interface SeenButton {
  readonly label: string;
  readonly value: string;
  readonly confirm: string;
}

function buttonsOf(blocks: readonly unknown[]): SeenButton[] {
  const texts = (value: unknown): string => (value as { text?: { text?: string } } | undefined)?.text?.text ?? '';
  const walk = (value: unknown): SeenButton[] => {
    if (Array.isArray(value)) return value.flatMap(walk);
    if (typeof value !== 'object' || value === null) return [];
    const seen = value as { type?: string; value?: string; confirm?: unknown };
    if (seen.type === 'button') return [{ label: texts(seen), value: seen.value ?? '', confirm: texts(seen.confirm) }];
    return Object.values(value).flatMap(walk);
  };
  return walk(blocks);
}

/** What a person reads, as one text: mentions and raw text in order. */
function readable(blocks: readonly unknown[]): string {
  const walk = (value: unknown): string[] => {
    if (Array.isArray(value)) return value.flatMap(walk);
    if (typeof value !== 'object' || value === null) return [];
    const seen = value as Record<string, unknown>;
    if (seen.type === 'button') return [`[${walk(seen.text).join('')}]`];
    if (seen.type === 'user') return [`<@${String(seen.user_id)}>`];
    if (typeof seen.text === 'string') return [seen.text];
    if (seen.type === 'plan' || seen.type === 'task_card')
      return [
        `${String(seen.title)}${seen.type === 'plan' ? '' : ` (${String(seen.status)})`}`,
        ...walk(seen.tasks ?? seen.output),
      ];
    return Object.entries(seen).flatMap(([key, v]) => (key === 'confirm' ? [] : walk(v)));
  };
  return walk(blocks).join('\n');
}

const names = Object.keys(everyCard);
const card = (name: string, over: Partial<typeof cardContext> = {}) =>
  renderCard(everyCard[name]!, { ...cardContext, ...over });

describe('cards', () => {
  it.each(names)('is valid and reads as before: %s', (name) => {
    const message = card(name);
    expect(messageFaults(message)).toEqual([]);
    if (message.simpler !== undefined) {
      expect(messageFaults({ text: message.text, blocks: message.simpler })).toEqual([]);
      expect(readable(message.simpler)).toMatchSnapshot('simpler');
    }
    expect(`${message.text}\n\n${readable(message.blocks)}`).toMatchSnapshot();
  });

  it.each(names.filter((n) => isFinal(everyCard[n]!)))('keeps no button once it has ended: %s', (name) => {
    expect(buttonsOf(card(name).blocks)).toEqual([]);
  });

  it('offers Approve, Deny and Cancel while pending, each with the id of the request alone', () => {
    const buttons = buttonsOf(card('pending').blocks);
    expect(buttons.map((b) => b.label)).toEqual(['Approve…', 'Choose…', 'Deny…', 'Mine, keep it', 'Cancel request']);
    expect(new Set(buttons.map((b) => b.value))).toEqual(new Set(['r0123456789ab']));
  });

  it('names the host and the number of processes before an approval counts', () => {
    const [approve] = buttonsOf(card('pending').blocks);
    expect(approve?.confirm).toContain('gpu-box-3');
    expect(approve?.confirm).toContain('6 processes');
  });

  it('binds the buttons to the plan that was shown', () => {
    expect(JSON.stringify(card('pending').blocks)).toContain(decideBlockId('e'.repeat(64)));
    expect(digestOfBlockId(decideBlockId('e'.repeat(64)))).toBe('e'.repeat(64));
    expect(digestOfBlockId('cancel')).toBeUndefined();
  });

  it('says who already agreed and how many are needed', () => {
    expect(readable(card('pending, one of two').blocks)).toContain('*1 of 2 approved* (<@U0BO>)');
  });

  it('keeps Approve away from a plan that does not fit until the whole plan is in the thread', () => {
    const long = 'pending, a plan too long for the card';
    const labels = (posted: boolean) => buttonsOf(card(long, { planFilePosted: posted }).blocks).map((b) => b.label);
    expect(labels(false)).toEqual(['Deny…', 'Mine, keep it', 'Cancel request']);
    expect(labels(true)).toContain('Approve…');
    const rendered = renderView(everyCard[long]!, 'plan_file', cardContext);
    if (rendered.kind !== 'file') throw new Error('no file');
    for (const step of everyCard[long]!.plan!.steps) {
      if (step.action !== 'kill') continue;
      for (const { pid } of step.targets) expect(rendered.file.content).toContain(` ${pid}  `.trimStart());
    }
  });

  it('shows every process of a plan that fits', () => {
    const text = readable(card('pending').blocks);
    for (const step of everyCard.pending!.plan!.steps) {
      if (step.action === 'kill') for (const { pid } of step.targets) expect(text).toContain(String(pid));
    }
  });

  it('offers no approval when nobody may approve, and says so', () => {
    const message = card('pending', { approvers: [] });
    expect(buttonsOf(message.blocks).map((b) => b.label)).not.toContain('Approve…');
    expect(readable(message.blocks)).toContain('no approver is configured');
  });

  it('offers break-glass only where policy has it and one approval is not enough', () => {
    expect(buttonsOf(card('pending', { breakGlass: true }).blocks).map((b) => b.label)).toContain('Break glass…');
    expect(buttonsOf(card('pending').blocks).map((b) => b.label)).not.toContain('Break glass…');
  });

  it.each(['succeeded', 'partial'])('says before, after, expected and measured: %s', (name) => {
    const { text, blocks } = card(name);
    for (const word of ['before', 'after', 'expected', 'measured']) {
      expect(readable(blocks)).toContain(word);
      expect(text).toContain(word);
    }
  });

  it('shows what a denier typed as plain text that pings nobody', () => {
    const message = card('denied');
    expect(readable(message.blocks)).toContain('my <!channel> run @U0CHEN is *alive*');
    expect(mrkdwnIn(message).join('\n')).not.toMatch(/<!channel>|<@U0CHEN>/);
  });
});

describe('thread messages', () => {
  it.each(names)('are valid: %s', (name) => {
    for (const view of ['details', 'outcome'] as const) {
      const rendered = renderView(everyCard[name]!, view, cardContext);
      if (rendered.kind === 'message') expect(messageFaults(rendered.message)).toEqual([]);
    }
  });

  it('tell the requester by name how it ended', () => {
    const rendered = renderView(everyCard.succeeded!, 'outcome', cardContext);
    if (rendered.kind !== 'message') throw new Error('no message');
    expect(rendered.message.text).toMatch(/^<@U0ANN> gpu-box-3: done/);
  });
});

describe('dialogs', () => {
  const memory = freshMemory({ id: 'r0123456789ab', channel: 'C0GPU', digest: 'e'.repeat(64) });

  it('are valid: deny, break-glass, look at a box', () => {
    const record = pending();
    const hosts = Array.from({ length: 300 }, (_, i) => `gpu-box-${i}`);
    for (const view of [
      denyModal(record, memory),
      breakGlassModal(record, record.plan!, memory),
      lookAtModal(hosts, ['gpu-box-7'], 'C0GPU'),
    ]) {
      expect(viewFaults(view)).toEqual([]);
    }
  });
});

describe('the Home tab', () => {
  it('is valid with no host, with every state, and with hundreds of hosts', () => {
    const records = Object.values(everyCard);
    for (const hosts of [[], ['gpu-box-3'], Array.from({ length: 300 }, (_, i) => `gpu-box-${i}`)]) {
      expect(viewFaults(homeView({ hosts, records }))).toEqual([]);
    }
  });
});

describe('a box on the Home tab', () => {
  const at = Date.parse('2026-11-30T20:00:00Z');
  const reading = (hoursAgo: number, availableGiB: number): Sample => ({
    at: at - hoursAgo * 3_600_000,
    totalKiB: 400 * 1024 * 1024,
    availableKiB: availableGiB * 1024 * 1024,
    ...{ swapUsedKiB: 0, oomKills: 0, swapInPages: 0, swapOutPages: 0, pageKiB: 4, stalledPercent: null, shm: null },
  });

  it('shows its last day: hour by hour, when it was worst, and now', () => {
    const days = new Map([['gpu-box-3', [reading(23, 390), reading(5, 20), reading(0, 200)]]]);
    const view = homeView({ hosts: ['gpu-box-3', 'gpu-box-4'], records: [], days });
    expect(viewFaults(view)).toEqual([]);
    const text = JSON.stringify(view);
    expect(text).toMatch(/Taken, last 24 h: ▁·{17}█·{4}▅ least available 20 GiB <!date.*, now 200 GiB of 400 GiB/);
    expect(text.match(/last 24 h/g)).toHaveLength(1);
  });

  it('does not call a box lingering by a look before its reclaim', () => {
    const [waits, done] = [everyCard['pending']!, everyCard['succeeded']!].map((record) =>
      JSON.stringify(homeView({ hosts: [record.host], records: [record] })),
    );
    expect(waits).toContain('something is lingering');
    expect(done).not.toContain('something is lingering');
    expect(done).toMatch(/measured after a reclaim, as of .*Last reclaim/);
  });

  it('stays valid with a full day of readings on every box of a page', () => {
    const hosts = Array.from({ length: 40 }, (_, i) => `gpu-box-${i}`);
    const day = Array.from({ length: 1440 }, (_, i) => reading((1439 - i) / 60, i % 390));
    const view = homeView({ hosts, records: Object.values(everyCard), days: new Map(hosts.map((h) => [h, day])) });
    expect(viewFaults(view)).toEqual([]);
  });
});

describe('the pages of the Home tab', () => {
  it('show every one of hundreds of hosts once, each page within a hundred blocks', () => {
    const hosts = Array.from({ length: 250 }, (_, i) => `gpu-box-${i}`);
    const seen: string[] = [];
    for (let page = 0; page < 7; page += 1) {
      const view = homeView({ hosts, records: [], page });
      expect(viewFaults(view)).toEqual([]);
      for (const [, name] of JSON.stringify(view).matchAll(/\*(gpu-box-\d+)\*/g)) seen.push(name!);
    }
    expect(seen).toEqual(hosts);
    const labels = (page: number) => buttonsOf(homeView({ hosts, records: [], page }).blocks).map((b) => b.label);
    expect(labels(0)).toEqual(['Next page', 'Refresh']);
    expect(labels(3)).toEqual(['Previous page', 'Next page', 'Refresh']);
    expect(labels(99)).toEqual(['Previous page', 'Refresh']);
  });
});

/** Text as a hostile host would choose it. */
const nasty = fc.oneof(
  fc.constantFrom(
    '<!channel>',
    '<@U0CHEN>',
    '<!subteam^S0OPS>',
    '<https://evil.example|click>',
    '```',
    '*x*',
    '&amp;',
    '\u202eabc',
    '\ud800',
    '\n\n# hi',
  ),
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ minLength: 0, maxLength: 4000 }),
);

const hostile = fc.record({
  base: fc.constantFrom(...names),
  count: fc.integer({ min: 0, max: 60 }),
  text: fc.array(nasty, { minLength: 1, maxLength: 30 }),
});

function poisoned({ base, count, text }: { base: string; count: number; text: string[] }): RequestRecord {
  const record = structuredClone(everyCard[base]!);
  let n = 0;
  const next = () => text[n++ % text.length]!;
  record.reason = next();
  if (record.diagnosis !== undefined) {
    const { diagnosis } = record;
    diagnosis.headline = next();
    diagnosis.partial = text.slice();
    diagnosis.findings = Array.from({ length: count }, () => ({
      class: 'live_job' as const,
      kiB: 300_000,
      reclaimableKiB: { low: 0, high: 0 },
      action: 'ask_owner' as const,
      evidence: text.slice(),
      processes:
        diagnosis.findings[0]?.processes?.map((p) => ({ ...p, comm: next(), command: next(), user: next() })) ?? [],
    }));
    diagnosis.accounting.push({ class: next(), kiB: 5_000_000 });
    if (record.plan !== null && count > 0) {
      record.plan.steps = Array.from({ length: count }, (_, i) => ({
        id: `f${i}`,
        action: 'remove_files' as const,
        targets: text.map((path) => ({ path, dev: 1, ino: 1, kiB: 9 })),
        expectedFreeKiB: { low: 0, high: 9 },
        expectedAvailableKiB: { low: 0, high: 9 },
      }));
    }
  }
  if (record.run !== undefined) record.run.doing = next();
  for (const v of record.votes) v.reason = next();
  const report = record.run?.report;
  if (report !== undefined) {
    report.advice = text.slice();
    for (const step of report.steps) step.reason = next();
  }
  return record;
}

describe('whatever a host or a person types', () => {
  it('makes valid messages in which it can neither mention nor link', () => {
    fc.assert(
      fc.property(hostile, (given) => {
        const record = poisoned(given);
        for (const view of ['card', 'details', 'outcome'] as const) {
          const rendered = renderView(record, view, { ...cardContext, planFilePosted: true });
          if (rendered.kind !== 'message') continue;
          expect(messageFaults(rendered.message)).toEqual([]);
          const { text: said, simpler = [] } = rendered.message;
          expect(messageFaults({ text: said, blocks: simpler })).toEqual([]);
          for (const text of mrkdwnIn(rendered.message)) {
            const tags = [...text.matchAll(/<[^>]*>/g)].map((m) => m[0]);
            const ours = /^<(@U0(ANN|BO|CHEN)|!subteam\^S0OPS|!date\^\d+\^[^|]+\|\d\d:\d\d UTC)>$/;
            expect(tags.filter((t) => !ours.test(t))).toEqual([]);
            if (!record.votes.some((v) => v.person === 'U0CHEN') && view === 'outcome')
              expect(text).not.toContain('<@U0CHEN>');
          }
        }
      }),
      { numRuns: 150 },
    );
  });
});
