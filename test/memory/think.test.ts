import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReclaimError } from '../../src/errors.ts';
import { captureSchema, diagnosisSchema } from '../../src/memory/contract.ts';
import { parseCapture } from '../../src/memory/parse-capture.ts';
import { renderReport } from '../../src/memory/render.ts';
import { redactCapture } from '../../src/memory/redact-capture.ts';
import { judge, think } from '../../src/memory/think.ts';
import type { ProcessStory } from '../../src/memory/story.ts';
import { captureOf, caseOf, plainBox, sample, samples, withMeminfo } from './cases.ts';

const gib = 1024 * 1024;

/** What the process side would say; here only its sum matters. */
const story = (over: Partial<ProcessStory> = {}): ProcessStory => ({
  findings: [],
  steps: [],
  identities: {},
  partial: [],
  liveKiB: 0,
  sighted: true,
  ...over,
});

const leftover = (kiB: number): Pick<ProcessStory, 'findings' | 'steps' | 'identities'> => ({
  findings: [
    {
      class: 'leftover_build',
      kiB,
      reclaimableKiB: { low: kiB, high: kiB },
      action: 'kill',
      evidence: ['parent gone'],
      processes: [{ pid: 77, startTime: 5, uid: 1001, user: 'ana', comm: 'cicc', command: 'cicc', kiB }],
    },
  ],
  steps: [
    {
      action: 'kill',
      targets: [{ pid: 77, startTime: 5 }],
      expectedFreeKiB: { low: kiB, high: kiB },
      expectedAvailableKiB: { low: kiB, high: kiB },
    },
  ],
  identities: { '77:5': { uid: 1001, exe: '/usr/bin/cicc' } },
});

describe('the verdict', () => {
  it.each(samples)('%s has nothing to reclaim, and a drop that gives available next to nothing', (name) => {
    const { diagnosis } = think(sample(name));
    expect(diagnosis.verdict).toBe('nothing_to_reclaim');
    for (const step of diagnosis.plan?.steps ?? []) {
      expect(step.action).toBe('drop_caches');
      expect(step.expectedAvailableKiB.low).toBe(0);
      expect(step.expectedAvailableKiB.high).toBeLessThan(diagnosis.memory.totalKiB * 0.01);
    }
  });

  it.each([
    ['a leftover of 255 MiB is not worth it', leftover(255 * 1024), 0, 'nothing_to_reclaim'],
    ['a leftover of 256 MiB is lingering, however much is available', leftover(256 * 1024), 0, 'lingering'],
    ['a leftover beside live work below a tenth is lingering', leftover(10 * gib), 6 * gib, 'lingering'],
    ['both above a tenth of the box are mixed', leftover(7 * gib), 7 * gib, 'mixed'],
  ] as const)('%s', (_, held, liveKiB, verdict) => {
    const box = { ...plainBox, MemAvailable: 40 * gib };
    expect(judge(captureOf(box), story({ ...held, liveKiB })).diagnosis.verdict).toBe(verdict);
  });

  it('has one finding that is worth it, and then counts everything the plan gives back', () => {
    const [build, small] = [leftover(2 * gib), leftover(100 * 1024)];
    const told = story({ ...build, findings: [...build.findings, ...small.findings] });
    const { headline } = judge(captureOf(plainBox), told).diagnosis;
    expect(headline).toContain('2.1 GiB can be given back (2 × leftover build)');
  });

  it('calls live work real usage when the box is short of memory, and proposes nothing', () => {
    const box = { ...plainBox, MemAvailable: 8 * gib };
    const { diagnosis } = judge(captureOf(box), story({ liveKiB: 50 * gib }));
    expect(diagnosis).toMatchObject({ verdict: 'real_usage', plan: null });
  });

  it('cannot tell what it cannot see', () => {
    const { diagnosis } = judge(captureOf(plainBox), story({ sighted: false, partial: ['No process could be read.'] }));
    expect(diagnosis).toMatchObject({ verdict: 'unknown', confidence: 'low', plan: null });
    expect(diagnosis.headline).toContain('No process could be read.');
  });

  it('is unknown without meminfo', () => {
    expect(judge(captureOf({}), story()).diagnosis).toMatchObject({ verdict: 'unknown', plan: null });
  });

  it('acts on nothing on a box that does not tell its boot id', () => {
    const capture = captureOf(plainBox, { '/proc/sys/kernel/random/boot_id': 'nonsense' });
    const { diagnosis, bootId } = judge(capture, story(leftover(20 * gib)));
    expect(bootId).toBe('');
    expect(diagnosis.plan?.steps.map((s) => s.action) ?? []).not.toContain('kill');
    expect(diagnosis.partial.join()).toContain('boot id');
  });

  it('offers the drop last, and only beside something else or when it moves a GiB', () => {
    const steps = judge(captureOf(plainBox), story(leftover(20 * gib))).diagnosis.plan!.steps;
    expect(steps.map((s) => s.id)).toEqual(['kill-1', 'drop-1']);
    const little = {
      ...plainBox,
      'Active(file)': gib / 4,
      'Inactive(file)': gib / 4,
      Mapped: 0,
      SReclaimable: 0,
      KReclaimable: 0,
    };
    expect(judge(captureOf(little), story()).diagnosis.plan).toBeNull();
  });
});

