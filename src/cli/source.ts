/** Where a command gets its capture from: a file, a configured host, or this machine. */
import { hostname } from 'node:os';
import type { Box } from '../box.ts';
import { findHost } from '../config/hosts.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { ReclaimError } from '../errors.ts';
import type { Capture } from '../memory/contract.ts';
import { parseCapture } from '../memory/parse-capture.ts';
import { captureOfNothing, readPastedFree, type PastedFree } from '../memory/pasted-free.ts';
import { boxOver } from '../ssh/host-program.ts';
import { LocalTransport } from '../ssh/local.ts';
import { openBoxes, type Boxes } from '../ssh/open-box.ts';
import { roadSettings } from '../compose.ts';
import { systemClock } from '../system-clock.ts';
import { onePositional, type CliIo } from './io.ts';
import { isFile, readTextFile } from './output.ts';

export interface SourceArgs {
  readonly positionals: readonly string[];
  readonly local: boolean;
  /** From --config. */
  readonly file: string | undefined;
  readonly usage: string;
  /** Whether a capture file may stand in for a box. */
  readonly files: boolean;
}

export interface Source {
  readonly capture: Capture;
  readonly config: Config;
  /** Where the file held a table of `free` in the place of a capture. */
  readonly pasted?: PastedFree;
}

export async function captureOf(args: SourceArgs, io: CliIo): Promise<Source> {
  const config = loadConfig({ cwd: io.cwd, env: io.env, file: args.file });
  if (args.local) {
    if (args.positionals.length > 0) {
      throw new ReclaimError('usage', `Name a host or --local, not both. Nothing was done. Usage: ${args.usage}`);
    }
    return { capture: await collect(openLocal()), config };
  }
  const said = onePositional(
    args.positionals,
    args.files ? 'a file, a host or --local' : 'a host or --local',
    args.usage,
  );
  if (args.files && (await isFile(said, io.cwd))) {
    const text = await readTextFile(said, io.cwd);
    const pasted = readPastedFree(text);
    if (pasted === null) return { capture: parseCapture(text), config };
    return { capture: captureOfNothing(new Date(systemClock.now()).toISOString()), config, pasted };
  }
  if (args.files && /[/\\]|\.json$/.test(said)) {
    throw new ReclaimError('file_unreadable', `There is no file ${said}, so nothing was diagnosed. Check the path.`);
  }
  const host = findHost(config, said);
  io.err(`Looking at ${host.name} …\n`);
  const boxes = cliBoxes(config);
  try {
    return { capture: await collect(await boxes.openBox(host.name, { signal: io.signal })), config };
  } finally {
    boxes.close();
  }
}

async function collect(box: Box): Promise<Capture> {
  try {
    return await box.collect({ scope: 'full', windowSeconds: 1 });
  } finally {
    await box.close();
  }
}

function openLocal(): Box {
  if (process.platform !== 'linux') {
    throw new ReclaimError(
      'usage',
      'This machine does not run Linux, so it cannot be looked at. Diagnose a capture file or a configured host.',
    );
  }
  const privilege = process.getuid?.() === 0 ? 'root' : 'none';
  return boxOver(new LocalTransport(hostname(), { privilege }), { privilege, clock: systemClock });
}

export function cliBoxes(config: Config): Boxes {
  return openBoxes(roadSettings(config, systemClock));
}
