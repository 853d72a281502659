/** The kernel's account of an OOM kill, from the log of a box to the advice: who was killed, and who had the memory. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { adviceFor } from '../../src/memory/advice.ts';
import { defaultThinkOptions, think } from '../../src/memory/think.ts';
import { realBox, shells } from './real-box.ts';

const dir = mkdtempSync(join(tmpdir(), 'reclaim-oom-'));
afterAll(() => {
  rmSync(dir, { recursive: true });
});

const row = (pid: number, rssPages: number, name: string) =>
  `[81234.${pid}] [  ${pid}]  1001  ${pid}  5000000  ${rssPages}   73400320        0             0 ${name}`;
const log = [
  '[81230.1] usb 1-1: new high-speed USB device',
  '[81234.1] cicc invoked oom-killer: gfp_mask=0x1100dca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO), order=0, oom_score_adj=0',
  '[81234.2] CPU: 3 PID: 4100 Comm: cicc Tainted: P',
  '[81234.3] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name',
  ...Array.from({ length: 3000 }, (_, i) => row(5000 + i, 12, 'sleep')),
  ...Array.from({ length: 40 }, (_, i) => row(9000 + i, 1_200_000, 'cicc')),
  row(2602, 9000, 'nautilus'),
  '[81235.4] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task=nautilus,pid=2602,uid=1000',
  '[81235.4] Out of memory: Killed process 2602 (nautilus) total-vm:3089788kB, anon-rss:17236kB, file-rss:4792kB, shmem-rss:8136kB, UID:1000',
];

describe.each(shells)('under %s', (shell) => {
  it('says that the victim of the OOM killer was not the culprit, and sends no row that weighs nothing', async () => {
    const dmesg = join(dir, 'dmesg');
    writeFileSync(dmesg, `#!/bin/sh\ncat <<'END'\n${log.join('\n')}\nEND\n`);
    chmodSync(dmesg, 0o755);
    const around = `exec unshare -m sh -c 'mount --bind ${dmesg} /usr/bin/dmesg && exec "$@"' sh "$@"`;
    const capture = await realBox(shell, around).collect({ scope: 'full', windowSeconds: 0 });
    const seen = capture.commands['dmesg oom']!.stdout as string;
    expect(seen).not.toMatch(/sleep|usb|Comm: cicc/);
    expect(seen.trim().split('\n')).toHaveLength(1 + 40 + 1 + 2);
    expect(adviceFor(capture, think(capture, defaultThinkOptions).diagnosis).join('\n')).toMatch(
      /The victim was not the culprit: nautilus held 3\d MiB, while 40 × cicc held 183 GiB/,
    );
  });
});
