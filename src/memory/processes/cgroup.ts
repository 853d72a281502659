/** /proc/PID/cgroup, v1 and v2: who on the box takes care of a process. */

export type Keeper =
  | { readonly kind: 'slurm'; readonly job: string }
  | {
      readonly kind: 'container';
      readonly runtime: 'docker' | 'podman' | 'kubernetes' | 'machine';
      readonly id: string;
    }
  /** A systemd service, or a scope somebody made on purpose (systemd-run, a tmux pane, a desktop app). */
  | { readonly kind: 'unit'; readonly name: string; readonly byUser: boolean }
  | { readonly kind: 'login'; readonly session: string }
  | { readonly kind: 'none' };

/**
 * Units whose children are people's own work, not the service's: everything started over ssh on a box without pam_systemd
 * sits in ssh.service for ever, dead or alive. A pane's scope outlives its tmux: whether that lives, the parents tell.
 */
const doors =
  /^(sshd?(@.*)?|crond?|atd|slurmd|getty@.*|serial-getty@.*|docker|containerd|podman|init|user@.*|(tmux|vte)-spawn-.*)\.(service|scope)$/;

const unescape = (name: string): string =>
  name.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));

/** Every `hierarchy:controllers:path` line names a path; the first that says more than "somewhere" wins. */
export function parseCgroup(text: string): Keeper {
  const paths = text
    .split('\n')
    .map((line) => line.split(':').slice(2).join(':'))
    .filter((path) => path !== '' && path !== '/');
  const kept = paths.map(keeperOf);
  const rank = ['slurm', 'container', 'unit', 'login'] as const;
  for (const kind of rank) {
    const found = kept.find((keeper) => keeper.kind === kind);
    if (found !== undefined) return found;
  }
  return { kind: 'none' };
}

function keeperOf(path: string): Keeper {
  const slurm = /\/job_(\d+)(\/|$)/.exec(path);
  if (slurm?.[1] !== undefined && /slurm/.test(path)) return { kind: 'slurm', job: slurm[1] };
  const container = containerOf(path);
  if (container !== null) return container;
  const parts = path.split('/').filter((part) => part !== '');
  const login = parts.findLast((part) => /^session-.+\.scope$/.test(part));
  // Inside user@UID.service the unit that counts is the one below the user manager.
  const below = parts.slice(parts.findIndex((part) => /^user@.*\.service$/.test(part)) + 1);
  const unit = below.findLast((part) => /\.(service|scope)$/.test(part) && part !== login);
  if (unit !== undefined && !doors.test(unit)) {
    return { kind: 'unit', name: unescape(unit), byUser: parts.some((part) => part.startsWith('user-')) };
  }
  return login === undefined ? { kind: 'none' } : { kind: 'login', session: login.slice('session-'.length, -6) };
}

const idPattern = '([0-9a-f]{12,64})';
const containerForms = [
  ['podman', new RegExp(`libpod-(?:conmon-)?${idPattern}`)],
  ['kubernetes', new RegExp(`kubepods.*?${idPattern}(?:\\.scope)?(?:/|$)`)],
  ['docker', new RegExp(`(?:docker|buildkit|containerd|nerdctl)[-/](?:.*[-/])?${idPattern}`)],
] as const;

function containerOf(path: string): Keeper | null {
  for (const [runtime, form] of containerForms) {
    const id = form.exec(path)?.[1];
    if (id !== undefined) return { kind: 'container', runtime, id };
  }
  if (/\/kubepods/.test(path)) return { kind: 'container', runtime: 'kubernetes', id: '' };
  const machine = /\/(?:machine\.slice\/(?:machine-|libvirt-)?|lxc(?:\.payload)?[./])([^/]+)/.exec(path)?.[1];
  return machine === undefined ? null : { kind: 'container', runtime: 'machine', id: unescape(machine) };
}
