/**
 * What part a process plays, from exe path, comm and argv together: each alone can be made up. A program that can carry
 * any name (node, python, sh, sleep) is what it calls itself; any other exe is what it is.
 */
import { adopters, carriers, compilers, drivers, editors, isProtectedName, multiplexers } from './names.ts';
import { pythons, shells, subcommands } from './names.ts';
import { wordsOf, type Proc } from './table.ts';
import { baseName } from './text.ts';

export type Role =
  | 'compiler'
  | 'driver'
  /** A compile server meant to outlive its builds (bazel, sccache, gradle). */
  | 'build_server'
  /** A process that works only for the one that started it (data loader, spawn/forkserver child, inductor worker). */
  | 'worker'
  /** A titled part of an inference or training server (VLLM::EngineCore, sglang::scheduler, ray::X). */
  | 'engine'
  | 'notebook_kernel'
  | 'shell'
  | 'editor'
  | 'multiplexer'
  | 'protected'
  | 'other';

export interface Part {
  readonly role: Role;
  /** What people call it: `cicc`, `pip`, `data loader worker`, `VLLM::EngineCore`. */
  readonly label: string;
}

const other = (label: string): Part => ({ role: 'other', label });

/** `x86_64-linux-gnu-g++-12` -> `g++`, `clang-18` -> `clang`, `cmake3` stays. */
function plainTool(name: string): string {
  const bare = name.replace(/^(?:[a-z0-9_]+-)*(?:linux|redhat|conda|w64)(?:-[a-z0-9_]+)*-(?=[a-z])/, '');
  return bare.replace(/-\d+(\.\d+)*$/, '');
}

const isTool = (name: string): boolean => compilers.has(name) || drivers.has(name) || Object.hasOwn(subcommands, name);

/** The names a process may be judged by, most trustworthy first. */
function namesOf(proc: Proc): string[] {
  const exe = proc.exe === null ? null : baseName(proc.exe.path);
  const argv0 = baseName(wordsOf(proc.argv)[0] ?? '');
  if (exe === null) return proc.comm === argv0.slice(0, 15) || carriers.test(proc.comm) ? [argv0] : [proc.comm];
  if (carriers.test(exe)) return [proc.comm, argv0, exe];
  // A copy under an odd name has to claim the same name twice.
  return proc.comm !== '' && proc.comm === argv0.slice(0, 15) && isTool(plainTool(argv0)) && !editors.has(exe)
    ? [exe, argv0]
    : [exe];
}

export function partOf(proc: Proc): Part {
  const exe = proc.exe === null ? '' : baseName(proc.exe.path);
  const names = namesOf(proc);
  if (multiplexers.has(exe) || multiplexers.has(proc.comm) || proc.comm.startsWith('tmux: ')) {
    return { role: 'multiplexer', label: names[0] ?? proc.comm };
  }
  if (isProtectedName(proc.comm) || isProtectedName(exe)) return { role: 'protected', label: proc.comm };
  const titled = titledPart(proc, exe);
  if (titled !== null) return titled;
  for (const name of names) {
    const part = toolPart(proc, plainTool(name));
    if (part !== null) return part;
  }
  if (names.some((name) => pythons.test(name)) || pythons.test(exe)) return pythonPart(proc);
  const label = calledName(proc, names);
  if (names.some((name) => editors.has(name))) return { role: 'editor', label };
  if (names.some((name) => shells.has(name.replace(/^-/, '')))) return { role: 'shell', label };
  return other(label);
}

/** What people call it. A program run from memory (memfd) is known by what it was started as, never by its descriptor. */
function calledName(proc: Proc, names: readonly string[]): string {
  const isMemfd = /^memfd:/;
  const argv0 = baseName(wordsOf(proc.argv)[0] ?? '');
  const name = [...names, argv0, proc.comm].find((at) => at !== '' && !isMemfd.test(at));
  return (name ?? 'a program without a name').replace(/^-(?=\w)/, '');
}