describe('memory no process holds', () => {
  // Kernel-side truths of public boxes. Of awesome-prom-50 the report says "slab, and real use beside it": what is real
  // use cannot be told without its processes, so only the finding classes are held to it.
  it.each([
    ['coreos-2637-percpu', ['percpu', 'unreclaimable_slab'], 'not_a_process'],
    ['telegraf-15663', ['unreclaimable_slab'], 'not_a_process'],
    ['htop-1559-zfs', ['unaccounted'], 'not_a_process'],
    ['awesome-prom-50', ['reclaimable_slab', 'unreclaimable_slab'], null],
    ['beastie-sync', ['page_cache'], 'unknown'],
    ['uutils-389', ['page_cache'], null],
  ])('%s', (id, classes, verdict) => {
    const { diagnosis } = think(captureOf(caseOf(id).meminfo));
    expect(diagnosis.findings.map((f) => f.class)).toEqual(expect.arrayContaining(classes));
    if (verdict !== null) expect(diagnosis.verdict).toBe(verdict);
  });

  it.each(withMeminfo.filter((c) => c.category.startsWith('healthy')))(
    '$id: no alarm on a healthy box',
    ({ meminfo }) => {
      const classes = judge(captureOf(meminfo), story()).diagnosis.findings.map((f) => f.class);
      for (const alarm of ['unaccounted', 'gpu_driver', 'unreclaimable_slab', 'percpu', 'hugepages', 'balloon']) {
        expect(classes).not.toContain(alarm);
      }
    },
  );

  it('names a huge page pool that fills the box, all of it free (sglang-38208)', () => {
    const meminfo = {
      MemTotal: 1772 * gib,
      MemFree: 106 * gib,
      MemAvailable: 104 * gib,
      Cached: 0,
      Buffers: 0,
      Shmem: 0,
      AnonPages: 20 * gib,
      Hugetlb: 1582 * gib,
      HugePages_Total: 809_984,
      HugePages_Free: 809_984,
      HugePages_Rsvd: 0,
      Hugepagesize: 2048,
    };
    const { diagnosis } = judge(captureOf(meminfo), story({ liveKiB: 20 * gib }));
    expect(diagnosis).toMatchObject({ verdict: 'not_a_process', plan: null });
    expect(diagnosis.findings.find((f) => f.class === 'hugepages')).toMatchObject({
      action: 'tell_admin',
      reclaimableKiB: { low: 0, high: 1582 * gib },
    });
  });

  it('puts what is missing down to the GPU driver only on a box with a GPU (nvidia-1254)', () => {
    const meminfo = {
      MemTotal: 32 * gib,
      MemFree: 350 * 1024,
      MemAvailable: 400 * 1024,
      Cached: gib,
      Buffers: 0,
      Shmem: 0,
      AnonPages: 213 * 1024,
      SReclaimable: 0,
      SUnreclaim: 0,
      Slab: 0,
    };
    const gpu = { 'nvidia-smi gpus': '0, 4, 81559, 0\n' };
    expect(judge(captureOf(meminfo, {}, gpu), story()).diagnosis.findings[0]?.class).toBe('gpu_driver');
    expect(judge(captureOf(meminfo), story()).diagnosis.findings[0]?.class).toBe('unaccounted');
    expect(judge(captureOf(meminfo), story()).diagnosis.verdict).toBe('not_a_process');
  });

  it('finds reclaimable slab that fills a box, and the level that drops it', () => {
    const meminfo = {
      ...plainBox,
      MemTotal: 16 * gib,
      MemFree: 2 * gib,
      MemAvailable: 13 * gib,
      Cached: gib / 2,
      'Active(file)': gib / 4,
      'Inactive(file)': gib / 8,
      AnonPages: gib,
      Shmem: 0,
      Mapped: 0,
      Slab: 11 * gib,
      SReclaimable: 11 * gib,
      KReclaimable: 11 * gib,
      SUnreclaim: 0,
    };
    const { diagnosis } = judge(captureOf(meminfo), story({ liveKiB: gib }));
    expect(diagnosis.verdict).toBe('not_a_process');
    expect(diagnosis.plan!.steps[0]).toMatchObject({ action: 'drop_caches', targets: [{ level: 2 }] });
  });
});

