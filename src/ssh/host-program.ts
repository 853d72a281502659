/**
 * A Box over any road: sends the host program with one request, reads its frames, and turns every way it can go wrong
 * into a ReclaimError that says what was and was not done.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Box, CollectOptions, KillOrder, Privilege, ResultOf, RunJournal, StepAnswer } from '../box.ts';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import {
  targetResults,
  type Capture,
  type DropTarget,
  type FileTarget,
  type KillTarget,
  type ShmTarget,
} from '../memory/contract.ts';
import type { ProtectRule } from '../memory/story.ts';
import { captureFrom } from './capture.ts';
import { encodeWord, FrameReader, requestText, scriptFor, toText, type Frame, type Request } from './frames.ts';
import { cutShort, noAnswer, refusedBy, sudoRefused } from './host-failures.ts';
import type { RunOutput, Transport } from './transport.ts';

export interface BoxOptions {
  readonly privilege: Privilege;
  readonly clock: Clock;
  /** Name of this run in the journal on the box: letters, digits, dashes. Without it one is made up. */
  readonly run?: string;
  readonly signal?: AbortSignal | undefined;
  /** Text of the program; read from the installation where not given. */
  readonly program?: string;
}

/** A box that knows the name its effects are journaled under. */
export interface JournaledBox extends Box {
  readonly run: string;
}

interface Ask {
  readonly verb: string;
  readonly lines: readonly string[];
  readonly timeoutMs: number;
  readonly mutating: boolean;
  readonly onFrame?: (frame: Frame) => void;
}

interface Answer {
  readonly frames: readonly Frame[];
  readonly nonce: string;
}

const maxBytes = 64 * 1024 * 1024;

/** The program's text. It lies beside src/ in a checkout and beside dist/ in the package. */
export function readHostProgram(): string {
  const places = ['../../host/', '../../../host/'].map((up) =>
    fileURLToPath(new URL(`${up}reclaim-host.sh`, import.meta.url)),
  );
  const found = places.find((path) => existsSync(path));
  if (found === undefined) {
    throw new ReclaimError(
      'host_program_failed',
      'The host program (host/reclaim-host.sh) is missing from this installation. Nothing was done; install Reclaim again.',
    );
  }
  return readFileSync(found, 'utf8');
}

const startedByTimeouts = { collect: 45_000, memory: 20_000, step: 180_000 };
/** What the program itself may take after the grace: the wait on KILL, the look for respawned ones, the way back. */
const afterGraceMs = 45_000;

class ProgramBox implements JournaledBox {
  readonly host: string;
  readonly hostKey: string;
  readonly run: string;
  readonly #transport: Transport;
  readonly #options: BoxOptions;
  #program: string | undefined;
  /** Set once sudo said no: asking again would only fill the box's auth log. */
  #sudoRefused = false;

  constructor(transport: Transport, options: BoxOptions) {
    this.host = transport.host;
    this.hostKey = transport.hostKey;
    this.run = options.run ?? randomBytes(8).toString('hex');
    this.#transport = transport;
    this.#options = options;
    this.#program = options.program;
  }

