/**
 * Real situations on this machine, made and cleaned up by a test: processes that hold memory, files in /dev/shm and
 * segments nobody is attached to. Whoever makes one gets what it must look like, read by other means than the product's.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, utimesSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeLeftovers, type Leftovers } from '../../src/demo/leftovers.ts';
import { nameOf, type ProcessName } from '../../src/demo/process-facts.ts';

const MiB = 1024 * 1024;
const cleanups: (() => Promise<void> | void)[] = [];

/** Undoes everything, also what a failed test left half made. */
export async function undoSituations(): Promise<void> {
  for (const undo of cleanups.splice(0).reverse()) await undo();
}

export const anonKiBOf = (pid: number): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);

/** Fills a file with bytes that are no zeros. */
function fill(fd: number, mib: number): void {
  const block = randomBytes(MiB);
  for (let i = 0; i < mib; i++) writeSync(fd, block);
}

/** A file on a disk that was written out and not yet dropped: page cache. */
export function cachedFile(mib: number): { kiB: number } {
  const folder = mkdtempSync(join('/var/tmp', 'reclaim-cache-'));
  cleanups.push(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const fd = openSync(join(folder, 'data'), 'w');
  fill(fd, mib);
  fsyncSync(fd);
  closeSync(fd);
  return { kiB: mib * 1024 };
}

/** A named file in /dev/shm with nobody behind it. */
export function shmFile(name: string, mib: number, ageSeconds: number): { path: string; kiB: number } {
  const path = `/dev/shm/${name}_${randomBytes(4).toString('hex')}`;
  cleanups.push(() => {
    rmSync(path, { force: true });
  });
  const fd = openSync(path, 'wx');
  fill(fd, mib);
  closeSync(fd);
  const then = Date.now() / 1000 - ageSeconds;
  utimesSync(path, then, then);
  return { path, kiB: mib * 1024 };
}

/** A System V segment: touched, detached, its maker dead. Its bytes are those of /proc/sysvipc/shm. */
export function sysvSegment(mib: number): { shmid: number; kiB: number } {
  const source = `
    my $id = shmget(0, ${mib * MiB}, 0600 | 01000) // die "shmget: $!";
    my $block = 'x' x 1048576;
    for my $at (0 .. ${mib - 1}) { shmwrite($id, $block, $at * 1048576, 1048576) or die "shmwrite: $!" }
    print $id;`;
  const shmid = Number(execFileSync('perl', ['-e', source], { encoding: 'utf8' }));
  cleanups.push(() => {
    execFileSync('ipcrm', ['-m', String(shmid)]);
  });
  return { shmid, kiB: mib * 1024 };
}

const holdSource = (mib: number, more: string): string => `
  const held = [];
  for (let i = 0; i < ${mib}; i++) held.push(Buffer.alloc(1048576, 7));
  ${more}
  process.stdout.write('ready\\n');
  setInterval(() => held.length, 1000);`;

async function ready(child: ChildProcess): Promise<void> {
  const { stdout } = child;
  if (stdout === null) throw new Error('no pipe');
  await Promise.race([
    once(stdout, 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`ended early (${String(code)})`))),
  ]);
}

/** A program of ours with work to do: it holds memory and keeps one CPU busy for short moments. */
export async function liveJob(mib: number): Promise<ProcessName> {
  const work = `setInterval(() => { const end = Date.now() + 40; while (Date.now() < end); }, 200);`;
  const child = spawn(process.execPath, ['-e', holdSource(mib, work), 'train.js'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return kept(child);
}

/** A file in /dev/shm that was unlinked at once, as libraries do it: only the open descriptor keeps it. */
export async function unlinkedShm(mib: number): Promise<ProcessName & { kiB: number }> {
  const path = `/dev/shm/reclaim_test_${randomBytes(4).toString('hex')}`;
  cleanups.push(() => {
    rmSync(path, { force: true });
  });
  const more = `
    const fs = require('node:fs');
    const fd = fs.openSync(${JSON.stringify(path)}, 'wx');
    for (let i = 0; i < ${mib}; i++) fs.writeSync(fd, held[0]);
    fs.unlinkSync(${JSON.stringify(path)});`;
  const child = spawn(process.execPath, ['-e', holdSource(1, more)], { stdio: ['ignore', 'pipe', 'inherit'] });
  return { ...(await kept(child)), kiB: mib * 1024 };
}

async function kept(child: ChildProcess): Promise<ProcessName> {
  cleanups.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  await ready(child);
  return nameOf(child.pid!);
}

/** Compilers whose build is gone: parent dead, a session of their own, their folder deleted. */
export async function orphanedBuild(mib: number): Promise<Leftovers> {
  const leftovers = await makeLeftovers({ totalMiB: mib, cacheMiB: 0 });
  cleanups.push(() => leftovers.dispose());
  return leftovers;
}
