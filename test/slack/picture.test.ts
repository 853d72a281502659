/** The picture of where the memory is: right in its figures, safe in its words, and never in anybody's way. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/requests/types.ts';
import { pictureOf } from '../../src/slack/blocks/picture.ts';
import { paintPng } from '../../src/slack/paint.ts';
import { channel } from '../standin/world.ts';
import { HurryingClock, openOffice, type Office } from './office.ts';
import { everyCard, pending } from './records.ts';

/** Width and height from the header of a PNG. */
const sizeOf = (png: Buffer) => ({ width: png.readUInt32BE(16), height: png.readUInt32BE(20) });

describe('the picture', () => {
  it('says in words what it shows, and in letters what it shows in colours', () => {
    const picture = pictureOf(pending())!;
    expect(picture.altText).toBe(
      'Stacked bar. Where the 432 GiB of gpu-box-3 are: process memory 365 GiB (84 %), page cache 49 GiB (11 %), slab 5 GiB (1 %), everything else 1 GiB (<1 %), free 12 GiB (3 %). The plan would move 395 to 408 GiB to free.',
    );
    // Once in the bar and once in the legend.
    expect(picture.svg.match(/>A</g)).toHaveLength(2);
    expect(picture.svg).toContain('365 GiB');
  });

  it('shows before and after of a run that did something', () => {
    const picture = pictureOf(everyCard.succeeded!)!;
    expect(picture.filename).toBe('reclaim-r0123456789ab-before-after.png');
    expect(picture.altText).toContain('not available before 374 GiB, after 10 GiB');
    expect(picture.svg).toContain('used 369Gi, available 58Gi');
    expect(picture.svg).toContain('used 7.0Gi, available 422Gi');
  });

  it('is the look while a run is under way, and nothing before the look', () => {
    expect(pictureOf(everyCard['running, half way']!)?.filename).toBe('reclaim-r0123456789ab-memory.png');
    expect(pictureOf(everyCard.looking!)).toBeNull();
  });

  it.each(['pending', 'succeeded'])('is a PNG of a width that a phone shows at half its size: %s', async (name) => {
    const png = await paintPng(pictureOf(everyCard[name]!)!.svg);
    expect(png.subarray(1, 4).toString('latin1')).toBe('PNG');
    expect(sizeOf(png).width).toBe(720);
    // Text was painted: a sheet without it compresses to a fraction of this.
    expect(png.length).toBeGreaterThan(20_000);
  });

  it('takes any box: widths add up, nothing leaves the bar, names cannot break out of the drawing', () => {
    const kiB = fc.integer({ min: 0, max: 2 ** 31 });
    const classes = fc.array(fc.record({ class: fc.string({ unit: 'binary', maxLength: 40 }), kiB }), {
      maxLength: 25,
    });
    fc.assert(
      fc.property(
        classes,
        kiB,
        fc.constantFrom('gpu-box-3', '<script>&"', 'x'.repeat(300)),
        (accounting, total, host) => {
          const record: RequestRecord = structuredClone(pending());
          record.host = host;
          record.diagnosis!.accounting = [...accounting, { class: 'free', kiB: 7 }];
          record.diagnosis!.memory.totalKiB = total;
          const picture = pictureOf(record);
          if (total === 0) {
            expect(picture).toBeNull();
            return;
          }
          const { svg, altText } = picture!;
          expect(altText.length).toBeLessThanOrEqual(1000);
          expect(svg).not.toContain('<script>');
          for (const [, x, w] of svg.matchAll(/<rect x="(-?[\d.]+)"[^>]*? width="(-?[\d.]+)"/g)) {
            expect(Number(x)).toBeGreaterThanOrEqual(0);
            expect(Number(x) + Number(w)).toBeLessThanOrEqual(720);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('the picture in the thread', () => {
  let office: Office;
  const clock = new HurryingClock();
  beforeAll(async () => {
    office = await openOffice(clock, { slack: { rateLimits: false } });
    await office.startGateway();
  }, 60_000);
  afterAll(() => office.close());

  async function put(id: string, name: string, deliver: readonly ('card' | 'picture' | 'outcome')[]): Promise<void> {
    const now = new Date(clock.now()).toISOString();
    const before = await office.store.get(id);
    const record = { ...everyCard[name]!, id, host: id, channel, createdAt: now, version: (before?.version ?? 0) + 1 };
    const change = { record, deliver };
    expect((await (before === null ? office.store.create(change) : office.store.update(change))).ok).toBe(true);
  }
  const allOut = () => expect.poll(async () => (await office.store.undelivered()).count, { timeout: 30_000 }).toBe(0);
  const filesOf = (id: string) =>
    office.slack
      .messages(channel)
      .filter((m) => m.files.some((f) => f.name.includes(id)))
      .flatMap((m) => m.files);

  it('comes with its alt text, once for the look and once for the result', async () => {
    await put('box-a', 'pending', ['card', 'picture']);
    await allOut();
    await put('box-a', 'succeeded', ['card', 'outcome', 'picture']);
    await allOut();
    const files = filesOf('box-a');
    expect(files.map((f) => f.name)).toEqual(['reclaim-box-a-memory.png', 'reclaim-box-a-before-after.png']);
    for (const file of files) {
      expect(file.mimetype).toBe('image/png');
      expect(file.altText).toMatch(/stacked bar/i);
      expect(sizeOf(file.bytes).width).toBe(720);
    }
    const [card] = office.slack.messages(channel).filter((m) => m.text.startsWith('box-a:'));
    for (const m of office.slack.messages(channel).filter((r) => r.files.length > 0)) expect(m.threadTs).toBe(card!.ts);
  });

  it('holds up nothing when Slack takes no files', async () => {
    office.slack.faults.add({ kind: 'server_error', count: 1000, method: 'files.getUploadURLExternal' });
    await put('box-b', 'pending', ['card', 'picture']);
    await put('box-b', 'succeeded', ['card', 'outcome', 'picture']);
    await office.slack.waitFor('the outcome', () =>
      office.slack.messages(channel).some((m) => m.threadTs !== undefined && m.text.includes('box-b: done')),
    );
    expect(filesOf('box-b')).toEqual([]);
    office.slack.faults.clear();
    await allOut();
    // Both revisions were due: only the newest is shown.
    expect(filesOf('box-b').map((f) => f.name)).toEqual(['reclaim-box-b-before-after.png']);
  });
});
