/** The dialog in which an approver chooses: valid at any size, and what is left is exactly what stayed ticked. */
import type { KnownBlock, ModalView } from '@slack/types';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseModal, pageActionIds, tickable, turned, untickedAfter } from '../../src/slack/blocks/chooser.ts';
import {
  fitsMemory,
  freshMemory,
  readMemory,
  writeMemory,
  type ModalMemory,
} from '../../src/slack/blocks/dialog-memory.ts';
import { pending } from './records.ts';
import { viewFaults } from './validate.ts';

const start = freshMemory({ id: 'r0123456789ab', channel: 'C0GPU', digest: 'e'.repeat(64) });

interface Tick {
  readonly block: string;
  readonly value: string;
  readonly text: string;
  readonly description: string;
}

const inputs = (view: ModalView) =>
  (view.blocks as KnownBlock[]).flatMap((block) => (block.type === 'input' ? block : []));

/** One person with the dialog on the screen: sees options and buttons, taps them, and has the state Slack would send. */
class Phone {
  readonly record;
  memory: ModalMemory;
  #view: ModalView;
  readonly #on = new Set<string>();

  constructor(processes: number) {
    this.record = pending(processes);
    this.memory = start;
    this.#view = this.#drawn();
  }
  get view(): ModalView {
    return this.#view;
  }
  get options(): Tick[] {
    return inputs(this.#view).flatMap(({ block_id: block = '', element }) =>
      element.type === 'checkboxes'
        ? element.options.map((o) => ({
            block,
            value: o.value ?? '',
            text: o.text.text,
            description: o.description?.text ?? '',
          }))
        : [],
    );
  }
  get buttons(): { label: string; id: string }[] {
    return (this.#view.blocks as KnownBlock[]).flatMap((block) =>
      block.type === 'actions'
        ? block.elements.flatMap((e) => (e.type === 'button' ? { label: e.text.text, id: e.action_id ?? '' } : []))
        : [],
    );
  }
  isOn(value: string): boolean {
    return this.#on.has(value);
  }
  tap(value: string): void {
    if (!this.#on.delete(value)) this.#on.add(value);
  }
  get off(): number[] {
    const values = Object.fromEntries(
      inputs(this.#view).map(({ block_id: block = '' }) => {
        const chosen = this.options.filter((o) => o.block === block && this.#on.has(o.value));
        return [block, { ticks: { selected_options: chosen } }];
      }),
    );
    return untickedAfter(this.record, this.record.plan!, this.memory, values);
  }
  press(label: string): void {
    const button = this.buttons.find((b) => b.label.startsWith(label));
    if (button === undefined) throw new Error(`no button ${label}`);
    const next = turned(this.memory, button.id, this.off);
    // As Slack hands it back.
    this.memory = readMemory(chooseModal(this.record, this.record.plan!, next).private_metadata ?? '')!;
    this.#view = this.#drawn();
  }
  #drawn(): ModalView {
    const view = chooseModal(this.record, this.record.plan!, this.memory);
    this.#on.clear();
    for (const { element } of inputs(view))
      if (element.type === 'checkboxes') for (const o of element.initial_options ?? []) this.#on.add(o.value ?? '');
    return view;
  }
}

/** Every page there is, by pressing every button there is. */
function everyPage(phone: Phone, see: () => void): void {
  const through = () => {
    for (;;) {
      see();
      if (!phone.buttons.some((b) => b.label === 'Next page')) return;
      phone.press('Next page');
    }
  };
  through();
  const groups = phone.buttons.filter((b) => b.id.startsWith(pageActionIds.open)).map((b) => b.label);
  for (const label of groups) {
    phone.press(label);
    through();
    phone.press('Back to the groups');
  }
}

