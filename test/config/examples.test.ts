import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { envSchema, policySchema } from '../../src/config/schema.ts';

const root = resolve(import.meta.dirname, '../..');
const example = (name: string) => readFileSync(join(root, name), 'utf8');

describe('the example files', () => {
  it('load as they are', () => {
    const dir = mkdtempSync(join(tmpdir(), 'reclaim-example-'));
    copyFileSync(join(root, '.env.example'), join(dir, '.env'));
    copyFileSync(join(root, 'reclaim.example.yaml'), join(dir, 'reclaim.yaml'));
    const config = loadConfig({ cwd: dir, env: {} });
    expect([...config.hosts.keys()]).toEqual(['gpu-box-3', 'bastion']);
    rmSync(dir, { recursive: true });
  });

  it('name every setting of the environment and no other', () => {
    const named = [...example('.env.example').matchAll(/^([A-Z_]+)=/gm)].map((m) => m[1]);
    expect(named.sort()).toEqual(Object.keys(envSchema.shape).sort());
  });

  it('name every key of the policy', () => {
    const yaml: unknown = parse(example('reclaim.example.yaml'));
    expect(yaml).toHaveProperty('policy');
    const policy = (yaml as { policy: object }).policy;
    expect(Object.keys(policy).sort()).toEqual(Object.keys(policySchema.shape).sort());
  });
});
