/** Secrets of command lines never leave the engine; what people need to recognise a process always does. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeText, isSecretKey, redactCommand, redactText } from '../../src/memory/redact.ts';
import { reports } from './report-cases.ts';

const secret = 'Zq7xR2mK9vT4wB8nL3pY6d';

describe('redactCommand', () => {
  const leaks: [string, string[]][] = [
    ['flag and value', ['tool', '--token', secret]],
    ['flag=value', ['tool', `--api-key=${secret}`]],
    ['a value that begins with a dash', ['tool', '--password', `-${secret}`]],
    ['camelCase flag', ['tool', '--clientSecret', secret]],
    ['nested option', ['judges', `--option=github_token=${secret}`]],
    ['attached -p', ['mysql', '-uroot', `-p${secret}`, 'db']],
    ['attached -p of an unknown tool', ['mytool', `-p${secret}`]],
    ['sshpass -p', ['sshpass', '-p', secret, 'ssh', 'host']],
    ['curl -u', ['curl', '-u', `ana:${secret}`, 'https://example.org']],
    ['redis-cli -a', ['/usr/bin/redis-cli', '-a', secret]],
    ['env assignment', ['env', `WANDB_API_KEY=${secret}`, 'python', 'train.py']],
    ['export in a shell string', ['sh', '-c', `export HF_TOKEN=${secret}; python train.py`]],
    ['quoted assignment', ['sh', '-c', `DB_PASSWORD="${secret} and more" ./run`]],
    ['flag inside a shell string', ['sh', '-c', `tool --auth-token '${secret}' --verbose`]],
    ['URL userinfo', ['git', 'clone', `https://ana:${secret}@example.org/x.git`]],
    ['URL token', ['pip', 'install', `git+https://${secret}@github.com/org/repo.git`]],
    ['database URL', ['app', `postgres://svc:${secret}@db:5432/x`]],
    ['query string', ['curl', `https://example.org/x?access_token=${secret}&page=2`]],
    ['telegram path', ['curl', `https://api.telegram.org/bot12345:${secret}/sendMessage`]],
    ['webhook path', ['curl', `https://hooks.slack.com/services/T000/B000/${secret}`]],
    ['JSON', ['s3', '-e', `{"access_key_id":"AB","secret_access_key":"${secret}"}`]],
    ['escaped JSON', ['sh', '-c', `curl -d "{\\"password\\":\\"${secret}\\"}"`]],
    ['cut JSON', ['s3', `{"password": "${secret}`]],
    ['python dict', ['python', '-c', `connect({'password': '${secret}'})`]],
    ['header', ['curl', '-H', `Authorization: Bearer ${secret}`]],
    ['odd header', ['curl', '-H', `X-Api-Key: ${secret}`]],
    ['cookie', ['curl', '-H', `Cookie: sid=${secret}; other=1`]],
    ['hex key alone', ['wandb', 'login', '0123456789abcdef0123456789abcdef01234567']],
    ['random string alone', ['login', secret]],
    ['a rewritten title', [`myserver --token ${secret} serving`]],
    ['after 60 arguments', ['tool', ...Array<string>(70).fill('x'), '--token', secret]],
  ];
  it.each(leaks)('hides %s', (_, argv) => {
    const shown = redactCommand(argv, 400);
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain('0123456789abcdef0123');
    expect(shown.startsWith(argv[0]!.split(' ')[0]!)).toBe(true);
  });

  it.each([
    'xoxb-1234-abcd',
    'xapp-1-A1-22',
    'ghp_abcdefgh12',
    'github_pat_11ABCD',
    'hf_AbCdEfGhIj',
    'sk-proj-abcdef12',
    'AKIAIOSFODNN7EXAMPLE',
    'glpat-abcd1234',
    'eyJhbGciOi.eyJzdWIi.c2ln',
  ])('knows the token %s wherever it stands', (token) => {
    expect(redactCommand(['tool', token])).not.toContain(token);
    expect(redactCommand(['tool', `x=${token},y`])).not.toContain(token);
    expect(redactText(`error: cannot use ${token}!`)).not.toContain(token);
  });

  it('hides all six shapes of the public reports', () => {
    const lines = reports.find((r) => r.id === 'F20')!.input['cmdlines'] as string[];
    expect(lines).toHaveLength(6);
    for (const line of lines) {
      for (const shown of [redactCommand(line.split(' ')), redactCommand([line]), redactText(line)]) {
        expect(shown).not.toMatch(/EXAMPLE|<TOKEN>/);
        expect(shown.startsWith(line.split(' ')[0]!)).toBe(true);
      }
    }
  });

  const kept: string[][] = [
    [
      '/usr/local/cuda/bin/nvcc',
      '--threads',
      '4',
      '-gencode',
      'arch=compute_90,code=sm_90',
      '-c',
      'csrc/flash_attn/src/flash_bwd_hdim256_bf16_causal_sm90.cu',
    ],
    ['python', 'train.py', '--tokenizer', 'meta/llama', '--max-tokens', '4096', '--max_new_tokens=128', '--num-keys=4'],
    [
      'g++',
      '-pthread',
      '-pipe',
      '-DTORCH_EXTENSION_NAME=flash_attn_2_cuda',
      '-D__CUDA_NO_HALF_OPERATORS__',
      '-o',
      'flash_api.o',
    ],
    ['pip', 'install', 'git+https://github.com/Dao-AILab/flash-attention@v2.7.4', '--no-build-isolation'],
    ['docker', 'run', '-p', '8080:80', 'image:latest'],
    [
      'ollama',
      'runner',
      '--model',
      '/var/lib/ollama/blobs/sha256-e8ad13eff07a78d89926e9e8b882317d082ef5bf9768ad7b50fcdbbcd63748de',
    ],
    [
      'python',
      '-m',
      'ipykernel_launcher',
      '-f',
      '/home/ana/.local/share/jupyter/runtime/kernel-3f0c1a2b-1111-2222-3333-abcdefabcdef.json',
    ],
  ];
  it.each(kept)('leaves %s as it is', (...argv) => {
    expect(redactCommand(argv, 400)).toBe(argv.join(' '));
  });

  it('keeps the program and the source file of a line that is too long', () => {
    const argv = [
      `/usr/local/cuda/${'very/'.repeat(40)}bin/nvcc`,
      ...Array<string>(500).fill('-I/some/include/path'),
      'src/flash_fwd_hdim64.cu',
      ...Array<string>(50).fill('-O3'),
    ];
    const shown = redactCommand(argv);
    expect(Array.from(shown).length).toBeLessThanOrEqual(200);
    expect(shown).toMatch(/^…\/nvcc .*flash_fwd_hdim64\.cu$/);
  });

  it('shows control, direction and broken characters as text, and cuts by code point', () => {
    expect(redactCommand(['python', '-c', 'import x\nmain()\t\x1b[31m\u202e\ud800'])).toBe(
      'python -c import x\\nmain()\\t\\x1b[31m\\u{202e}\ufffd',
    );
    expect(escapeText('😀'.repeat(50), 10)).toBe(`${'😀'.repeat(9)}…`);
    expect(escapeText(`1 (a\n9999 (root) R`, 40)).toBe('1 (a\\n9999 (root) R');
  });

  it('knows secret keys by their words', () => {
    for (const key of [
      '--token',
      'HF_TOKEN',
      'apiKey',
      'aws_secret_access_key',
      'PGPASSWORD',
      'x-auth',
      '--pass',
      'dbPassword',
    ])
      expect([key, isSecretKey(key)]).toEqual([key, true]);
    for (const key of [
      '--tokenizer',
      '--max-tokens',
      'author',
      '--keys',
      '--token-limit',
      '--password-file',
      'bypass',
      'compass',
      '--path',
    ])
      expect([key, isSecretKey(key)]).toEqual([key, false]);
  });

  it('never throws, never grows without bound and never prints a line break, for any arguments', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 80 }), (argv) => {
        const shown = redactCommand(argv);
        expect(Array.from(shown).length).toBeLessThanOrEqual(201);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
      { numRuns: 300 },
    );
  });

  it('hides a secret after any secret flag, whatever stands around it', () => {
    const flag = fc.constantFrom('--token', '--password', '--api-key', '--secret', '--hf-token', '-password');
    const plain = fc.array(fc.stringMatching(/^[a-z./-]{1,12}$/), { maxLength: 70 });
    fc.assert(
      fc.property(flag, plain, plain, fc.boolean(), (name, before, after, joined) => {
        const argv = ['tool', ...before, ...(joined ? [`${name}=${secret}`] : [name, secret]), ...after];
        expect(redactCommand(argv, 2000)).not.toContain(secret);
      }),
      { numRuns: 200 },
    );
  });

  it('reads 200 kB of hostile arguments in milliseconds', () => {
    const started = process.cpuUsage().user;
    for (const piece of ['a=', '"a":', '-p', 'x:/'.repeat(3), "'", '://a:', '\\"', 'bearer ']) {
      redactCommand([piece.repeat(200_000 / piece.length)]);
      redactText(piece.repeat(200_000 / piece.length));
      redactCommand(Array<string>(50_000).fill(piece));
    }
    expect(process.cpuUsage().user - started).toBeLessThan(2_000_000);
  });
});
