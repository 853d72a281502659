/** Our reading of known_hosts against OpenSSH's own (`ssh-keygen -F`), then the rules it has no word on. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  coversName,
  fingerprint,
  judgeKey,
  keyTypeOf,
  knownHostName,
  knownHostsLine,
  offeredAlgorithms,
  parseKnownHosts,
  recordOf,
} from '../../src/ssh/known-hosts.ts';

const dir = mkdtempSync(join(tmpdir(), 'known-hosts-'));
afterAll(() => {
  rmSync(dir, { recursive: true });
});

/** A well-formed ed25519 blob whose 32 bytes are all `n`. */
function ed25519(n: number): Buffer {
  const type = Buffer.from('ssh-ed25519');
  const length = (bytes: number) => {
    const b = Buffer.alloc(4);
    b.writeUInt32BE(bytes);
    return b;
  };
  return Buffer.concat([length(type.length), type, length(32), Buffer.alloc(32, n)]);
}
const keyField = (n: number) => `ssh-ed25519 ${ed25519(n).toString('base64')}`;
const rsaLine = (name: string) => {
  const file = join(dir, `rsa-${name}`);
  execFileSync('ssh-keygen', ['-q', '-t', 'rsa', '-b', '2048', '-N', '', '-C', '', '-f', file]);
  return execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).trim();
};

/** Line numbers with their marker, as `ssh-keygen -F` finds them. */
function oracle(text: string, name: string): string[] {
  const file = join(dir, 'oracle');
  writeFileSync(file, text);
  const { stdout } = spawnSync('ssh-keygen', ['-F', name, '-f', file], { encoding: 'utf8' });
  return [...stdout.matchAll(/^# Host .* found: line (\d+)(?: (CA|REVOKED))?/gm)].map(
    (m) => `${m[1]!}${m[2] === undefined ? '' : ` ${m[2]}`}`,
  );
}

function ours(text: string, name: string): string[] {
  const says = { none: '', 'cert-authority': ' CA', revoked: ' REVOKED' };
  return parseKnownHosts(text, 'known_hosts')
    .filter((line) => coversName(line.names, name))
    .map((line) => `${line.line}${says[line.marker]}`);
}

function hashed(names: readonly string[]): string {
  const file = join(dir, 'to-hash');
  writeFileSync(file, names.map((name, i) => `${name} ${keyField(i)}\n`).join(''));
  execFileSync('ssh-keygen', ['-q', '-H', '-f', file], { stdio: 'ignore' });
  return execFileSync('cat', [file], { encoding: 'utf8' });
}

describe('known_hosts, against ssh-keygen -F', () => {
  const label = fc.constantFrom('box', 'gpu', 'a', 'ab', 'box-1', '10.0.0.1', 'x.example');
  const target = fc.oneof(
    label,
    fc.tuple(label, fc.constantFrom(22, 2222, 443)).map(([l, p]) => `[${l}]:${p}`),
  );
  const pattern = fc.oneof(
    { weight: 3, arbitrary: target },
    fc.tuple(fc.constantFrom('', '!'), target).map(([not, t]) => not + t),
    fc.tuple(label, fc.constantFrom('*', '?', '**', '*.', '?*')).map(([l, w]) => l.slice(0, 1) + w),
    fc
      .tuple(fc.constantFrom('!', ''), fc.constantFrom('*', 'b*', '*1', '?ox', '[*]:2222', 'BOX'))
      .map((x) => x.join('')),
  );
  const line = fc.record({
    marker: fc.constantFrom('', '', '', '@revoked ', '@cert-authority '),
    names: fc.array(pattern, { minLength: 1, maxLength: 4 }).map((p) => p.join(',')),
    indent: fc.constantFrom('', ' ', '\t'),
    key: fc.integer({ min: 0, max: 200 }),
    tail: fc.constantFrom('', ' a comment', '\r'),
  });

  it('finds the same lines for any file and name', { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 30 }), target, (lines, name) => {
        const text = lines
          .map((l) => `${l.indent}${l.marker}${l.names} ${keyField(l.key)}${l.tail}`)
          .concat('# box', '', 'nobody not-a-key', 'nobody')
          .join('\n');
        expect(ours(text, name)).toEqual(oracle(text, name));
      }),
      { numRuns: 150 },
    );
  });

  it('finds hashed names the same way', () => {
    const names = ['box', '[box]:2222', '10.0.0.1', 'gpu.example', '[::1]:22', '::1'];
    const text = hashed(names);
    expect(text).toContain('|1|');
    for (const name of [...names, 'bo', 'box2', '[box]:22']) {
      expect(ours(text, name), name).toEqual(oracle(text, name));
    }
    expect(ours(text, '[box]:2222')).toEqual(['2']);
  });

  it('prints the fingerprint ssh-keygen prints', () => {
    const line = rsaLine('fp');
    const file = join(dir, 'fp.pub');
    writeFileSync(file, line);
    const said = execFileSync('ssh-keygen', ['-l', '-f', file], { encoding: 'utf8' });
    expect(said).toContain(fingerprint(Buffer.from(line.split(' ')[1]!, 'base64')));
  });
});

