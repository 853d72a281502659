/** Takes one reading of a box: the cheap part of a look. */
import type { Deps } from '../deps.ts';
import { ReclaimError } from '../errors.ts';
import { sampleOf } from './watch/judge.ts';
import type { Sample } from './watch/sample.ts';

/** @throws ReclaimError for whatever keeps the box from being read */
export async function readSample(
  { openBox, clock }: Pick<Deps, 'openBox' | 'clock'>,
  host: string,
  signal: AbortSignal,
): Promise<Sample> {
  const box = await openBox(host, { signal });
  try {
    const sample = sampleOf(await box.collect({ scope: 'memory' }), clock.now());
    if (sample !== null) return sample;
    throw new ReclaimError('host_answer_invalid', `${host} did not tell how much memory is available.`);
  } finally {
    await box.close();
  }
}
