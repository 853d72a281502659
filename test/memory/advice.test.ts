import { describe, expect, it } from 'vitest';
import { adviceFor } from '../../src/memory/advice.ts';
import { parseOomKills } from '../../src/memory/oom.ts';
import { think } from '../../src/memory/think.ts';
import { captureOf, plainBox } from './cases.ts';

const log = [
  '[100.1] cicc invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0',
  '[100.2] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name',
  '[100.3] [   8123]     0  8123    25225    10680   151552        0             0 cudafe++',
  '[100.3] [   8124]     0  8124  2000000  1048576   151552        0             0 cicc',
  '[100.3] [   8125]     0  8125  2000000  1048576   151552        0             0 cicc',
  '[100.3] [   5485]     0  5485     6629       56    61440       93             0 nvcc',
  '[100.4] Out of memory: Killed process 2602 (nautilus) total-vm:3089788kB, anon-rss:17236kB, file-rss:4792kB, shmem-rss:8136kB, UID:1000 pgtables:1272kB oom_score_adj:200',
].join('\n');

const advice = (dmesg: string, files = {}) => {
  const capture = captureOf(plainBox, files, { 'dmesg oom': dmesg });
  return adviceFor(capture, think(capture).diagnosis);
};

describe('kernel OOM kills', () => {
  it('reads the victim and the table, whose sizes are in pages', () => {
    const [kill] = parseOomKills(log, 4);
    expect(kill).toMatchObject({
      victim: { pid: 2602, comm: 'nautilus', rssKiB: 17_236 + 4792 + 8136 },
      limited: false,
    });
    expect(kill!.tasks[0]).toEqual({ pid: 8123, comm: 'cudafe++', rssKiB: 42_720 });
  });

  it.each([
    [
      'old kernels, two lines per kill',
      'Out of memory: Kill process 12 (cicc) score 900 or sacrifice child\nKilled process 12 (cicc) total-vm:9kB, anon-rss:5kB, file-rss:0kB',
      { pid: 12, comm: 'cicc', rssKiB: 5 },
    ],
    [
      'limits of containers',
      '[1] Memory cgroup out of memory: Killed process 12 (cicc) total-vm:9kB, anon-rss:5kB',
      { pid: 12, comm: 'cicc', rssKiB: 5 },
    ],
    [
      'names with brackets',
      '[1] Out of memory: Killed process 12 (a) b (c) total-vm:9kB, anon-rss:5kB',
      { pid: 12, comm: 'a', rssKiB: 5 },
    ],
  ])('reads %s', (_, text, victim) => {
    expect(parseOomKills(text, 4)).toMatchObject([{ victim }]);
  });

  it('reads the longer table of kernels since 6.8', () => {
    const row =
      '[1] [   8124]     0  8124  2000000  1048576  1048000      500       76   151552        0             0 cicc\n[1] Out of memory: Killed process 8124 (cicc) total-vm:1kB, anon-rss:1kB';
    expect(parseOomKills(row, 4)[0]!.tasks).toEqual([{ pid: 8124, comm: 'cicc', rssKiB: 4 * 1024 * 1024 }]);
  });
});

describe('advice', () => {
  it('says that the victim was not the culprit', () => {
    expect(advice(log).join('\n')).toContain(
      'The victim was not the culprit: nautilus held 29 MiB, while 2 × cicc held 8 GiB.',
    );
  });

  it('shows the arithmetic of the largest MAX_JOBS that fits', () => {
    // 64 GiB, 25 in other use (total less available), 6.4 spare: 32.6 / 4 = 8 compilers.
    expect(advice(log).at(-1)).toMatch(
      /cicc with 4 GiB\. 64 GiB in all, less 25 GiB in other use and 6\.4 GiB kept spare, leaves 33 GiB: 33 GiB \/ 4 GiB = 8 compilers at once\. Build with MAX_JOBS=8\./,
    );
  });

  it('is silent where nothing was built and nobody was killed', () => {
    expect(advice('')).toEqual([]);
    expect(advice('random noise\n[1] something else')).toEqual([]);
  });
});
