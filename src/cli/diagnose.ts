/** `reclaim diagnose FILE|HOST|--local`: what holds the memory, from a capture or from a live look. Changes nothing. */
import { thinkOptions } from '../look.ts';
import { exitCodes } from '../errors.ts';
import { diagnosisOfPasted } from '../memory/pasted-free.ts';
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
    const { capture, config, pasted } = await captureOf(
      { positionals, local: values.local === true, file: values.config, usage, files: true },
      io,
    );
    const thought = think(capture, thinkOptions(config.policy, []));
    const diagnosis = pasted === undefined ? thought.diagnosis : diagnosisOfPasted(pasted, thought.diagnosis);
    if (values.json === true) io.out(json(diagnosis));
    else if (pasted !== undefined) io.out(`${pasted.table.join('\n')}\n\n${pasted.words}\n${diagnosis.headline}\n`);
    else {
      const options = { width: io.columns, colour: io.color, freeWords: thought.freeWords };
      io.out(`${renderReport(diagnosis, options)}\n`);
    }
    return exitCodes.done;
  },
};
