/** What people type after /reclaim. Forgiving about what chat clients do to text, strict about what it means. Pure. */

export type Command =
  | { readonly verb: 'help' | 'hosts' | 'status' }
  | { readonly verb: 'history'; readonly host: string | null }
  | { readonly verb: 'cancel'; readonly host: string }
  /** `silence HOST 8h`: alerts of a host stay quiet for so long. */
  | { readonly verb: 'silence'; readonly host: string; readonly durationText: string }
  | {
      readonly verb: 'look';
      readonly hosts: readonly string[];
      readonly groups: readonly string[];
      readonly all: boolean;
    }
  | { readonly verb: 'wrong'; readonly why: string };

const verbs: Readonly<Record<string, 'help' | 'hosts' | 'status' | 'history' | 'cancel' | 'silence' | 'look'>> = {
  help: 'help',
  '?': 'help',
  '-h': 'help',
  '--help': 'help',
  hosts: 'hosts',
  list: 'hosts',
  boxes: 'hosts',
  status: 'status',
  open: 'status',
  history: 'history',
  log: 'history',
  cancel: 'cancel',
  stop: 'cancel',
  abort: 'cancel',
  silence: 'silence',
  mute: 'silence',
  snooze: 'silence',
  look: 'look',
  free: 'look',
  check: 'look',
};

export const commandWords: readonly string[] = ['help', 'hosts', 'status', 'history', 'cancel', 'silence'];

/** `<http://gpu-box-3|gpu-box-3>` -> `gpu-box-3`, curly quotes and trailing commas gone, no-break spaces are spaces. */
export function words(text: string): string[] {
  return text
    .slice(0, 2000)
    .replace(/[\u00a0\u2000-\u200b\u202f\u3000]/g, ' ')
    .replace(/<(?:https?|ssh|mailto):[^|>]*\|([^>]*)>/gi, ' $1 ')
    .replace(/<(?:https?|ssh):\/\/([^|>]*)>/gi, ' $1 ')
    .replace(/<!subteam\^[A-Z0-9]+\|@?([^>]*)>/g, ' @$1 ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/[“”„‟«»"'‘’‚‛`]/g, ' ')
    .split(/[\s,;]+/)
    .map((word) => word.replace(/^(?:https?|ssh):\/\//i, '').replace(/[/.:!]+$/, ''))
    .filter((word) => word !== '');
}

const usage = 'Nothing was done. Type /reclaim help for what I understand.';

export function parseCommand(text: string): Command {
  const said = words(text);
  const [first, ...rest] = said;
  if (first === undefined) return { verb: 'help' };
  const verb = Object.hasOwn(verbs, first.toLowerCase()) ? verbs[first.toLowerCase()] : undefined;
  switch (verb) {
    case 'help':
    case 'hosts':
    case 'status':
      return rest.length === 0 ? { verb } : { verb: 'wrong', why: `"${first}" takes nothing after it. ${usage}` };
    case 'history':
      return rest.length > 1
        ? { verb: 'wrong', why: `"history" takes one host at most. ${usage}` }
        : { verb, host: rest[0] ?? null };
    case 'cancel': {
      const [host] = rest;
      return host === undefined || rest.length > 1
        ? { verb: 'wrong', why: `Say which one: /reclaim cancel HOST. ${usage}` }
        : { verb, host };
    }
    case 'silence': {
      const [host, durationText] = rest;
      return host === undefined || durationText === undefined || rest.length > 2
        ? { verb: 'wrong', why: `Say for how long: /reclaim silence HOST 8h. ${usage}` }
        : { verb, host, durationText };
    }
    case 'look':
      return rest.length === 0 ? { verb: 'wrong', why: `Say which box: /reclaim HOST. ${usage}` } : look(rest);
    case undefined:
      return look(said);
  }
}

function look(said: readonly string[]): Command {
  const odd = said.find((word) => !/^@?[A-Za-z0-9][A-Za-z0-9._@:-]*$/.test(word));
  if (odd !== undefined) {
    const shown = Array.from(odd).slice(0, 40).join('');
    return { verb: 'wrong', why: `"${shown}" is no host name. ${usage}` };
  }
  const all = said.some((word) => ['all', '@all'].includes(word.toLowerCase()));
  const groups = said.filter((word) => word.startsWith('@') && word.toLowerCase() !== '@all').map((w) => w.slice(1));
  const hosts = said.filter((word) => !word.startsWith('@') && word.toLowerCase() !== 'all');
  return { verb: 'look', hosts: [...new Set(hosts)], groups: [...new Set(groups)], all };
}
