/** The watcher's round for one host: read, keep the reading, judge, and raise or end the host's incident. */
import type { Deps } from '../deps.ts';
import { asReclaimError } from '../errors.ts';
import { isOver, recover, watchFingerprint } from './incident/state.ts';
import { raise } from './incidents.ts';
import { silenceOf } from './silences.ts';
import { changeTopic, inSlot } from './topic-changes.ts';
import { judge, trendOf, type WatchSettings } from './watch/judge.ts';
import { readSample } from './read-sample.ts';
import type { Sample } from './watch/sample.ts';

export type WatchParts = Pick<Deps, 'store' | 'clock' | 'config' | 'log' | 'requests' | 'alertJobs' | 'openBox'>;

const trendMs = 3 * 3_600_000;

export function watchSettings({ alerts }: Deps['config']): WatchSettings | null {
  const { watch } = alerts;
  if (watch === undefined) return null;
  return {
    everyMs: watch.every,
    availableBelow: watch.available_below,
    recoverAbove: Math.max(watch.recover_above, watch.available_below),
    for: watch.for,
  };
}

export async function watchHost(parts: WatchParts, host: string, signal: AbortSignal): Promise<void> {
  const settings = watchSettings(parts.config);
  if (settings === null || !parts.config.hosts.has(host)) return;
  const { topics } = parts.store;
  let sample: Sample;
  try {
    sample = await readSample(parts, host, signal);
  } catch (thrown) {
    const error = asReclaimError(thrown);
    parts.log.debug({ host, code: error.code }, 'the watcher could not read a box');
    // The one failure that says it itself: the server had no memory left to let us in.
    if (error.code === 'ssh_out_of_memory') await alarm(parts, host, error.userText, []);
    return;
  }
  await topics.addSample(host, sample);
  const samples = await topics.samples(host, parts.clock.now() - trendMs);
  const judged = judge(samples, settings);
  if (judged.alarm !== null) await alarm(parts, host, judged.alarm, samples);
  else if (judged.recovered) await recovered(parts, host, sample);
}

/** Level, not edge: it is called with every reading that is bad, and says it once. */
async function alarm(parts: WatchParts, host: string, title: string, samples: readonly Sample[]): Promise<void> {
  const { channel } = parts.config.alerts;
  if (channel === undefined) {
    parts.log.error({ host, title }, 'the watcher has nowhere to say it: alerts.channel is not set in reclaim.yaml');
    return;
  }
  if ((await silenceOf(parts, host)) !== null) return;
  const live = await inSlot(parts.store.topics, 'incident', host);
  if (live !== null && !isOver(live.state) && live.firing.includes(watchFingerprint)) return;
  const trend = trendOf(samples);
  const arrival = { nowMs: parts.clock.now(), ...(trend === null ? {} : { trend }) };
  await raise(parts, {
    ...{ host, channel, arrival, edited: false },
    alert: { fingerprint: watchFingerprint, title, source: 'watch' },
  });
}

async function recovered(parts: WatchParts, host: string, sample: Sample): Promise<void> {
  const { topics } = parts.store;
  const live = await inSlot(topics, 'incident', host);
  if (live === null || isOver(live.state) || !live.firing.includes(watchFingerprint)) return;
  const { availableKiB, totalKiB, at } = sample;
  const figure = { at: new Date(at).toISOString(), availableKiB, totalKiB };
  await changeTopic(topics, 'incident', live.id, (current) => recover(current, figure, parts.clock.now()));
}
