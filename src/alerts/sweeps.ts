/** Sweeps of the fleet: one look per host as a job of its own, one summary, a request only where there is something to do. */
import type { Deps } from '../deps.ts';
import { asReclaimError } from '../errors.ts';
import { look, thinkOptions } from '../look.ts';
import type { Thought } from '../memory/story.ts';
import type { Person } from '../requests/types.ts';
import { changeTopic, liveTopics, newTopicId } from './topic-changes.ts';
import type { Sweep, SweepRow } from './topics.ts';

export type SweepParts = Pick<Deps, 'store' | 'clock' | 'config' | 'log' | 'requests' | 'alertJobs' | 'openBox'>;

/** More cards than this help nobody at once; the summary names the rest. */
export const cardsAtMost = 20;
/** What was put up this long ago and has no answer is put up again; the ids keep it single. */
const lostAfterMs = 15_000;
const putUpAtOnce = 50;
const iso = (ms: number): string => new Date(ms).toISOString();

/** Begins a sweep. Should this process end half way, the reconciler puts up the rest. */
export async function startSweep(
  parts: SweepParts,
  asked: { requester: Person; channel: string; asked: string; hosts: readonly string[] },
): Promise<Sweep> {
  const at = iso(parts.clock.now());
  const id = newTopicId('s');
  const topic: Sweep = {
    ...{ kind: 'sweep', id, version: 1, slot: `sweep.${id}`, channel: asked.channel, createdAt: at, updatedAt: at },
    requester: asked.requester,
    asked: asked.asked,
    hosts: [...asked.hosts],
  };
  await parts.store.topics.create({ topic, deliver: ['sweep'] });
  await putUp(parts, topic, topic.hosts);
  return topic;
}

async function putUp(parts: SweepParts, sweep: Sweep, hosts: readonly string[]): Promise<void> {
  for (let from = 0; from < hosts.length; from += putUpAtOnce) {
    const some = hosts.slice(from, from + putUpAtOnce).map((host) => parts.alertJobs.sweepHost(sweep.id, host));
    const failed = (await Promise.allSettled(some)).filter((put) => put.status === 'rejected');
    const [first] = failed;
    if (first === undefined) continue;
    parts.log.warn(
      { err: first.reason as unknown, sweep: sweep.id },
      'could not put up a sweep; it will be tried again',
    );
    return;
  }
}

/** Looks at one host and writes down what it said. An answer that is late or missing is an answer too. */
export async function sweepHost(parts: SweepParts, sweepId: string, host: string, signal: AbortSignal): Promise<void> {
  const { topics } = parts.store;
  const sweep = await topics.get(sweepId);
  if (sweep?.kind !== 'sweep' || sweep.endedAt !== undefined) return;
  const startedMs = parts.clock.now();
  const row = await rowOf(parts, sweep, host, signal);
  await topics.putRow(sweep, { ...row, host, at: iso(parts.clock.now()), tookMs: parts.clock.now() - startedMs });
}

type Said = Omit<SweepRow, 'host' | 'at' | 'tookMs'>;

async function rowOf(parts: SweepParts, sweep: Sweep, host: string, signal: AbortSignal): Promise<Said> {
  try {
    return await seen(parts, sweep, host, await glance(parts, host, signal));
  } catch (thrown) {
    const error = asReclaimError(thrown);
    if (signal.aborted) {
      return { outcome: 'unreachable', text: 'No answer within the time for one host.', errorCode: 'ssh_timeout' };
    }
    const outcome = error.code.startsWith('ssh_') || error.code === 'host_unknown' ? 'unreachable' : 'unseen';
    if (error.code === 'internal') parts.log.error({ err: thrown, host }, 'a look of a sweep failed');
    return { outcome, text: error.userText, errorCode: error.code };
  }
}

/** Ends with the signal, also where something below does not listen to it: one dead host holds nobody up. */
async function glance(parts: SweepParts, host: string, signal: AbortSignal): Promise<Thought> {
  let stop = (): void => undefined;
  const late = new Promise<never>((_, reject) => {
    stop = () => {
      reject(new Error('the time for this host is over'));
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  const looking = (async () => {
    const box = await parts.openBox(host, { signal });
    try {
      return (await look(box, thinkOptions(parts.config.policy, []))).thought;
    } finally {
      await box.close();
    }
  })();
  looking.catch(() => undefined);
  try {
    return await Promise.race([looking, late]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function seen(parts: SweepParts, sweep: Sweep, host: string, { diagnosis }: Thought): Promise<Said> {
  const { availableKiB, totalKiB } = diagnosis.memory;
  const memory = { availableKiB, totalKiB };
  const something = (diagnosis.verdict === 'lingering' || diagnosis.verdict === 'mixed') && diagnosis.plan !== null;
  if (!something) {
    const outcome = diagnosis.verdict === 'unknown' ? 'unseen' : 'fine';
    return { outcome, text: diagnosis.headline, ...(totalKiB === 0 ? {} : { memory }) };
  }
  const steps = diagnosis.plan?.steps.filter((step) => step.action !== 'drop_caches') ?? [];
  const reclaimableKiB = steps.reduce((sum, step) => sum + step.expectedAvailableKiB.high, 0);
  const said = { memory, reclaimableKiB, text: diagnosis.headline };
  const rows = await parts.store.topics.rows(sweep.id);
  if (rows.filter((row) => row.request !== undefined && row.host !== host).length >= cardsAtMost) {
    return { ...said, outcome: 'something', text: `/reclaim ${host} for its plan. ${diagnosis.headline}` };
  }
  const { record, existing } = await parts.requests.ask({
    ...{ host, requester: sweep.requester, surface: 'slack', topic: sweep.id },
    ...(sweep.channel === null ? {} : { channel: sweep.channel }),
  });
  const ours = !existing || record.topic === sweep.id;
  return { ...said, outcome: ours ? 'something' : 'busy', request: record.id };
}

/** Ends sweeps whose hosts have all answered, and puts up again what got lost. */
export async function attendSweeps(parts: SweepParts): Promise<void> {
  const { topics } = parts.store;
  for (const sweep of await liveTopics(topics, 'sweep')) {
    const nowMs = parts.clock.now();
    const answered = new Set((await topics.rows(sweep.id)).map((row) => row.host));
    const missing = sweep.hosts.filter((host) => !answered.has(host));
    if (missing.length > 0) {
      if (nowMs - Date.parse(sweep.createdAt) > lostAfterMs) await putUp(parts, sweep, missing);
      continue;
    }
    await changeTopic(topics, 'sweep', sweep.id, (current) => ({
      topic: { ...current, endedAt: iso(nowMs), updatedAt: iso(nowMs), slot: null, version: current.version + 1 },
      deliver: ['sweep', 'sweep_file'],
    }));
  }
}
