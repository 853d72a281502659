/** TAB, pressed in real shells on a real terminal. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'reclaim-tab-'));
const program = [process.execPath, '--import', 'tsx', resolve(import.meta.dirname, '../../src/cli/main.ts')];
const here = resolve(import.meta.dirname, '../..');
const shells = { bash: 'bash --norc -i', zsh: 'zsh -fi', fish: 'fish --no-config -i' } as const;
type Shell = keyof typeof shells;

function reclaim(...args: string[]) {
  return spawnSync(program[0]!, [...program.slice(1), ...args], { cwd: here, encoding: 'utf8' });
}

/** As if the program were installed: the shell finds it by name. */
function named(shell: Shell): string {
  const line = `cd ${here} && RECLAIM_CONFIG=${join(folder, 'reclaim.yaml')} ${program.join(' ')}`;
  return shell === 'fish' ? `function reclaim; ${line} $argv; end` : `reclaim() { (${line} "$@"); }`;
}

/** What the terminal shows once `typed` and a TAB have made it show `awaited`. */
async function pressTab(shell: Shell, typed: string, awaited: RegExp): Promise<string> {
  const terminal = spawn('script', ['-qfc', shells[shell], '/dev/null'], {
    env: { ...process.env, PS1: '', TERM: 'dumb', HOME: folder },
  });
  let shown = '';
  try {
    const seen = new Promise<string>((resolve, reject) => {
      terminal.stdout.on('data', (chunk: Buffer) => {
        shown += chunk.toString();
        if (/READY/.test(shown) && !asked) {
          asked = true;
          terminal.stdin.write(`${typed}\t`);
        }
        if (awaited.test(shown)) resolve(shown);
      });
      terminal.once('exit', () => {
        reject(new Error(`the shell ended: ${shown}`));
      });
    });
    let asked = false;
    terminal.stdin.write(`${named(shell)}\n. ${join(folder, shell)}\necho REA''DY\n`);
    return await seen;
  } finally {
    // Ctrl-U takes the half line away again.
    const gone = once(terminal, 'exit');
    terminal.stdin.end('\x15exit\n');
    if (terminal.exitCode === null) await gone;
  }
}

beforeAll(() => {
  writeFileSync(join(folder, 'reclaim.yaml'), 'hosts: { gpu-box-3: { address: 192.0.2.13 } }\n');
  for (const shell of Object.keys(shells)) writeFileSync(join(folder, shell), reclaim('completion', shell).stdout);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const has = (shell: string) => process.env['CI'] === 'true' || spawnSync(shell, ['-c', 'true']).status === 0;

describe.each(['bash', 'zsh'] as const)('TAB in %s', (shell) => {
  if (!has(shell)) console.warn(`LEFT OUT: completion needs ${shell}`);
  it.skipIf(!has(shell)).each([
    ['a command', 'reclaim diag', /reclaim diagnose /],
    ['an option', 'reclaim run --dr', /reclaim run --dry-run /],
    ['a configured host', 'reclaim run gpu', /reclaim run gpu-box-3 /],
  ])('finishes %s', async (_what, typed, awaited) => {
    expect(await pressTab(shell, typed, awaited)).toMatch(awaited);
  });
});

describe('TAB in fish', () => {
  if (!has('fish')) console.warn('LEFT OUT: completion needs fish');
  it.skipIf(!has('fish')).each([
    ['a command', 'reclaim diag', 'diagnose\ttell what holds'],
    ['an option', 'reclaim run --dr', '--dry-run'],
    ['a configured host', 'reclaim run gpu', 'gpu-box-3'],
  ])('finishes %s', (_what, typed, awaited) => {
    const script = `${named('fish')}; source ${join(folder, 'fish')}; complete -C '${typed}'`;
    expect(spawnSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' }).stdout).toContain(awaited);
  });
});

it('says which shells there are when asked for another', () => {
  const said = reclaim('completion', 'tcsh');
  expect(said.stderr).toMatch(/no completion for "tcsh".*bash\|zsh\|fish/);
  expect(said.status).toBe(2);
});
