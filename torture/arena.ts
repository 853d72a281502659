/** A pid namespace full of processes that write down their signals (arena.py), as a box that Reclaim can look at and act on. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { boxOver, type JournaledBox } from '../src/ssh/host-program.ts';
import { LocalTransport } from '../src/ssh/local.ts';
import { systemClock } from '../src/system-clock.ts';

const python = '/usr/bin/python3';
const program = join(import.meta.dirname, 'arena.py');

export interface Spec {
  readonly id: string;
  readonly name: string;
  readonly stubborn?: boolean;
  readonly mib?: number;
  readonly uid?: number;
  /** Starts as a program of its own with this command line, from a folder that is removed afterwards. */
  readonly argv?: readonly string[];
  readonly cwd?: string;
}

/** One process: what it got and how it ended. A number that is used again is another process. */
export interface Fighter {
  readonly id: string;
  readonly pid: number;
  readonly startTime: number;
  /** In the order it saw them; 9 as its parent saw it. */
  readonly signals: number[];
  ended: boolean;
}

const lineSchema = z.union([
  z.object({ up: z.number() }),
  z.object({ cleared: z.literal(true) }),
  z.object({ ended: z.tuple([z.number(), z.number(), z.number()]) }),
  z.object({ said: z.array(z.string()) }),
]);

const keyOf = (pid: number, startTime: number) => `${pid}:${startTime}`;

export class Arena {
  readonly folder = mkdtempSync(join(tmpdir(), 'reclaim-arena-'));
  readonly fighters = new Map<string, Fighter>();
  /** Orders carried out, as `pid what`. */
  readonly done = new Set<string>();
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Set<() => void>();
  #insidePid = 0;
  #up = false;
  #clears = 0;
  #gone = false;

  private constructor() {
    const run = join(this.folder, 'run');
    mkdirSync(run);
    const inside = 'mount --bind "$0" /run && exec "$@"';
    const args = ['--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', inside, run];
    this.#child = spawn('unshare', [...args, python, '-I', '-S', program], { cwd: '/' });
    this.#child.stderr.pipe(process.stderr);
    this.#child.once('exit', () => {
      this.#gone = true;
      this.#wake();
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.#hear(lineSchema.parse(JSON.parse(line)));
      this.#wake();
    });
  }

  static async open(): Promise<Arena> {
    const arena = new Arena();
    await arena.until(() => arena.#up);
    const { pid } = arena.#child;
    arena.#insidePid = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
    return arena;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #hear(line: z.infer<typeof lineSchema>): void {
    if ('up' in line) this.#up = true;
    else if ('cleared' in line) this.#clears += 1;
    else if ('ended' in line) this.#ended(...line.ended);
    else {
      const [what, pid, start, last = ''] = line.said;
      const [number, startTime] = [Number(pid), Number(start)];
      if (what === 'X') this.#ended(number, startTime, Number(last));
      else if (what === 'B') this.fighter(number, startTime, last);
      else if (what === 'S') this.fighter(number, startTime).signals.push(Number(last));
      else this.done.add(`${pid} ${last}`);
    }
  }

  /** A process that handled TERM says so itself; the signal that ended it is only news when it had no handler for it. */
  #ended(pid: number, startTime: number, signal: number): void {
    const fighter = this.fighter(pid, startTime);
    fighter.ended = true;
    if (signal > 0) fighter.signals.push(signal);
  }

  fighter(pid: number, startTime: number, id?: string): Fighter {
    const key = keyOf(pid, startTime);
    const known = this.fighters.get(key);
    if (known !== undefined && (id === undefined || known.id !== '?')) return known;
    const fighter = { id: id ?? '?', pid, startTime, signals: known?.signals ?? [], ended: known?.ended ?? false };
    this.fighters.set(key, fighter);
    return fighter;
  }

  /** Resolves when the state holds; every line from the arena is a reason to look again. */
  async until(holds: () => boolean): Promise<void> {
    const endAt = performance.now() + 30_000;
    while (!holds()) {
      if (this.#gone) throw new Error('the arena ended');
      if (performance.now() > endAt) throw new Error('the arena did not get there');
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, 1_000);
        this.#waiting.add(wake);
      });
    }
  }

  order(order: object): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  /** Starts them and answers in the same order once all stand. */
  async start(specs: readonly Spec[]): Promise<Fighter[]> {
    this.order({ start: specs });
    const found = () => specs.map((s) => [...this.fighters.values()].find((f) => f.id === s.id));
    await this.until(() => found().every((f) => f !== undefined));
    return found().flatMap((f) => f ?? []);
  }

  /** A folder that programs with a command line of their own start from. */
  workFolder(name: string): string {
    const cwd = join(this.folder, name);
    mkdirSync(cwd, { recursive: true });
    cpSync(program, join(cwd, 'h'));
    return cwd;
  }

  /** Ends the round: everything written down so far is known, then everybody goes. */
  async clear(): Promise<Fighter[]> {
    const before = this.#clears;
    this.order({ clear: true });
    await this.until(() => this.#clears > before);
    const all = [...this.fighters.values()];
    this.fighters.clear();
    this.done.clear();
    return all;
  }

  /** Arguments of nsenter to come in. */
  get entry(): string[] {
    return ['--target', String(this.#insidePid), '--pid', '--mount'];
  }

  box(host: string, text?: string): JournaledBox {
    const transport = new LocalTransport(host, { privilege: 'root', shell: ['nsenter', ...this.entry, 'sh'] });
    return boxOver(transport, {
      privilege: 'root',
      clock: systemClock,
      ...(text === undefined ? {} : { program: text }),
    });
  }

  close(): void {
    this.#child.stdin.end();
    this.#child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