/** Processes that name themselves. comm is cut at 15 bytes, so the title in argv[0] comes first (`VLLM::EngineCor`). */
function titledPart(proc: Proc, exe: string): Part | null {
  const title = proc.argv[0] ?? '';
  const native = exe !== '' && !carriers.test(exe);
  if (exe === 'raylet' || (exe === '' && proc.comm === 'raylet')) return { role: 'engine', label: 'raylet' };
  for (const name of [title, proc.comm]) {
    if (/^bazel\(/.test(name)) return { role: 'build_server', label: 'bazel server' };
    if (native) continue;
    const engine = /^((?:VLLM|sglang|ray|vllm|SGLANG)::[\w.():-]{1,60})/.exec(name);
    if (engine?.[1] !== undefined) return { role: 'engine', label: engine[1] };
    if (/^pt_data_work/.test(name)) return { role: 'worker', label: 'data loader worker' };
  }
  return null;
}

function toolPart(proc: Proc, name: string): Part | null {
  if (name === 'sccache') {
    const client = wordsOf(proc.argv)
      .slice(1)
      .some((arg) => isTool(plainTool(baseName(arg))));
    return client ? { role: 'compiler', label: 'sccache' } : { role: 'build_server', label: 'sccache server' };
  }
  if (compilers.has(name)) return { role: 'compiler', label: name };
  if (drivers.has(name)) return { role: 'driver', label: name };
  const builds = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (builds === undefined) return null;
  const words = wordsOf(proc.argv);
  const asked = words.slice(1).find((arg) => builds.has(arg) || arg === 'run' || arg === 'x');
  // Named so by comm alone (a carrier with no arguments to read) is enough for pip and uv, whose names mean nothing else.
  const mute = words.length <= 1 && (name === 'uv' || name.startsWith('pip'));
  return mute || (asked !== undefined && builds.has(asked)) ? { role: 'driver', label: name } : other(name);
}

const workerModules: readonly (readonly [RegExp, string])[] = [
  [/multiprocessing\.resource_tracker/, 'resource tracker'],
  [/multiprocessing\.semaphore_tracker/, 'semaphore tracker'],
  [/multiprocessing\.forkserver/, 'fork server'],
  [/multiprocessing\.spawn|spawn_main\(/, 'spawned worker'],
  [/loky\.backend\.(popen_loky|resource_tracker)|popen_loky_posix/, 'loky worker'],
  [/torch[./]_inductor[./]compile_worker/, 'inductor compile worker'],
  [/distributed[./](cli[./]dask_worker|nanny)/, 'dask worker'],
  [/ray[./].*default_worker\.py/, 'ray worker'],
];

const buildScripts = /(^|\/)(setup\.py)$|pyproject_hooks\/|pep517\/|_in_process(\.py)?$/;
const setupVerbs = /^(build|build_ext|build_py|bdist_wheel|install|develop|egg_info|editable_wheel|dist_info)$/;

/** Only the first few arguments are read: they hold the module or script; the rest is anybody's text. */
function pythonPart(proc: Proc): Part {
  const args = wordsOf(proc.argv)
    .slice(1, 12)
    .map((arg) => arg.slice(0, 4096));
  const at = args.findIndex((arg) => !/^-(?:[bBdEhiIOqsSuvVxP]+|X.*|W.*)$/.test(arg));
  const first = args[at] ?? '';
  const next = args[at + 1] ?? '';
  if (first === '-c') {
    // Workers are started with `from multiprocessing.X import main; main(...)`; build hooks name setuptools or a backend.
    const worker = workerModules.find(([form]) => form.test(next.slice(0, 400)));
    if (worker !== undefined) return { role: 'worker', label: worker[1] };
    if (/build_meta|build_wheel|build_editable|setuptools[^]*setup\.py|setup\.py[^]*setuptools/.test(next)) {
      return { role: 'driver', label: 'python build hook' };
    }
    return other('python -c');
  }
  if (first === '-m') {
    if (next === 'pip' && args.some((arg) => /^(install|wheel|download)$/.test(arg)))
      return { role: 'driver', label: 'pip' };
    if (next === 'build' || next === 'ninja') return { role: 'driver', label: `python -m ${next}` };
    if (/^ipykernel/.test(next)) return { role: 'notebook_kernel', label: 'notebook kernel' };
    const worker = workerModules.find(([form]) => form.test(next));
    return worker === undefined ? other(`python -m ${next}`) : { role: 'worker', label: worker[1] };
  }
  const script = baseName(first);
  if (/^pip[\d.]*$/.test(script) && args.some((arg) => /^(install|wheel|download)$/.test(arg))) {
    return { role: 'driver', label: 'pip' };
  }
  if (buildScripts.test(first) && (script !== 'setup.py' || args.some((arg) => setupVerbs.test(arg)))) {
    return { role: 'driver', label: script === 'setup.py' ? 'setup.py' : 'python build hook' };
  }
  if (/ipykernel_launcher|colab_kernel_launcher/.test(first))
    return { role: 'notebook_kernel', label: 'notebook kernel' };
  const worker = workerModules.find(([form]) => form.test(first));
  return worker === undefined ? other(script === '' ? 'python' : script) : { role: 'worker', label: worker[1] };
}

/** Pid 1 of a namespace below ours: the first process of a container. */
export const headsNamespace = (proc: Proc): boolean => {
  const pids = proc.status?.namespacePids ?? [];
  return pids.length > 1 && pids.at(-1) === 1;
};

/** Whoever takes in processes that lost their parent. */
export const isAdopter = (proc: Proc): boolean => proc.pid === 1 || headsNamespace(proc) || adopters.test(proc.comm);
