/** A file system whose server never answers, as a network mount does when its server is gone: nothing of ours may wait for it. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { mayMount, realBox, shells } from './real-box.ts';

const mayRun = mayMount && existsSync('/dev/fuse');
if (!mayRun) console.warn('LEFT OUT: a mount that does not answer needs root and /dev/fuse');

/** A real mount by FUSE in a namespace of its own. Whoever runs the program holds its end open, and never says a word. */
const mountAndRun = `import ctypes, os, sys
end = os.open('/dev/fuse', os.O_RDWR)
os.set_inheritable(end, True)
libc = ctypes.CDLL(None, use_errno=True)
options = b'fd=%d,rootmode=40000,user_id=0,group_id=0' % end
if libc.mount(b'dead', sys.argv[1].encode(), b'fuse', 0, options) != 0: sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
`;

describe.skipIf(!mayRun)('a mount that does not answer', () => {
  const dir = mkdtempSync(join(tmpdir(), 'reclaim-dead-'));
  const at = join(dir, 'net work');
  const program = join(dir, 'mount.py');
  mkdirSync(at);
  writeFileSync(program, mountAndRun);
  afterAll(() => {
    rmSync(dir, { recursive: true });
  });
  const box = (shell: string) => realBox(shell, `exec unshare --mount python3 -I -S ${program} '${at}' "$@"`);

  it.each(shells)('is named by sync and drop_caches, which then do nothing, under %s', async (shell) => {
    const said = expect.stringContaining(at) as string;
    expect(await box(shell).sync()).toEqual({ state: 'skipped', reason: said });
    expect(await box(shell).dropCaches(1)).toEqual({ state: 'skipped', reason: said });
  });

  it.each(shells)('holds up no look, under %s', async (shell) => {
    const capture = await box(shell).collect({ scope: 'full', windowSeconds: 0 });
    expect(capture.files['/proc/meminfo']).toMatch(/^MemTotal:/);
    expect(capture.files['/proc/mounts']).toContain('net\\040work fuse');
    expect(capture.commands['df tmpfs']?.status).toBe(0);
  });
});
