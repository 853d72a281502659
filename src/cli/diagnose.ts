/** `reclaim diagnose FILE|HOST|--local`: what holds the memory, from a capture or from a live look. Changes nothing. */
import { thinkOptions } from '../look.ts';
import { exitCodes } from '../errors.ts';
import { renderReport } from '../memory/render.ts';
import { think } from '../memory/think.ts';
import { readArgs, type Command } from './io.ts';
import { json } from './output.ts';
import { captureOf } from './source.ts';

const usage = 'reclaim diagnose FILE|HOST|--local [--json]';

export const diagnoseCommand: Command = {
  summary: 'Tell what holds the memory of a box and what may be given back.',
  usage,
  examples: ['reclaim diagnose gpu-box-3', 'reclaim diagnose --local', 'reclaim diagnose box.capture.json --json'],
  async run(args, io) {
    const { values, positionals } = readArgs(args, { json: { type: 'boolean' }, local: { type: 'boolean' } }, usage);
    const { capture, config } = await captureOf(
      { positionals, local: values.local === true, file: values.config, usage, files: true },
      io,
    );
    const thought = think(capture, thinkOptions(config.policy, []));
    io.out(
      values.json === true
        ? json(thought.diagnosis)
        : `${renderReport(thought.diagnosis, { width: io.columns, colour: io.color, freeWords: thought.freeWords })}\n`,
    );
    return exitCodes.done;
  },
};