describe('known_hosts, the verdict', () => {
  const judge = (text: string, name: string, key: Buffer) =>
    judgeKey(recordOf(parseKnownHosts(text, 'known_hosts'), name), key);

  it.each([
    ['the key on file', `box ${keyField(1)}`, 'trusted'],
    ['one of several keys on file', `box ${keyField(2)}\nbox ${keyField(1)}`, 'trusted'],
    ['another key on file', `box ${keyField(2)}`, 'changed'],
    ['nothing on file', `other ${keyField(1)}`, 'unknown'],
    ['an empty file', '', 'unknown'],
    ['revoked before it is trusted', `@revoked * ${keyField(1)}\nbox ${keyField(1)}`, 'revoked'],
    ['revoked after it is trusted', `box ${keyField(1)}\n@revoked box ${keyField(1)}`, 'revoked'],
    ['revoked for another host', `box ${keyField(1)}\n@revoked other ${keyField(1)}`, 'trusted'],
    ['another key revoked', `@revoked * ${keyField(2)}`, 'unknown'],
    ['only a certificate authority', `@cert-authority * ${keyField(1)}`, 'unknown'],
    ['named, then denied', `box,!box ${keyField(1)}`, 'unknown'],
    ['filed for another port', `[box]:2222 ${keyField(1)}`, 'unknown'],
    ['commented out', `# box ${keyField(1)}`, 'unknown'],
    ['a type that is not the blob’s', `box ssh-rsa ${ed25519(1).toString('base64')}`, 'unknown'],
    ['Windows line ends', `box ${keyField(1)}\r\n`, 'trusted'],
  ])('%s', (_what, text, verdict) => {
    expect(judge(text, 'box', ed25519(1))).toBe(verdict);
  });

  it.each([
    ['a revoked line without a key', '@revoked *'],
    ['a revoked line with a broken key', '@revoked * ssh-ed25519 AAAAnonsense'],
    ['a revoked line with a type that is not the key’s', `@revoked * ssh-rsa ${ed25519(1).toString('base64')}`],
    ['a marker nobody knows', `@trusted-maybe box ${keyField(1)}`],
  ])('refuses the whole file for %s', (_what, text) => {
    expect(() => parseKnownHosts(`box ${keyField(1)}\n${text}\n`, '/x/known_hosts')).toThrow(
      /ssh_known_hosts_unreadable.*Line 2 of \/x\/known_hosts/,
    );
  });

  it('names ports other than 22 in brackets, and never minds the case', () => {
    expect(knownHostName('Box.Example', 22)).toBe('box.example');
    expect(knownHostName('::1', 2222)).toBe('[::1]:2222');
    expect(judge(`BOX ${keyField(1)}`, knownHostName('bOx', 22), ed25519(1))).toBe('trusted');
  });

  it('offers only the types on file, and rsa only with SHA-2', () => {
    const of = (text: string) => offeredAlgorithms(recordOf(parseKnownHosts(text, 'f'), 'box'));
    expect(of(`box ${rsaLine('offer')}`)).toEqual(['rsa-sha2-512', 'rsa-sha2-256']);
    expect(of(`box ${keyField(1)}`)).toEqual(['ssh-ed25519']);
    expect(of('')).toHaveLength(6);
    expect(of(`@revoked box ${keyField(1)}`)).toHaveLength(6);
  });

  it('survives any bytes at all', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, name) => {
        const safe = text.replaceAll('@', '');
        for (const line of parseKnownHosts(safe, 'f')) coversName(line.names, name);
        keyTypeOf(Buffer.from(text));
      }),
    );
  });

  it('is quick on a pattern made to be slow', () => {
    const started = performance.now();
    expect(coversName(`${'a*'.repeat(500)}b`, 'a'.repeat(5_000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it('writes a line it reads back', () => {
    const [line] = parseKnownHosts(knownHostsLine('[box]:2222', ed25519(7)), 'f');
    expect(line).toMatchObject({ names: '[box]:2222', keyType: 'ssh-ed25519', marker: 'none' });
    expect(line?.key.equals(ed25519(7))).toBe(true);
  });
});
