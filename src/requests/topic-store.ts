/** Where topics, the rows of sweeps and the readings of the watcher live: the part of the store that src/alerts uses. */
import type { Sample } from '../alerts/watch/sample.ts';
import type { SweepRow, Topic, TopicKind, TopicView } from '../alerts/topics.ts';

export interface TopicChange {
  /** The topic to write; its `version` must be the stored version + 1 (1 for a new one). A slot can be kept or let go. */
  readonly topic: Topic;
  /** Views to (re)deliver because of this change; ignored for topics without a channel. */
  readonly deliver?: readonly TopicView[];
}

export type TopicResult =
  | { readonly ok: true; readonly topic: Topic }
  /** Somebody else was first: here is what is there. */
  | { readonly ok: false; readonly why: 'changed' | 'exists' | 'slot_taken'; readonly current: Topic | null };

export interface TopicStore {
  /** Writes a new topic into its slot, unless another stands there. */
  create(change: TopicChange): Promise<TopicResult>;
  /** Compare-and-swap on version. */
  update(change: TopicChange): Promise<TopicResult>;
  get(id: string): Promise<Topic | null>;
  inSlot(slot: string): Promise<Topic | null>;
  /** Those that stand in a slot, oldest first. */
  live(kind: TopicKind): Promise<Topic[]>;
  /** What one host of a sweep answered; a later answer replaces an earlier one. Shows the sweep again. */
  putRow(sweep: { id: string; channel: string | null }, row: SweepRow): Promise<void>;
  rows(sweepId: string): Promise<SweepRow[]>;
  /** Keeps the newest 1440 readings of a host, and none older than a day. */
  addSample(host: string, sample: Sample): Promise<void>;
  /** Oldest first. */
  samples(host: string, sinceMs: number): Promise<Sample[]>;
  /** Removes topics that were over before this, with their rows and messages, unless one still waits for delivery. */
  trim(before: string): Promise<number>;
}
