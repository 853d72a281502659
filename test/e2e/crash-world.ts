/** The boxes of the crash test: each has one dead build, unless its name asks for something else. */
import type { Box } from '../../src/box.ts';
import type { Capture } from '../../src/memory/contract.ts';
import { transitions } from '../../src/requests/state.ts';
import { makeBox } from '../memory/box.ts';
import { policyOf } from '../requests/fixtures.ts';

export const crashPolicy = policyOf({ people: { ana: 'UANN' }, grace: '1s' });

export interface Crash {
  readonly point: 'before' | 'after';
  readonly from: string;
  readonly to: string;
  readonly host: string;
}

/** Right before and right after each change of state the table knows. */
export const crashes: readonly Crash[] = Object.entries(transitions).flatMap(([from, tos]) =>
  tos.flatMap((to) =>
    (['before', 'after'] as const).map((point) => ({ point, from, to, host: `${point}-${from}-${to}` })),
  ),
);

export function captureOf(host: string): Capture {
  const cicc = '/usr/local/cuda/nvvm/bin/cicc';
  const common = { cwd: '/tmp/pip-install-x1/flash-attn (deleted)', session: 5000, uid: 1001, secondsOld: 7200 };
  const argv = [cicc, '--orig_src_file_name', 'flash_bwd_hdim128_bf16_sm90.cu'];
  const processes = [
    { ...common, pid: 5001, ppid: 1, comm: 'ninja', argv: ['ninja', '-v'], exe: '/usr/bin/ninja', anonKiB: 20_480 },
    { ...common, pid: 5002, ppid: 5001, comm: 'cicc', argv, exe: cicc, anonKiB: 921_600 },
  ];
  const made = makeBox(host.endsWith('-draft-succeeded') ? {} : { processes });
  return { ...made, host };
}

/** `killed` is told before each order to end processes. */
export function boxOf(host: string, killed: () => void): Box {
  const nothing = () => Promise.resolve([]);
  const box: Box = {
    host,
    hostKey: host.endsWith('-running-superseded') ? 'SHA256:other' : 'SHA256:k',
    forRun: () => box,
    journal: () => Promise.resolve({ state: 'ended', lines: [] }),
    collect: () => Promise.resolve(captureOf(host)),
    kill: ({ targets }) => {
      killed();
      return Promise.resolve(targets.map(({ pid, startTime }) => ({ pid, startTime, result: 'exited' as const })));
    },
    removeFiles: nothing,
    ipcrm: nothing,
    sync: () => Promise.resolve({ state: 'done' }),
    dropCaches: () => Promise.resolve({ state: 'done' }),
    close: () => Promise.resolve(),
  };
  return box;
}
