/** remove-files, ipcrm, sync and drop-caches on real files and segments: what is held, young or not what it seems stays. */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { FileTarget } from '../../src/memory/contract.ts';
import { readHostProgram } from '../../src/ssh/host-program.ts';
import { Crowd, realBox, shells } from './real-box.ts';

const crowd = new Crowd();
const dir = `/dev/shm/reclaim-test-${process.pid}`;
mkdirSync(dir);
afterAll(() => {
  crowd.end();
  rmSync(dir, { recursive: true });
});

function file(name: string): FileTarget {
  const path = `${dir}/${name}`;
  writeFileSync(path, 'x'.repeat(4096));
  const { dev, ino } = statSync(path);
  return { path, dev, ino, kiB: 4 };
}

describe.each(shells)('giving back under %s', (shell) => {
  it('removes the very file, whatever its name', async () => {
    const odd = [file('plain'), file("it's [a] *\n$(id) ü"), file('-rf')];
    const others = [file('plain2'), file("it's a")];
    const results = await realBox(shell).removeFiles(odd, 0);
    expect(results.map((r) => r.result)).toEqual(['removed', 'removed', 'removed']);
    expect(odd.some((f) => existsSync(f.path))).toBe(false);
    expect(others.every((f) => existsSync(f.path))).toBe(true);
  });

  it('keeps what is open, mapped, young, or has another name', async () => {
    const [open, mapped, linked] = [file('open'), file('mapped'), file('linked')];
    const fd = openSync(open.path, 'r');
    const map = `import mmap,os\nf=os.open(${JSON.stringify(mapped.path)},os.O_RDWR)\nm=mmap.mmap(f,4096)\nos.close(f)`;
    await crowd.named('holder', map);
    linkSync(linked.path, `${dir}/second-name`);
    const results = await realBox(shell).removeFiles([open, mapped, linked], 0);
    closeSync(fd);
    expect(results.map((r) => r.result)).toEqual(['in_use', 'in_use', 'refused']);
    rmSync(`${dir}/second-name`);
    const young = await realBox(shell).removeFiles([linked], 300);
    expect(young[0]).toMatchObject({ result: 'refused', reason: expect.stringContaining('300 seconds') as string });
    expect([open, mapped, linked].every((f) => existsSync(f.path))).toBe(true);
  });

  it('falls for no trick with names', async () => {
    const target = file('target');
    symlinkSync(dir, `${dir}/link`);
    const { dev, ino } = statSync('/etc/passwd');
    const tricks: FileTarget[] = [
      { ...target, ino: target.ino + 1_000_000 },
      { ...target, path: `${dir}/link/target`, ino: target.ino },
      { path: `${dir}/../../etc/passwd`, dev, ino, kiB: 4 },
      { path: '/etc/passwd', dev, ino, kiB: 4 },
    ];
    for (const trick of tricks) {
      expect((await realBox(shell).removeFiles([trick], 0)).map((r) => r.result)).toEqual(['refused']);
    }
    rmSync(`${dir}/link`);
    expect(existsSync(target.path)).toBe(true);
    rmSync(target.path);
    expect((await realBox(shell).removeFiles([target], 0))[0]!.result).toBe('already_gone');
  });

  it('removes a segment nobody is attached to, and none that is young or attached', async () => {
    const shmid = Number(/\d+/.exec(execFileSync('ipcmk', ['-M', '65536']).toString())![0]);
    const remove = async (age: number) => (await realBox(shell).ipcrm([{ shmid, kiB: 64 }], age))[0]!;
    expect((await remove(300)).result).toBe('refused');
    const attach = `import ctypes\nc=ctypes.CDLL(None)\nc.shmat.restype=ctypes.c_void_p\nassert c.shmat(${shmid},None,0)!=ctypes.c_void_p(-1).value`;
    const user = await crowd.named('user', attach);
    expect((await remove(0)).result).toBe('in_use');
    user.kill('SIGKILL');
    await expect.poll(() => user.signalCode).toBe('SIGKILL');
    expect((await remove(0)).result).toBe('removed');
    expect((await remove(0)).result).toBe('already_gone');
  });
});

describe('sync and drop-caches', () => {
  it('sync says done', async () => {
    expect(await realBox('dash').sync()).toEqual({ state: 'done' });
  });

  it('dropping is seen in the counters of the kernel', async () => {
    const counter = () => Number(/^drop_pagecache (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))![1]);
    const before = counter();
    expect(await realBox('dash').dropCaches(1)).toEqual({ state: 'done' });
    expect(counter()).toBeGreaterThan(before);
  });

  it('is skipped with the reason where /proc/sys may not be written', async () => {
    const readOnly = `exec unshare -m sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec "$@"' sh "$@"`;
    const answer = await realBox('dash', readOnly).dropCaches(1);
    expect(answer).toMatchObject({ state: 'skipped', reason: expect.stringContaining('container') as string });
  });

  it('leaves slab alone where ZFS keeps its cache, and drops page cache there all the same', async () => {
    // No machine of ours has ZFS, so its file is looked for elsewhere.
    const arcstats = `${dir}/arcstats`;
    const program = readHostProgram();
    expect(program.split('/proc/spl/kstat/zfs/arcstats ]')).toHaveLength(2);
    const box = realBox('dash', undefined, program.replace('/proc/spl/kstat/zfs/arcstats ]', `${arcstats} ]`));
    writeFileSync(arcstats, '');
    expect(await box.dropCaches(2)).toMatchObject({
      state: 'skipped',
      reason: expect.stringContaining('ZFS') as string,
    });
    expect(await box.dropCaches(1)).toEqual({ state: 'done' });
    rmSync(arcstats);
    expect(await box.dropCaches(2)).toEqual({ state: 'done' });
  });

  it('is skipped for one who is not root, with the sudoers line that would allow it', async () => {
    const nobody = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"';
    const answer = await realBox('dash', nobody).dropCaches(1);
    expect(answer.state).toBe('skipped');
    expect(answer.reason).toContain('nobody ALL=(root) NOPASSWD: /usr/local/sbin/reclaim-host');
  });
});
