/**
 * Many boxes that exist on paper: one ssh server that answers the host program's requests from made-up captures, one box
 * per login name. It remembers every signal it was ever asked to send, also when nobody waited for the answer.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import ssh2, { type Connection, type ServerChannel } from 'ssh2';
import { makeKeyPair } from '../../src/demo/box.ts';
import { makeBox, type ProcSpec } from '../memory/box.ts';

const MiB = 1024;
const { Server } = ssh2;

/** One leftover build: a ninja and its compilers, all of them nobody's any more. */
function leftover(firstPid: number): ProcSpec[] {
  const common = { session: firstPid, cwd: '/tmp/pip-install-x1/flash-attn (deleted)', secondsOld: 7200 };
  const compiler = (pid: number): ProcSpec => ({
    ...common,
    pid,
    ppid: firstPid,
    comm: 'cicc',
    argv: ['/usr/local/cuda/nvvm/bin/cicc', '--orig_src_file_name', 'flash_bwd_hdim128_bf16_sm90.cu'],
    exe: '/usr/local/cuda/nvvm/bin/cicc',
    anonKiB: 900 * MiB,
  });
  const ninja: ProcSpec = {
    ...common,
    pid: firstPid,
    ppid: 1,
    comm: 'ninja',
    argv: ['ninja', '-v', '-j', '64'],
    exe: '/usr/bin/ninja',
    anonKiB: 20 * MiB,
  };
  return [ninja, compiler(firstPid + 1), compiler(firstPid + 2)];
}

export interface PaperBox {
  /** Processes that are still there. */
  readonly alive: Set<number>;
  /** Every pid a kill was ordered for, as often as it was. */
  readonly signalled: number[];
  /** The same with the run that ordered it, as `RUN PID`. */
  readonly orders: string[];
  /** Puts a new leftover build on it. */
  litter(): void;
}

export interface PaperBoxes {
  readonly port: number;
  readonly knownHostsLine: string;
  readonly privateKey: string;
  box(name: string): PaperBox;
  close(): Promise<void>;
}

class Paper implements PaperBox {
  readonly alive = new Set<number>();
  readonly signalled: number[] = [];
  readonly orders: string[] = [];
  #specs: ProcSpec[] = [];
  #nextPid = 5_000;

  litter(): void {
    const specs = leftover(this.#nextPid);
    this.#nextPid += 10;
    this.#specs.push(...specs);
    for (const { pid } of specs) this.alive.add(pid);
  }

  capture(windowSeconds: number): ReturnType<typeof makeBox> {
    return makeBox({ processes: this.#specs.filter((p) => this.alive.has(p.pid)), windowSeconds });
  }
}

/** The answer to one request of the host program, frame by frame, and how long the box takes for each. */
async function answer(box: Paper, request: string, say: (frame: string) => void, pauseMs: number): Promise<void> {
  const nonce = /^reclaim 1 (\w+)$/m.exec(request)?.[1] ?? '';
  const verb = /^verb (\S+)$/m.exec(request)?.[1] ?? '';
  const run = /^run (\S+)$/m.exec(request)?.[1] ?? '';
  const frame = (head: string, body = '') => {
    say(`\n${nonce} ${head}\n${body}`);
  };
  frame(`begin 1 ${verb} 0`);
  if (verb === 'collect') collect(box, Number(/^window (\S+)$/m.exec(request)?.[1] ?? 0), frame);
  else if (verb === 'kill') {
    for (const [, pid = '', start = ''] of request.matchAll(/^target (\d+) (\d+) /gm)) {
      box.signalled.push(Number(pid));
      box.orders.push(`${run} ${pid}`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const result = box.alive.delete(Number(pid)) ? 'exited' : 'already_gone';
      frame(`result ${result} ${pid} ${start}`, '\n');
    }
  } else frame('answer done', '\n');
  frame('end 0');
}

function collect(box: Paper, windowSeconds: number, frame: (head: string, body?: string) => void): void {
  const { files, later, commands, collectorPids } = box.capture(windowSeconds);
  const text = (blob: unknown) => (typeof blob === 'string' ? blob : '');
  const lines = (of: Readonly<Record<string, unknown>>) =>
    Object.entries(of)
      .filter(([path]) => !path.endsWith('/cmdline'))
      .flatMap(([path, blob]) =>
        text(blob)
          .split('\n')
          .slice(0, -1)
          .map((line) => `${path}:${line}\n`),
      )
      .join('');
  const records = Object.entries(files)
    .filter(([path]) => path.endsWith('/cmdline'))
    .flatMap(([path, blob]) =>
      text(blob)
        .split('\0')
        .slice(0, -1)
        .map((word) => `${path}:${word}\0`),
    );
  frame('lines', lines(files));
  frame('command 0 0 cmdlines', records.join(''));
  for (const [name, said] of Object.entries(commands)) {
    if (name !== 'fd holders') frame(`command ${said.status ?? 0} 0 ${name}`, text(said.stdout));
  }
  frame(`collector ${collectorPids.join(' ')}`);
  frame(`later ${Math.round(windowSeconds * 100)}`, lines(later));
}

function run(box: Paper, channel: ServerChannel, pauseMs: number): void {
  let heard = '';
  let asked = false;
  channel.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1');
    const request = /reclaim_host '(reclaim 1 (\w+)\n[^']*\nend \2\n)'\n/.exec(heard)?.[1];
    if (request === undefined || asked) return;
    asked = true;
    const say = (text: string) => {
      if (channel.writable) channel.write(text);
    };
    void answer(box, request, say, pauseMs).finally(() => {
      channel.exit(0);
      channel.end();
    });
  });
}

/** `pauseMs` is how long each process takes to end. */
export async function paperBoxes(pauseMs: number): Promise<PaperBoxes> {
  const hostKey = makeKeyPair();
  const userKey = makeKeyPair();
  const boxes = new Map<string, Paper>();
  const boxOf = (name: string): Paper => {
    const box = boxes.get(name) ?? new Paper();
    boxes.set(name, box);
    return box;
  };
  const connections = new Set<Connection>();
  const server = new Server({ hostKeys: [hostKey.private] }, (connection) => {
    let name = '';
    connections.add(connection);
    connection.on('close', () => connections.delete(connection));
    connection.on('error', () => undefined);
    connection.on('authentication', (context) => {
      name = context.username;
      if (context.method === 'publickey') context.accept();
      else context.reject(['publickey']);
    });
    connection.on('session', (accept) => {
      accept().on('exec', (acceptExec) => {
        const channel = acceptExec();
        channel.on('error', () => undefined);
        run(boxOf(name), channel, pauseMs);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [type = '', key = ''] = hostKey.public.split(' ');
  return {
    port,
    knownHostsLine: `[127.0.0.1]:${port} ${type} ${key}\n`,
    privateKey: userKey.private,
    box: boxOf,
    close: async () => {
      for (const connection of connections) connection.end();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
