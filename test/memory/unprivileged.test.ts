import { describe, expect, it } from 'vitest';
import { think } from '../../src/memory/think.ts';
import { makeBox, type ProcSpec } from './box.ts';

const login = 1001;
const cicc = (uid: number): ProcSpec => ({
  pid: 5002,
  comm: 'cicc',
  argv: ['/usr/local/cuda/nvvm/bin/cicc', '--orig_src_file_name', 'flash_bwd.cu'],
  exe: '/usr/local/cuda/nvvm/bin/cicc',
  cwd: '/tmp/pip-install-x1/flash-attn (deleted)',
  session: 5000,
  uid,
  anonKiB: 600 * 1024,
  secondsOld: 7200,
});
const shell: ProcSpec = { pid: 1991, ppid: 1990, comm: 'sh', argv: ['sh', '-s'], uid: login };

/** As read without privilege, by a shell below one that had ended when the processes were read. */
const seenBy = (owner: number) => ({
  ...makeBox({ privileged: false, processes: [shell, cicc(owner)] }),
  collectorPids: [99_999, 1991, 1990, 900, 1],
});

describe('a look without privilege', () => {
  it('may propose what the login user left over himself', () => {
    const { plan } = think(seenBy(login)).diagnosis;
    expect(plan?.steps[0]).toMatchObject({ action: 'kill', targets: [{ pid: 5002 }] });
  });

  it('proposes nothing of anybody else, whom it cannot see into, and says so', () => {
    const { plan, partial } = think(seenBy(1002)).diagnosis;
    expect(plan?.steps.filter((step) => step.action === 'kill') ?? []).toEqual([]);
    expect(partial.join(' ')).toMatch(/not privileged/);
  });
});
