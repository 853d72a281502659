/**
 * A capture that can be shown to a stranger: no secrets in command lines, no names of people or boxes, and yet the same
 * diagnosis. A person is the same `person-N` everywhere in it.
 */
import { textOf } from './blob.ts';
import type { Blob, Capture } from './contract.ts';
import { redactArgv, redactText } from './redact.ts';

export function redactCapture(capture: Capture): Capture {
  const rename = renamer(capture);
  const file = ([path, blob]: [string, Blob]): [string, Blob] => [path, redactFile(path, blob, rename)];
  const commands = Object.entries(capture.commands).map(([name, output]): [string, Capture['commands'][string]] => [
    name,
    { status: output.status, timedOut: output.timedOut, stdout: redactOutput(name, textOf(output.stdout), rename) },
  ]);
  return {
    capture: 1,
    host: 'box',
    takenAt: capture.takenAt,
    privileged: capture.privileged,
    windowSeconds: capture.windowSeconds,
    collectorPids: capture.collectorPids,
    files: Object.fromEntries(Object.entries(capture.files).map(file)),
    later: Object.fromEntries(Object.entries(capture.later).map(file)),
    commands: Object.fromEntries(commands),
  };
}

type Rename = (text: string) => string;

function redactFile(path: string, blob: Blob, rename: Rename): Blob {
  if (path.endsWith('/cmdline')) {
    const text = textOf(blob);
    const ended = text.endsWith('\0');
    const argv = (ended ? text.slice(0, -1) : text).split('\0');
    return rename(redactArgv(argv).join('\0')) + (ended ? '\0' : '');
  }
  // Figures and program names; a user may be called like a program, so those are left as they are.
  if (path.endsWith('/cgroup') || path === '/proc/mounts') return rename(textOf(blob));
  return blob;
}

function redactOutput(name: string, text: string, rename: Rename): string {
  if (name === 'dmesg oom')
    return text
      .split('\n')
      .map((line) => rename(redactText(line)))
      .join('\n');
  return rename(text);
}

/**
 * Names of people are replaced where they can only be people: in lists of users, below home directories, before an @. A
 * name no program of the box bears is replaced as a word everywhere; `ninja` may be both.
 */
function renamer(capture: Capture): Rename {
  const people = peopleOf(capture);
  const programs = programsOf(capture);
  const replacements: [RegExp, string][] = [];
  people.forEach((name, index) => {
    const alias = `person-${index + 1}`;
    const literal = escapeRegExp(name);
    const anywhere = `(?<![A-Za-z0-9_])${literal}(?![A-Za-z0-9_])`;
    const onlyPeople =
      `(?<=/(?:home|Users|users|scratch|data|work|nfs|mnt)/)${literal}(?![A-Za-z0-9_])` +
      `|(?<=^ *\\d+ +)${literal}(?=\\s)` + // UID NAME, JOBID USER
      `|(?<=^ *\\S+ +\\d+ +)${literal}(?=\\s)` + // sessions: ID UID USER
      `|(?<![A-Za-z0-9_])${literal}(?=@)`;
    replacements.push([new RegExp(programs.has(name) ? onlyPeople : anywhere, 'gm'), alias]);
  });
  for (const host of hostNames(capture.host)) {
    replacements.push([new RegExp(`(?<![A-Za-z0-9_-])${escapeRegExp(host)}(?![A-Za-z0-9_-])`, 'g'), 'box']);
  }
  return (text) => replacements.reduce((kept, [pattern, alias]) => kept.replace(pattern, alias), text);
}

/** Names with a login of their own (uid 1000 and up): system accounts name software. */
function peopleOf(capture: Capture): string[] {
  const users = textOf(capture.commands['users']?.stdout);
  const names = [...users.matchAll(/^(\d{1,10}) (\S{1,64})$/gm)]
    .filter(([, uid]) => Number(uid) >= 1000 && Number(uid) !== 65_534)
    .map(([, , name = '']) => name);
  // The longest first: `ana.b` before `ana`.
  return [...new Set(names)].slice(0, 2000).sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

function programsOf(capture: Capture): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [path, blob] of Object.entries(capture.files)) {
    if (!/^\/proc\/\d+\/stat$/.test(path)) continue;
    const text = textOf(blob);
    names.add(text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')));
  }
  for (const match of textOf(capture.commands['links']?.stdout).matchAll(/\d+ exe [^\0]*\/([^/\0]+)(?=\0|$)/g)) {
    names.add(match[1] ?? '');
  }
  return names;
}

function hostNames(host: string): string[] {
  const short = host.split('.')[0] ?? '';
  return [...new Set([host, short])].filter((name) => name !== '' && name !== 'localhost');
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
