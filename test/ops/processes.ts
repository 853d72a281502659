/** Real `reclaim serve` processes for tests, with their logs, their HTTP side and every way to end them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';

const program = resolve(import.meta.dirname, '../../bin/reclaim.mjs');

export interface Serving {
  readonly child: ChildProcess;
  readonly role: string;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Every line it logged, parsed. */
  readonly log: Readonly<Record<string, unknown>>[];
  /** Resolves with the first line (also an earlier one) that fits. */
  logged(fits: (line: Readonly<Record<string, unknown>>) => boolean): Promise<Readonly<Record<string, unknown>>>;
  /** Sends a signal and answers the exit code, null when the signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

export interface Folder {
  readonly path: string;
  /** Writes reclaim.yaml anew. */
  configure(yaml: unknown): void;
  serve(role: 'all' | 'gateway' | 'worker', env: Readonly<Record<string, string>>): Promise<Serving>;
  /** Ends what still runs and removes everything. */
  remove(): Promise<void>;
}

export function serveFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'reclaim-ops-'));
  mkdirSync(join(path, 'data'));
  const running = new Set<Serving>();
  return {
    path,
    configure(yaml) {
      writeFileSync(join(path, 'reclaim.yaml'), stringify(yaml));
    },
    async serve(role, env) {
      const serving = await start(path, role, env);
      running.add(serving);
      serving.child.once('exit', () => running.delete(serving));
      return serving;
    },
    async remove() {
      await Promise.all([...running].map((serving) => serving.end('SIGKILL')));
      rmSync(path, { recursive: true, force: true });
    },
  };
}

async function start(cwd: string, role: string, env: Readonly<Record<string, string>>): Promise<Serving> {
  const child = spawn(process.execPath, [program, 'serve', '--role', role], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: cwd, HTTP_PORT: '0', RECLAIM_DATA_DIR: join(cwd, 'data'), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log: Readonly<Record<string, unknown>>[] = [];
  const waiting = new Set<() => void>();
  const said: string[] = [];
  let port = 0;
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (line.startsWith('{')) log.push(JSON.parse(line) as Record<string, unknown>);
    port ||= Number(/is up, http on [^ ]*:(\d+)/.exec(line)?.[1] ?? 0);
    for (const wake of waiting) wake();
  });
  const until = async <T>(found: () => T | undefined): Promise<T> => {
    for (;;) {
      const value = found();
      if (value !== undefined) return value;
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended: ${said.join('\n')}`);
      await new Promise<void>((wake) => {
        waiting.add(wake);
        child.once('exit', () => {
          wake();
        });
      });
    }
  };
  await until(() => (port > 0 ? port : undefined));
  return {
    child,
    role,
    url: `http://127.0.0.1:${port}`,
    log,
    logged: (fits) => until(() => log.find(fits)),
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await once(child, 'exit');
      }
      return child.exitCode;
    },
  };
}

/** What /metrics says, by name and labels as printed. */
export async function metricsOf(serving: Serving): Promise<Map<string, number>> {
  const text = await (await fetch(`${serving.url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
