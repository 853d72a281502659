import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { startSituation, type BoxSituation } from '../../src/demo/box-situation.ts';
import { isAlive, statOf } from '../../src/demo/process-facts.ts';
import { situationNames } from '../../src/demo/situations.ts';
import { cli } from '../../src/cli/cli.ts';
import { diagnosisSchema } from '../../src/memory/contract.ts';

// Whose shared memory is whose can only root tell.
const canLook = process.platform === 'linux' && process.getuid?.() === 0;
if (!canLook) console.warn('LEFT OUT: the situations of the demo need Linux and root');
const folder = mkdtempSync(join(tmpdir(), 'reclaim-situations-'));
const config = join(folder, 'reclaim.yaml');
writeFileSync(config, 'policy: { min_age: { shm: 0s } }\n');
afterAll(() => {
  rmSync(folder, { recursive: true });
});
let box: BoxSituation | undefined;
afterEach(async () => {
  await box?.dispose();
  box = undefined;
});

/** Everything the plan names: pids and paths. */
async function planned(): Promise<Set<number | string>> {
  let out = '';
  const code = await cli(['diagnose', '--local', '--json', '--config', config], {
    out: (text) => void (out += text),
    err: (text) => void (out += text),
    ask: () => Promise.resolve(null),
    env: {},
    cwd: folder,
    columns: 100,
    color: false,
    signal: new AbortController().signal,
  });
  expect(code, out).toBe(0);
  const steps = diagnosisSchema.parse(JSON.parse(out)).plan?.steps ?? [];
  return new Set(
    steps.flatMap((step): (number | string)[] => {
      if (step.action === 'kill') return step.targets.map((t) => t.pid);
      return step.action === 'remove_files' ? step.targets.map((t) => t.path) : [];
    }),
  );
}

describe.runIf(canLook)('a situation of the demo', () => {
  it.each(situationNames)('%s is read rightly: what lingers is planned, what is innocent never', async (name) => {
    box = await startSituation(name);
    const { lingering, innocent, staleFiles } = box.now();
    const plan = await planned();
    expect([...lingering.map((p) => p.pid), ...staleFiles].filter((target) => !plan.has(target))).toEqual([]);
    expect(innocent.filter((p) => plan.has(p.pid))).toEqual([]);
    await box.dispose();
    expect([...lingering, ...innocent].filter(isAlive)).toEqual([]);
    expect(staleFiles.filter((path) => existsSync(path))).toEqual([]);
  });

  it('keeps a live build under a living parent', async () => {
    box = await startSituation('live-build');
    const [driver, ...compilers] = box.now().innocent;
    expect(statOf(driver!.pid)!.parentPid).toBe(process.pid);
    expect(compilers.map((p) => statOf(p.pid)!.parentPid)).toEqual(compilers.map(() => driver!.pid));
  });

  it('gives way to the next one, which leaves nothing of the first', async () => {
    box = await startSituation('stale-shm');
    const [file] = box.now().staleFiles;
    await box.choose('only-cache');
    expect(box.name()).toBe('only-cache');
    expect(existsSync(file!)).toBe(false);
    await expect(box.choose('a meteor')).rejects.toThrow(/There is no "a meteor"\. Choose one of leftover-build, /);
    expect(box.name()).toBe('only-cache');
  });
});