describe('think, on any capture at all', () => {
  const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 }));
  const blob = fc.oneof(
    text,
    fc.uint8Array({ maxLength: 200 }).map((b) => ({ base64: Buffer.from(b).toString('base64') })),
  );
  const whole = sample('page-cache-only');
  const paths = [...Object.keys(whole.files), '/proc/spl/kstat/zfs/arcstats', '__proto__'];

  it('gives a diagnosis that its schema accepts, whose accounting sums and whose findings come largest first', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...paths), blob, { noNullPrototype: true }),
        fc.dictionary(fc.constantFrom(...Object.keys(whole.commands)), blob, { noNullPrototype: true }),
        fc.boolean(),
        (files, outputs, overReal) => {
          const commands = Object.fromEntries(Object.entries(outputs).map(([k, stdout]) => [k, { status: 0, stdout }]));
          const capture = captureSchema.parse({
            ...whole,
            files: overReal ? { ...whole.files, ...files } : files,
            commands: overReal ? { ...whole.commands, ...commands } : commands,
          });
          const { diagnosis } = think(capture);
          expect(diagnosisSchema.parse(JSON.parse(JSON.stringify(diagnosis)))).toEqual(diagnosis);
          expect(diagnosis.accounting.reduce((sum, e) => sum + e.kiB, 0)).toBe(diagnosis.memory.totalKiB);
          const sizes = diagnosis.findings.map((f) => f.kiB);
          expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
          expect(renderReport(diagnosis, { width: 80, colour: false })).not.toContain('\u001b');
        },
      ),
      { numRuns: 150 },
    );
  });

  it('gives the same diagnosis of a redacted capture, without names of people or of the box', () => {
    for (const name of samples) {
      const capture = sample(name);
      const redacted = redactCapture(capture);
      const [before, after] = [think(capture).diagnosis, think(redacted).diagnosis];
      expect(after).toMatchObject({ verdict: before.verdict, accounting: before.accounting, memory: before.memory });
      expect(after.findings.map((f) => [f.class, f.kiB])).toEqual(before.findings.map((f) => [f.class, f.kiB]));
      const words = JSON.stringify(redacted);
      for (const person of ['ana', 'chen', 'dita', 'emil', capture.host]) {
        expect(words).not.toMatch(new RegExp(`(?<![A-Za-z0-9_])${person}(?![A-Za-z0-9_])`));
      }
      expect(captureSchema.safeParse(redacted).success).toBe(true);
    }
  });

  it('takes secrets out of command lines of a redacted capture', () => {
    const capture = captureOf(plainBox, {
      '/proc/9/cmdline': 'python\0train.py\0--api-key\0hunter2hunter2\0',
      '/proc/9/stat': '9 (python) S 1',
    });
    const redacted = redactCapture(capture);
    expect(JSON.stringify(redacted)).not.toContain('hunter2');
    expect(redacted.files['/proc/9/cmdline']).toMatch(/^python\0train\.py\0--api-key\0[^\0]+\0$/);
  });
});

