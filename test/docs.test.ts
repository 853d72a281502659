import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commands } from '../src/cli/commands.ts';
import { envSchema } from '../src/config/schema.ts';
import { errorTable } from '../src/errors.ts';

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

describe('the README', () => {
  it('links only to what exists', () => {
    const links = [...read('README.md').matchAll(/\]\(([^)#]+)\)/g)].map((m) => m[1]!);
    const missing = links.filter((link) => !/^https?:/.test(link) && !existsSync(join(root, link)));
    expect(links.length).toBeGreaterThan(3);
    expect(missing).toEqual([]);
  });
});
