/**
 * The program a made-up compiler runs: it holds memory, shows the command line it was told to, and ends by itself.
 *
 * Node parses its own options from argv, so no real command line of a compiler could be given to it. Instead the process
 * starts with a padded argv of the right length and then writes the wanted bytes over it through /proc/self/mem, where
 * the kernel reads /proc/PID/cmdline from. `comm` is settable by the process itself.
 */

/** What one process needs to know, handed over in the environment. */
export interface WorkerSpec {
  readonly argv: readonly string[];
  readonly comm: string;
  /** Anonymous memory of the whole process, Node's own included. */
  readonly anonKiB: number;
  /** It ends when this process is gone. */
  readonly keeper: { readonly pid: number; readonly startTime: number };
  readonly lifeMs: number;
  readonly busy: boolean;
  /** Started by it and kept as its children; the same fields as in the launcher's list. */
  readonly children: readonly object[];
}

export const specVariable = 'LEFTOVER_SPEC';

/** JavaScript for `node FILE`, kept free of imports so that it starts from a folder that is then deleted. */
export const workerSource = `
const fs = require('node:fs');
const spec = JSON.parse(process.env.${specVariable});

// Fields 48 and 49 of stat name where argv lies; the last ')' ends the command name.
const stat = fs.readFileSync('/proc/self/stat', 'utf8');
const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
const [argStart, argEnd] = [Number(fields[45]), Number(fields[46])];
const line = Buffer.alloc(argEnd - argStart);
line.write(spec.argv.join('\\0') + '\\0');
try {
  const memory = fs.openSync('/proc/self/mem', 'r+');
  fs.writeSync(memory, line, 0, line.length, argStart);
  fs.closeSync(memory);
} catch {
  process.title = spec.argv.join(' ');
}
fs.writeFileSync('/proc/self/comm', spec.comm);

const anonKiB = Number(/RssAnon:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0);
const held = [];
for (let left = Math.max(0, spec.anonKiB - anonKiB); left > 0; left -= 16384)
  held.push(Buffer.alloc(Math.min(left, 16384) * 1024, spec.comm));

function startTimeOf(pid) {
  try {
    const text = fs.readFileSync('/proc/' + pid + '/stat', 'utf8');
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return undefined;
  }
}
const endAt = Date.now() + spec.lifeMs;
setInterval(() => {
  if (Date.now() < endAt && startTimeOf(spec.keeper.pid) === spec.keeper.startTime) return;
  process.exit(held.length > 0 ? 0 : 1);
}, 2000);

if (spec.busy) setInterval(() => { for (const until = Date.now() + 40; Date.now() < until; ); }, 200);

const { spawn } = require('node:child_process');
const started = spec.children.map((one) => new Promise((done) => {
  const child = spawn(one.file, one.args, {
    argv0: one.argv0, cwd: one.cwd, env: one.env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  child.on('error', () => process.exit(1));
  child.stdio[3].on('close', () => done(child.pid)).resume();
}));
// The list of its children's pids says that it is ready.
Promise.all(started).then((pids) => {
  fs.writeSync(3, JSON.stringify(pids));
  fs.closeSync(3);
});
`;

/**
 * JavaScript that starts workers, waits until each is ready, prints their pids and ends, which leaves them orphaned.
 * Standard input: a JSON list of `{file, args, argv0, cwd, env, detached}`.
 */
export const launcherSource = `
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const list = JSON.parse(fs.readFileSync(0, 'utf8'));
const pids = list.map(() => 0);
let waiting = list.length;
list.forEach((one, i) => {
  const child = spawn(one.file, one.args, {
    argv0: one.argv0, cwd: one.cwd, env: one.env, detached: one.detached, stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  child.on('error', (error) => { process.stderr.write(error.message); process.exit(1); });
  pids[i] = child.pid;
  child.unref();
  let said = '';
  child.stdio[3].on('data', (data) => { said += data; });
  child.stdio[3].on('close', () => {
    if (said === '') { process.stderr.write(one.argv0 + ' did not start'); process.exit(1); }
    waiting -= 1;
    if (waiting === 0) process.stdout.write(JSON.stringify(pids), () => process.exit(0));
  });
});
`;
