import { describe, expect, it } from 'vitest';
import { parseMeminfo } from '../../src/memory/meminfo.ts';
import { pageSizeKiB, parseVmstat } from '../../src/memory/vmstat.ts';

const meminfo = (kiB: Record<string, number>) =>
  parseMeminfo(
    Object.entries(kiB)
      .map(([name, value]) => `${name}: ${value} kB\n`)
      .join(''),
  );
const vmstat = (pages: Record<string, number>) =>
  parseVmstat(
    Object.entries(pages)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  );
const figures = (pageKiB: number) =>
  [
    meminfo({ MemFree: 90_000 * pageKiB, AnonPages: 40_000 * pageKiB, Mapped: 5_000 * pageKiB }),
    vmstat({ nr_free_pages: 90_000, nr_anon_pages: 40_000, nr_mapped: 5_000 }),
  ] as const;

describe('the page size', () => {
  it.each([4, 16, 64])('is read off figures that meminfo and vmstat both have: %i KiB', (pageKiB) => {
    expect(pageSizeKiB(...figures(pageKiB))).toBe(pageKiB);
  });

  it('is not misled by free memory that no zone of a virtual machine knows of', () => {
    const free = {
      MemFree: 22_817_392,
      AnonPages: 1_414_944,
      Mapped: 73_580,
      SReclaimable: 55_836,
      PageTables: 34_656,
    };
    const pages = {
      nr_free_pages: 1_784_780,
      nr_anon_pages: 353_736,
      nr_mapped: 18_395,
      nr_slab_reclaimable: 13_959,
      nr_page_table_pages: 8_664,
    };
    expect(pageSizeKiB(meminfo(free), vmstat(pages))).toBe(4);
  });

  it('is 4 KiB where nothing tells', () => {
    expect(pageSizeKiB(meminfo({}), vmstat({}))).toBe(4);
    expect(pageSizeKiB(meminfo({ MemFree: 4_000_000_000 }), vmstat({ nr_free_pages: 3 }))).toBe(4);
  });
});
