import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { commands } from '../src/cli/commands.ts';
import { envSchema, yamlSchema } from '../src/config/schema.ts';
import { errorTable } from '../src/errors.ts';
import { verdicts } from '../src/memory/contract.ts';
import { parseCapture } from '../src/memory/parse-capture.ts';
import { renderReport } from '../src/memory/render.ts';
import { think } from '../src/memory/think.ts';

const root = resolve(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const reference = read('docs/reference.md');
const section = (title: string) => reference.split(/^## /m).find((part) => part.startsWith(title)) ?? '';
const firstCells = (text: string) => [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((m) => m[1]!);

describe('the reference', () => {
  it('has every error code and no other', () => {
    expect(firstCells(section('Error codes')).sort()).toEqual(Object.keys(errorTable).sort());
  });

  it('has every command with the usage the command itself prints, and no other', async () => {
    const documented = firstCells(section('Commands')).map((usage) => `reclaim ${usage.replaceAll('\\|', '|')}`);
    const real = await Promise.all(Object.values(commands).map(async (entry) => (await entry.load()).usage));
    expect(documented.sort()).toEqual(real.sort());
  });

  it('names every setting of the environment', () => {
    for (const name of Object.keys(envSchema.shape)) expect(section('Environment')).toContain(`\`${name}\``);
  });
});

const documents = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);

describe.each(['README.md', ...documents])('%s', (path) => {
  it('links only to what exists', () => {
    const links = [...read(path).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map((m) => m[1]!);
    const missing = links.filter((link) => !/^https?:/.test(link) && !existsSync(resolve(root, dirname(path), link)));
    expect(missing).toEqual([]);
  });

  it('holds configuration that the bot takes', () => {
    const blocks = [...read(path).matchAll(/^```yaml\n(.*?)^```/gms)].map((m) => m[1]!);
    // An id is upper case; what a reader replaces anyway may be any.
    const faults = blocks.flatMap((block) => yamlSchema.safeParse(parse(block)).error?.issues ?? []);
    expect(faults).toEqual([]);
  });
});

describe('docs/diagnosis.md', () => {
  const examples = [...read('docs/diagnosis.md').matchAll(/^`reclaim diagnose (\S+)`.*?^```\n(.*?)^```/gms)];

  it.each(examples.map((m) => [m[1]!, m[2]!]))('shows of %s what the program prints, in this order', (file, shown) => {
    const printed = renderReport(think(parseCapture(read(file))).diagnosis, { width: 100, colour: false });
    let from = 0;
    for (const part of shown.split(/^…\n/m)) {
      const at = printed.indexOf(part.trimEnd(), from);
      expect(at, `not printed in this order:\n${part}`).toBeGreaterThanOrEqual(0);
      from = at + part.trimEnd().length;
    }
  });

  it('has worked examples', () => {
    expect(examples.length).toBeGreaterThanOrEqual(2);
  });

  it('names every verdict', () => {
    const section =
      read('docs/diagnosis.md')
        .split(/^## /m)
        .find((part) => part.startsWith('Verdicts')) ?? '';
    expect(firstCells(section).sort()).toEqual([...verdicts].sort());
  });
});

describe('docs/install.md', () => {
  it('explains every scope of the manifest, and no other', () => {
    const manifest = z
      .object({ oauth_config: z.object({ scopes: z.object({ bot: z.array(z.string()) }) }) })
      .parse(parse(read('manifest.yaml')));
    const table = read('docs/install.md')
      .split('\n')
      .filter((line) => /^\| `/.test(line))
      .map((line) => line.split('|')[1]!);
    const explained = table.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((m) => m[1]!));
    expect(explained.sort()).toEqual([...manifest.oauth_config.scopes.bot].sort());
  });
});
