/** The rules of the house, read from the source: who may import whom, how long a file may be, what may not be written. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');

function sources(dir: string): string[] {
  if (!existsSync(join(root, dir))) return [];
  return readdirSync(join(root, dir)).flatMap((name) => {
    const path = join(dir, name);
    if (statSync(join(root, path)).isDirectory()) return sources(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
}

function importsOf(path: string): Import[] {
  const text = readFileSync(join(root, path), 'utf8');
  const found: Import[] = [];
  for (const m of text.matchAll(/^(?:import|export)\s+(type\s+)?[^'"]*?from\s+['"]([^'"]+)['"]/gms)) {
    found.push({ typeOnly: m[1] !== undefined, from: m[2]! });
  }
  for (const m of text.matchAll(/^import\s+['"]([^'"]+)['"]/gm)) found.push({ typeOnly: false, from: m[1]! });
  for (const m of text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) found.push({ typeOnly: false, from: m[1]! });
  return found.map((i) => ({
    ...i,
    from: i.from.startsWith('.') ? relative(root, resolve(root, dirname(path), i.from)) : i.from,
  }));
}

const files = [...sources('src'), ...sources('jobs')];

/** Pure: no I/O, clock or environment. `node:crypto` is allowed for hashing alone: same bytes in, same bytes out. */
const pure = [
  /^src\/memory\//,
  /^src\/errors\.ts$/,
  /^src\/box\.ts$/,
  /^src\/clock\.ts$/,
  /^src\/config\/schema\.ts$/,
  /^src\/requests\/(types|store|topic-store|service|directory|state|totals|backup|backup-lines|votes|runs|sentences|policy|digest|receipt|chain)\.ts$/,
  /^src\/slack\/(blocks|text|home|command-text)(\/|\.ts$)/,
  /^src\/ssh\/(known-hosts|frames)\.ts$/,
  /^src\/alerts\/(parsers|incident|watch|fleet|topics)(\/|\.ts$)/,
];
const isPure = (path: string) => pure.some((p) => p.test(path));

describe('the rules of the house', () => {
  it('pure modules import only pure modules and zod', () => {
    const breaches = files.filter(isPure).flatMap((path) =>
      importsOf(path)
        .filter((i) => !i.typeOnly && i.from !== 'zod' && i.from !== 'node:crypto' && !isPure(i.from))
        .map((i) => `${path} imports ${i.from}`),
    );
    expect(breaches).toEqual([]);
  });

  it('pure modules read no clock, chance or environment', () => {
    const breaches = files
      .filter(isPure)
      .filter((path) =>
        /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.(env|pid|cwd)|\brandomUUID|\brandomBytes/.test(
          readFileSync(join(root, path), 'utf8'),
        ),
      );
    expect(breaches).toEqual([]);
  });

  it('the memory engine imports nothing outside itself but errors', () => {
    const breaches = files
      .filter((path) => path.startsWith('src/memory/'))
      .flatMap((path) =>
        importsOf(path)
          .filter((i) => i.from.startsWith('src/') && !i.from.startsWith('src/memory/') && i.from !== 'src/errors.ts')
          .map((i) => `${path} imports ${i.from}`),
      );
    expect(breaches).toEqual([]);
  });

  it('the stand-in and the product never import each other', () => {
    const breaches = files.flatMap((path) => {
      const inStandin = path.startsWith('src/standin/');
      const mayUseBoth = path.startsWith('src/demo/');
      return importsOf(path)
        .filter((i) => i.from.startsWith('src/') || i.from.startsWith('jobs/'))
        .filter((i) => !mayUseBoth && i.from.startsWith('src/standin/') !== inStandin)
        .map((i) => `${path} imports ${i.from}`);
    });
    expect(breaches).toEqual([]);
  });

  it('adapters know one library each and never each other', () => {
    const adapters = ['src/ssh/', 'src/requests/', 'src/queue/', 'src/slack/'];
    const breaches = files.flatMap((path) => {
      const own = adapters.find((a) => path.startsWith(a));
      if (own === undefined) return [];
      return importsOf(path)
        .filter((i) => !i.typeOnly && adapters.some((a) => a !== own && i.from.startsWith(a)) && !isPure(i.from))
        .map((i) => `${path} imports ${i.from}`);
    });
    expect(breaches).toEqual([]);
  });

  it('ssh2 is imported as the CommonJS module it is: Node finds no named values in it, though test runners do', () => {
    const breaches = files.filter((path) =>
      /^import (?!type\b)(?:\w+, )?\{(?!\s*type\b)[^}]*\} from 'ssh2'/m.test(readFileSync(join(root, path), 'utf8')),
    );
    expect(breaches).toEqual([]);
  });

  it('no file is longer than 300 lines', () => {
    const long = files
      .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n').length - 1 }))
      .filter((f) => f.lines > 300)
      .map((f) => `${f.path} has ${f.lines}`);
    expect(long).toEqual([]);
  });

  it('nobody writes `any`, silences the compiler or leaves work for later', () => {
    const banned = /:\s*any\b|as any\b|as unknown as|@ts-ignore|@ts-nocheck|@ts-expect-error|\b(TODO|FIXME|XXX)\b/;
    const breaches = files.filter((path) => banned.test(readFileSync(join(root, path), 'utf8')));
    expect(breaches).toEqual([]);
  });
});