  async collect(options: CollectOptions): Promise<Capture> {
    const takenAt = new Date(this.#options.clock.now()).toISOString();
    const windowSeconds = Math.min(Math.max(options.windowSeconds ?? 1, 0), 60);
    const full = options.scope === 'full';
    const answer = await this.#ask({
      verb: 'collect',
      lines: [`scope ${options.scope}`, `window ${String(Math.round(windowSeconds * 100) / 100)}`],
      timeoutMs: (full ? startedByTimeouts.collect : startedByTimeouts.memory) + windowSeconds * 1000,
      mutating: false,
    });
    const capture = captureFrom(answer.frames, { nonce: answer.nonce, host: this.host, takenAt });
    if (capture === null) throw cutShort(this.host, false);
    return capture;
  }

  async kill(order: KillOrder, onResult?: (result: ResultOf<KillTarget>) => void): Promise<ResultOf<KillTarget>[]> {
    if (order.targets.length === 0) return [];
    const results = new Map<string, ResultOf<KillTarget>>();
    const onFrame = (frame: Frame): void => {
      const result = killResult(frame);
      if (result === null) return;
      results.set(`${result.pid}:${result.startTime}`, result);
      onResult?.(result);
    };
    await this.#ask({
      verb: 'kill',
      lines: [
        `boot ${encodeWord(order.bootId)}`,
        `grace ${Math.round(order.graceMs / 10)}`,
        ...order.targets.map((t) => {
          const exe = t.exe === undefined ? '-' : encodeWord(t.exe);
          return `target ${t.pid} ${t.startTime} ${t.uid ?? '-'} ${exe}`;
        }),
        ...order.protect.map(protectLine),
      ],
      timeoutMs: order.graceMs + afterGraceMs + order.targets.length * 100,
      mutating: true,
      onFrame,
    });
    return order.targets.map(({ pid, startTime }) => {
      const result = results.get(`${pid}:${startTime}`);
      if (result === undefined) throw cutShort(this.host, true);
      return result;
    });
  }

  removeFiles(targets: readonly FileTarget[], minAgeSeconds: number): Promise<ResultOf<FileTarget>[]> {
    return this.#targets(
      'remove-files',
      targets.map((t) => ({
        key: `${t.dev}:${t.ino}`,
        line: `target ${t.dev} ${t.ino} ${encodeWord(t.path)}`,
        target: t,
      })),
      minAgeSeconds,
    );
  }

  ipcrm(targets: readonly ShmTarget[], minAgeSeconds: number): Promise<ResultOf<ShmTarget>[]> {
    return this.#targets(
      'ipcrm',
      targets.map((t) => ({ key: String(t.shmid), line: `target ${t.shmid}`, target: t })),
      minAgeSeconds,
    );
  }

  sync(): Promise<StepAnswer> {
    return this.#step('sync', ['seconds 60']);
  }

  dropCaches(level: DropTarget['level']): Promise<StepAnswer> {
    return this.#step('drop-caches', [`level ${level}`, 'seconds 120']);
  }

  forRun(run: string): JournaledBox {
    const box = new ProgramBox(this.#transport, { ...this.#options, run });
    box.#program = this.#program;
    box.#sudoRefused = this.#sudoRefused;
    return box;
  }

  async journal(run: string, { seal = false } = {}): Promise<RunJournal> {
    const { frames } = await this.#ask({
      verb: 'journal',
      lines: [`of ${run}`, ...(seal ? ['seal yes'] : [])],
      timeoutMs: startedByTimeouts.memory,
      mutating: false,
    });
    const frame = frames.find((f) => f.kind === 'journal');
    const state = (['running', 'ended', 'sealed'] as const).find((s) => s === frame?.words[0]);
    if (frame === undefined || state === undefined) throw cutShort(this.host, false);
    const lines = Buffer.from(frame.body)
      .toString('utf8')
      .split('\n')
      .map((line) => line.split(' ').filter((word) => word !== ''))
      .filter((words) => /^\d+$/.test(words[0] ?? ''))
      .map(([at, ...words]) => ({ at: Number(at), words }));
    // Without the privilege this box is configured with, the journal is the login user's own, which proves no absence.
    return { state: state === 'sealed' && this.#sudoRefused ? 'ended' : state, lines };
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #step(verb: string, lines: readonly string[]): Promise<StepAnswer> {
    const { frames } = await this.#ask({ verb, lines, timeoutMs: startedByTimeouts.step, mutating: true });
    const frame = frames.find((f) => f.kind === 'answer');
    const state = (['done', 'skipped', 'failed'] as const).find((s) => s === frame?.words[0]);
    if (frame === undefined || state === undefined) throw cutShort(this.host, true);
    const reason = toText(frame.body);
    return reason === '' ? { state } : { state, reason };
  }

  async #targets<T>(
    verb: string,
    wanted: readonly { key: string; line: string; target: T }[],
    minAgeSeconds: number,
  ): Promise<ResultOf<T>[]> {
    if (wanted.length === 0) return [];
    const { frames } = await this.#ask({
      verb,
      lines: [`min-age ${Math.ceil(minAgeSeconds)}`, ...wanted.map((w) => w.line)],
      timeoutMs: startedByTimeouts.step,
      mutating: true,
    });
    const results = new Map(frames.filter((f) => f.kind === 'result').map((f) => [f.words[1] ?? '', resultWords(f)]));
    return wanted.map(({ key, target }) => {
      const result = results.get(key);
      if (result == null) throw cutShort(this.host, true);
      return { ...target, ...result };
    });
  }

  async #ask(ask: Ask): Promise<Answer> {
    const privileged = this.#options.privilege !== 'none' && !this.#sudoRefused;
    const attempt = await this.#attempt(ask, privileged);
    if (attempt.begun) return checked(this.host, ask, attempt);
    if (privileged && this.#options.privilege !== 'root' && sudoRefused(attempt.output)) {
      // Looking needs no privilege where the box allows it, nor does ending one's own processes.
      this.#sudoRefused = true;
      return this.#ask(ask);
    }
    throw noAnswer(this.host, attempt.output, ask.mutating);
  }

  async #attempt(ask: Ask, privileged: boolean): Promise<Attempt> {
    const nonce = randomBytes(16).toString('hex');
    const request: Request = { nonce, run: this.run, verb: ask.verb, lines: ask.lines };
    const installed = privileged && this.#options.privilege === 'helper';
    const stdin = installed ? requestText(request) : scriptFor((this.#program ??= readHostProgram()), request);
    const reader = new FrameReader(nonce, maxBytes);
    const frames: Frame[] = [];
    const output = await this.#transport.run(Buffer.from(stdin), {
      timeoutMs: ask.timeoutMs,
      maxBytes,
      privileged,
      signal: this.#options.signal,
      onStdout: (chunk) => {
        for (const frame of reader.push(chunk)) {
          frames.push(frame);
          ask.onFrame?.(frame);
        }
      },
    });
    return { frames, nonce, output, begun: reader.begun, ended: reader.ended };
  }
}

interface Attempt extends Answer {
  readonly output: RunOutput;
  readonly begun: boolean;
  readonly ended: boolean;
}

function checked(host: string, ask: Ask, attempt: Attempt): Answer {
  const error = attempt.frames.find((f) => f.kind === 'error');
  if (error !== undefined) throw refusedBy(host, error);
  if (!attempt.ended) throw cutShort(host, ask.mutating, attempt.output);
  return attempt;
}

function protectLine(rule: ProtectRule): string {
  const word = (text: string | undefined): string => (text === undefined ? '-' : encodeWord(text));
  return `protect ${word(rule.exe)} ${word(rule.comm)} ${word(rule.unit)} ${word(rule.user)}`;
}

function resultWords(frame: Frame): { result: (typeof targetResults)[number]; reason?: string } | null {
  const result = targetResults.find((r) => r === frame.words[0]);
  if (frame.kind !== 'result' || result === undefined) return null;
  const reason = toText(frame.body);
  return reason === '' ? { result } : { result, reason };
}

function killResult(frame: Frame): ResultOf<KillTarget> | null {
  const said = resultWords(frame);
  if (said === null) return null;
  return { pid: Number(frame.words[1]), startTime: Number(frame.words[2]), ...said };
}

/** The box at the end of this road. */
export const boxOver = (transport: Transport, options: BoxOptions): JournaledBox => new ProgramBox(transport, options);
