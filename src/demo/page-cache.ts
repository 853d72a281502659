/** Page cache that dropping caches can give back: a file on a disk, written out and read again. */
import { closeSync, fsyncSync, openSync, readSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Files here live in memory themselves: their pages are no cache and cannot be dropped. */
const inMemory = new Set([0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */]);

/** Writes and reads `sizeKiB` in `folder`. Answers how much is now cached: 0 where the folder is in memory itself. */
export function makePageCache(folder: string, sizeKiB: number): number {
  if (sizeKiB <= 0 || inMemory.has(statfsSync(folder).type)) return 0;
  const chunk = Buffer.alloc(1 << 20, 'wheel');
  const file = openSync(join(folder, 'flash_attn-2.8.3-cp312-linux_x86_64.whl'), 'w+');
  try {
    const chunks = Math.floor(sizeKiB / 1024);
    for (let i = 0; i < chunks; i += 1) writeSync(file, chunk);
    // Dirty pages cannot be dropped.
    fsyncSync(file);
    for (let i = 0; i < chunks; i += 1) readSync(file, chunk, 0, chunk.length, i * chunk.length);
    return chunks * 1024;
  } finally {
    closeSync(file);
  }
}