describe('a text that should be a capture', () => {
  it.each([
    ['', /empty/],
    ['{"capture":1,', /not JSON/],
    ['{"capture":2,"host":"a","takenAt":"b","files":{}}', /capture/],
    ['[]', /expected object/],
    ['{"capture":1,"host":"a","takenAt":"b","files":{"/proc/meminfo":5}}', /\/proc\/meminfo/],
  ])('%j is refused with the place that is wrong', (input, why) => {
    const refusal = (() => {
      try {
        return parseCapture(input);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(refusal).toMatchObject({ code: 'capture_invalid' });
    expect((refusal as ReclaimError).userText).toMatch(why);
  });
});

describe('the report in a terminal', () => {
  it.each([40, 80, 200])('keeps to %i columns, free table aside, and says in words what it paints', (width) => {
    const { diagnosis, freeWords } = judge(captureOf(plainBox), story(leftover(20 * gib)));
    const plain = renderReport(diagnosis, { width, colour: false, freeWords, advice: ['Build with MAX_JOBS=9.'] });
    const painted = renderReport(diagnosis, { width, colour: true, freeWords, advice: ['Build with MAX_JOBS=9.'] });
    expect(painted.replaceAll(/\u001b\[\d+m/g, '')).toBe(plain);
    const lines = plain.split('\n').filter((line) => !/^(Mem|Swap|\s+total)/.test(line));
    expect(lines.filter((line) => line.length > Math.max(width, 78))).toEqual([]);
    for (const word of ['lingering', 'leftover_build', 'kill-1', 'drop-1', 'MAX_JOBS=9', 'used = '])
      expect(plain).toContain(word);
  });

  it('puts what can be given back first and small change last, in one line, whatever is larger', () => {
    const other = (name: 'live_job' | 'zombie', kiB: number): ProcessStory['findings'][number] => ({
      class: name,
      kiB,
      reclaimableKiB: { low: 0, high: 0 },
      action: 'none',
      evidence: [`what the ${name} is`, 'and more about it'],
    });
    const held = leftover(2 * gib);
    const findings = [other('live_job', 9 * gib), ...held.findings, other('zombie', 0)];
    const { diagnosis } = judge(captureOf(plainBox), story({ ...held, findings }));
    const report = renderReport(diagnosis, { width: 80, colour: false });
    const places = ['leftover_build  2 GiB', 'live_job  9 GiB', 'page_cache', '- zombie: what the zombie is'];
    const found = places.map((words) => report.indexOf(words));
    expect(found).not.toContain(-1);
    expect(found.slice(0, 2)).toEqual(found.slice(0, 2).toSorted((a, b) => a - b));
    expect(Math.max(...found)).toBe(found[3]);
    expect(report).toContain('of the leftover_build of 2 GiB');
    expect(report).not.toContain('what the zombie is\n  - and more');
  });

  it('shows every target with its whole command to somebody who is asked to approve', () => {
    const held = leftover(2 * gib);
    const command = `cicc ${'--include=csrc '.repeat(10)}flash_bwd.cu`;
    const processes = Array.from({ length: 30 }, (_, i) => ({
      ...{ pid: 77 + i, startTime: 5, uid: 1001, user: 'ana', comm: 'cicc' },
      ...{ command, kiB: 64 * 1024 },
    }));
    const findings = held.findings.map((finding) => ({ ...finding, processes }));
    const { diagnosis } = judge(captureOf(plainBox), story({ ...held, findings }));
    const shown = (detail: 'short' | 'full') =>
      renderReport(diagnosis, { width: 80, colour: false, detail }).split('flash_bwd.cu').length - 1;
    expect([shown('short'), shown('full')]).toEqual([10, 30]);
    expect(renderReport(diagnosis, { width: 80, colour: false })).toContain('and 20 more');
  });
});
