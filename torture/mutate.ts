/** Broken input out of good input: bytes cut, doubled, swapped and replaced, or one value of a JSON document made strange. */
import fc from 'fast-check';
import type { Chance } from './part.ts';

const odd: readonly string[] = [
  ...[
    '\0',
    '\n',
    '\r\n',
    '\u202e',
    '\ufeff',
    '\ud800',
    '"',
    "'",
    '\\',
    '`',
    '$(reboot)',
    ';reboot',
    '<!channel>',
    '&lt;',
  ],
  ...[
    '-1',
    '0',
    '1e999',
    '99999999999999999999',
    '0x10',
    'NaN',
    'null',
    'true',
    '{}',
    '[]',
    '{"__proto__":1}',
    '..',
    '/../',
  ],
  ...['[', '{', '(', ')', ') S 1 1', ' kB', ':', '|', '>', '*', '%00', '%n', '&', '!!js/function', '*a', 'a: &a [*a]'],
];

/** A copy with one to eight places changed. */
export function mutated(chance: Chance, good: string): string {
  let text = good;
  for (let n = chance.between(1, 8); n > 0; n -= 1) {
    const at = chance.below(text.length + 1);
    const end = Math.min(text.length, at + chance.pick([1, 1, 1, 2, 8, 100, 4_000] as const));
    const piece = text.slice(at, end);
    const put = chance.pick([
      () => '',
      () => piece + piece,
      () => piece.slice(piece.length / 2) + piece.slice(0, piece.length / 2),
      () => chance.pick(odd),
      () => piece + chance.pick(odd),
      () => String.fromCharCode(chance.below(256)),
      () => chance.pick(odd).repeat(chance.pick([2, 50, 2_000] as const)),
      () => piece.replaceAll(/\d/g, () => String(chance.below(10))),
      () => text.slice(chance.below(text.length + 1)).slice(0, 200),
    ])();
    text = text.slice(0, at) + put + text.slice(end);
    if (chance.yes(0.05)) text = text.slice(0, chance.below(text.length + 1));
  }
  return text;
}

/** JSON values of every kind, by fast-check. */
export function strangeValues(chance: Chance, count: number): unknown[] {
  const any = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.double(), fc.constantFrom(...odd));
  return fc.sample(any, { seed: chance.below(2 ** 31), numRuns: count });
}

/** A copy of a JSON value with one to four places changed: left out, doubled, or another value. */
export function reshaped(chance: Chance, good: unknown, strange: readonly unknown[]): unknown {
  const copy: unknown = structuredClone(good);
  for (let n = chance.between(1, 4); n > 0; n -= 1) {
    let at: unknown = copy;
    for (let depth = 0; depth < 12; depth += 1) {
      if (typeof at !== 'object' || at === null) break;
      const keys = Object.keys(at);
      if (keys.length === 0) break;
      const key = keys[chance.below(keys.length)] ?? '';
      const value: unknown = Reflect.get(at, key);
      if (typeof value === 'object' && value !== null && chance.yes(0.8)) at = value;
      else {
        change(chance, at, key, value, strange);
        break;
      }
    }
  }
  return copy;
}

function change(chance: Chance, on: object, key: string, value: unknown, strange: readonly unknown[]): void {
  const way = chance.below(5);
  if (way === 0) Reflect.deleteProperty(on, key);
  else if (way === 1 && Array.isArray(on)) on.push(value, value);
  else if (way === 2 && typeof value === 'string') Reflect.set(on, key, mutated(chance, value));
  else if (way === 3 && typeof value === 'number')
    Reflect.set(on, key, chance.pick([-1, 0, 1.5, 1e308, NaN, -value, value * 1e6]));
  else Reflect.set(on, key, structuredClone(strange[chance.below(strange.length)]));
}
