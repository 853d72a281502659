/** `reclaim capture HOST|--local`: one look as one JSON file, for later, for tests and for bug reports. */
import { exitCodes } from '../errors.ts';
import { redactCapture } from '../memory/redact-capture.ts';
import { readArgs, type Command } from './io.ts';
import { captureOf } from './source.ts';

const usage = 'reclaim capture HOST|--local [--redact]';

export const captureCommand: Command = {
  summary: 'Write everything one look reads as one JSON object to stdout.',
  usage,
  examples: ['reclaim capture gpu-box-3 > box.capture.json', 'reclaim capture --local --redact > report.capture.json'],
  async run(args, io) {
    const options = { redact: { type: 'boolean' }, local: { type: 'boolean' } } as const;
    const { values, positionals } = readArgs(args, options, usage);
    const { capture } = await captureOf(
      { positionals, local: values.local === true, file: values.config, usage, files: false },
      io,
    );
    io.out(`${JSON.stringify(values.redact === true ? redactCapture(capture) : capture)}\n`);
    return exitCodes.done;
  },
};