describe('the dialog of a choice', () => {
  it.each([1, 6, 11, 12, 13, 79, 80, 81, 100, 250, 1000])(
    'is valid on every page and reaches each of %i processes once',
    (count) => {
      const phone = new Phone(count);
      const seen: string[] = [];
      everyPage(phone, () => {
        expect(viewFaults(phone.view)).toEqual([]);
        seen.push(...phone.options.map((o) => o.text).filter((text) => text.includes(' pid ')));
      });
      expect(new Set(seen).size).toBe(count);
      expect(seen).toHaveLength(count);
      expect(phone.off).toEqual([]);
    },
  );

  it('is one list without pages while a phone can show it', () => {
    const phone = new Phone(11);
    expect(phone.buttons).toEqual([]);
    expect(phone.options).toHaveLength(12);
  });

  it.each([12, 100, 250])('begins with a tick for each whole group of %i processes', (count) => {
    const phone = new Phone(count);
    const bobs = Math.ceil(count / 3);
    expect(phone.options.map((o) => o.text)).toEqual([
      expect.stringContaining(`1. ${bobs} processes of bob, `),
      expect.stringContaining(`2. ${count - bobs} processes of ann, `),
      expect.stringContaining('drop caches'),
    ]);
    phone.tap('g0');
    const steps = tickable(phone.record.plan!);
    expect(phone.off).toEqual([...steps.keys()].filter((i) => i < count && i % 3 === 0));
  });

  it('says how many of a group stay, keeps them out when the group is ticked, and takes all in after all were out', () => {
    const phone = new Phone(100);
    phone.press('1. One by one (34)');
    for (const value of ['0', '3', '6']) phone.tap(value);
    phone.press('Back to the groups');
    expect(phone.options[0]?.description).toBe('31 of 34: 17 × cicc, 17 × cc1plus');
    expect(phone.isOn('g0')).toBe(true);
    expect(phone.off).toEqual([0, 3, 6]);
    phone.tap('g0');
    phone.press('2. One by one (66)');
    phone.press('Back to the groups');
    expect(phone.isOn('g0')).toBe(false);
    phone.tap('g0');
    expect(phone.off).toEqual([]);
  });

  it('leaves exactly what a person left ticked, whatever they tap and in whatever order', () => {
    const deed = fc.record({ press: fc.boolean(), which: fc.nat() });
    fc.assert(
      fc.property(fc.constantFrom(1, 12, 100, 250), fc.array(deed, { maxLength: 25 }), (count, deeds) => {
        const phone = new Phone(count);
        const expected = new Set<number>();
        const all = tickable(phone.record.plan!);
        const ownerOf = (i: number) => (i >= count ? 2 : i % 3 === 0 ? 0 : 1);
        for (const { press, which } of deeds) {
          const { buttons, options } = phone;
          if (press && buttons.length > 0) {
            phone.press(buttons[which % buttons.length]!.label);
            continue;
          }
          const { value } = options[which % options.length]!;
          phone.tap(value);
          const now = phone.isOn(value);
          const meant = value.startsWith('g')
            ? [...all.keys()].filter((i) => ownerOf(i) === Number(value.slice(1)))
            : [Number(value)];
          // A whole group that is ticked again on the same page shows what it showed before it was unticked.
          if (value.startsWith('g') && now) {
            const before = new Set(phone.memory.off);
            const wasOut = meant.every((i) => before.has(i));
            for (const i of meant) if (wasOut || !before.has(i)) expected.delete(i);
          } else
            for (const i of meant)
              if (now) expected.delete(i);
              else expected.add(i);
          expect(phone.off).toEqual([...expected].sort((a, b) => a - b));
        }
        expect(viewFaults(phone.view)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('remembers every second of a thousand, and says when it cannot remember more', () => {
    const every = (n: number) => ({ ...start, off: Array.from({ length: n }, (_, i) => i * 2) });
    expect(readMemory(writeMemory(every(500)))).toEqual(every(500));
    expect(fitsMemory(every(500))).toBe(true);
    expect(fitsMemory(every(2000))).toBe(false);
    const { record } = new Phone(1000);
    const view = chooseModal(record, record.plan!, start, 'too many.');
    expect(JSON.stringify(view.blocks[0])).toContain('too many.');
    expect(viewFaults(view)).toEqual([]);
  });

  it('is shut to a memory that is not its own', () => {
    for (const bad of [
      '',
      '{}',
      JSON.stringify({ ...start, off: '1-x' }),
      JSON.stringify({ ...start, off: '5 0-99999 0-99999' }),
      JSON.stringify({ ...start, page: -1 }),
    ])
      expect(readMemory(bad)).toBeNull();
  });
});
