/** Topics, rows of sweeps and readings on Redis: a hash per topic, one hash of slots, a list of readings per host. */
import { z } from 'zod';
import { type Sample, sampleSchema, samplesKept, samplesKeptMs } from '../alerts/watch/sample.ts';
import {
  rootViewOf,
  type SweepRow,
  sweepRowSchema,
  type Topic,
  type TopicKind,
  topicSchema,
} from '../alerts/topics.ts';
import type { Clock } from '../clock.ts';
import { p, type RedisLink } from './redis-link.ts';
import { forgetTopicScript, topicScript, rowScript } from './redis-topic-scripts.ts';
import type { TopicChange, TopicResult, TopicStore } from './topic-store.ts';

const strings = z.array(z.string());
const answerSchema = z.tuple([z.string()]).rest(z.string());
const topicOf = (text: string | null | undefined): Topic | null =>
  text === null || text === undefined || text === '' ? null : topicSchema.parse(JSON.parse(text));
const trimmedAtOnce = 500;

export class RedisTopics implements TopicStore {
  readonly #link: RedisLink;
  readonly #clock: Clock;

  constructor(link: RedisLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  async #write(mode: 'create' | 'update', { topic, deliver = [] }: TopicChange): Promise<TopicResult> {
    const about = [topic.id, topic.version - 1, topic.slot ?? '', Date.parse(topic.updatedAt), JSON.stringify(topic)];
    const shown = [topic.channel ?? '', ...new Set(deliver)];
    const args = [mode, this.#clock.now(), ...about, ...shown];
    const [said, current] = await this.#link.run(answerSchema, topicScript, ...args);
    if (said === 'ok') return { ok: true, topic };
    return { ok: false, why: z.enum(['exists', 'changed', 'slot_taken']).parse(said), current: topicOf(current) };
  }

  create(change: TopicChange): Promise<TopicResult> {
    return this.#write('create', change);
  }

  update(change: TopicChange): Promise<TopicResult> {
    return this.#write('update', change);
  }

  async get(id: string): Promise<Topic | null> {
    return topicOf(await this.#link.ask(z.string().nullable(), (r) => r.hget(`${p}topic:${id}`, 'topic')));
  }

  async inSlot(slot: string): Promise<Topic | null> {
    const id = await this.#link.ask(z.string().nullable(), (r) => r.hget(`${p}slots`, slot));
    return id === null ? null : await this.get(id);
  }

  async live(kind: TopicKind): Promise<Topic[]> {
    const slots = await this.#link.ask(z.record(z.string(), z.string()), (r) => r.hgetall(`${p}slots`));
    const ids = Object.entries(slots).flatMap(([slot, id]) => (slot.startsWith(`${kind}.`) ? [id] : []));
    const topics = await Promise.all(ids.map((id) => this.get(id)));
    const key = (topic: Topic) => `${topic.createdAt} ${topic.id}`;
    return topics
      .filter((topic) => topic !== null)
      .filter((topic) => topic.kind === kind)
      .sort((a, b) => (key(a) < key(b) ? -1 : 1));
  }

  async putRow(sweep: { id: string; channel: string | null }, row: SweepRow): Promise<void> {
    const shown = [sweep.channel ?? '', rootViewOf('sweep') ?? ''];
    const args = [this.#clock.now(), sweep.id, row.host, JSON.stringify(row), ...shown];
    await this.#link.run(z.unknown(), rowScript, ...args);
  }

  async rows(sweepId: string): Promise<SweepRow[]> {
    const rows = await this.#link.ask(strings, (r) => r.hvals(`${p}rows:${sweepId}`));
    return rows.map((row) => sweepRowSchema.parse(JSON.parse(row))).sort((a, b) => (a.host < b.host ? -1 : 1));
  }

  async addSample(host: string, sample: Sample): Promise<void> {
    const key = `${p}samples:${host}`;
    await this.#link.ask(z.unknown(), (r) =>
      r.multi().rpush(key, JSON.stringify(sample)).ltrim(key, -samplesKept, -1).pexpire(key, samplesKeptMs).exec(),
    );
  }

  async samples(host: string, sinceMs: number): Promise<Sample[]> {
    const lines = await this.#link.ask(strings, (r) => r.lrange(`${p}samples:${host}`, 0, -1));
    const all = lines.map((line) => sampleSchema.parse(JSON.parse(line)));
    const oldest = Math.max(sinceMs, (all.at(-1)?.at ?? 0) - samplesKeptMs);
    return all.filter((sample) => sample.at >= oldest);
  }

  async trim(before: string): Promise<number> {
    const bound = `(${Date.parse(before)}`;
    const ids = await this.#link.ask(strings, (r) =>
      r.zrangebyscore(`${p}topics:over`, '-inf', bound, 'LIMIT', 0, trimmedAtOnce),
    );
    let removed = 0;
    for (const id of ids) removed += await this.#link.run(z.number(), forgetTopicScript, id);
    return removed;
  }
}
