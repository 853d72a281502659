/**
 * Who else is here. Each process says so in the store every few seconds; what does not fit together is found by reading
 * what the others say: another policy in force, or sockets of our Slack app that nobody of this deployment holds.
 */
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import type { Store } from './requests/store.ts';
import type { ProcessInfo } from './requests/types.ts';

export interface PresenceParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** What this process says of itself. */
  readonly describe: () => Omit<ProcessInfo, 'seenAt'>;
  /** Sockets every gateway opens. */
  readonly socketsPerGateway: number;
  /** Told whenever it is known: how many sockets of the Slack app are not ours. */
  readonly foreignSockets?: (count: number) => void;
  readonly beatMs?: number;
}

export interface Presence {
  /** What Slack says about the connections of the app when a socket opens (`num_connections` in its hello). */
  heard(connections: number): void;
  /** Sentences about what does not fit together; empty when all is well. */
  notices(): readonly string[];
  stop(): Promise<void>;
}

const defaultBeatMs = 5_000;
/** A process is taken for gone after so many beats it missed. */
const missedBeats = 4;
/** Gateways that came and went this recently may still be counted by Slack. */
const rememberedBeats = 12;
/** Gateways that start together see each other before the sockets are counted. */
const settleBeats = 2;

class Beating implements Presence {
  readonly #parts: PresenceParts;
  readonly #beatMs: number;
  readonly #stopping = new AbortController();
  readonly #loop: Promise<void>;
  /** Gateways seen lately, with the beat they were last seen at. */
  readonly #gateways = new Map<string, number>();
  #beats = 0;
  #heard: { connections: number; judgeAt: number } | null = null;
  #strangers: string | null = null;
  #policies: string | null = null;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
    this.#beatMs = parts.beatMs ?? defaultBeatMs;
    this.#loop = this.#run();
  }

  heard(connections: number): void {
    this.#heard = { connections, judgeAt: this.#beats + settleBeats };
  }

  notices(): readonly string[] {
    return [this.#strangers, this.#policies].filter((sentence) => sentence !== null);
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#beat();
      } catch (error) {
        log.debug({ err: error }, 'could not say that this process is here');
      }
      await clock.sleep(this.#beatMs, this.#stopping.signal).catch(() => undefined);
    }
  }

  async #beat(): Promise<void> {
    const { store, clock, describe } = this.#parts;
    this.#beats += 1;
    const me = { ...describe(), seenAt: new Date(clock.now()).toISOString() };
    await store.beat(me, this.#beatMs * missedBeats);
    const all = await store.processes();
    for (const { role, instance } of all) if (role !== 'worker') this.#gateways.set(instance, this.#beats);
    for (const [instance, seen] of this.#gateways) {
      if (seen < this.#beats - rememberedBeats) this.#gateways.delete(instance);
    }
    this.#comparePolicies(all);
    this.#countSockets();
  }

  #comparePolicies(all: readonly ProcessInfo[]): void {
    const versions = new Set(all.map((process) => process.policyVersion));
    const sentence =
      versions.size <= 1
        ? null
        : `The processes of this deployment have ${versions.size} different policies in force, so approvals may be refused. Give all of them the same reclaim.yaml and send each a SIGHUP.`;
    if (sentence !== null && this.#policies === null) {
      const policies = all.map(({ instance, policyVersion }) => `${instance}: ${policyVersion}`);
      this.#parts.log.warn({ policies }, sentence);
    }
    this.#policies = sentence;
  }

  #countSockets(): void {
    const heard = this.#heard;
    if (heard === null || this.#beats < heard.judgeAt) return;
    this.#heard = null;
    const ours = this.#gateways.size * this.#parts.socketsPerGateway;
    const foreign = Math.max(0, heard.connections - ours);
    this.#parts.foreignSockets?.(foreign);
    if (foreign === 0) {
      this.#strangers = null;
      return;
    }
    this.#strangers = `Slack counts ${heard.connections} open sockets for this app, and the gateways of this deployment hold no more than ${ours}: a second deployment uses the same Slack app, and commands and clicks may end there. Give each deployment a Slack app of its own.`;
    this.#parts.log.warn({ connections: heard.connections, ours }, this.#strangers);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process ends'));
    await this.#loop;
    await this.#parts.store.leave(this.#parts.describe().instance).catch(() => undefined);
  }
}

/** Begins to beat at once. */
export function startPresence(parts: PresenceParts): Presence {
  return new Beating(parts);
}
