/** `reclaim completion SHELL`: a script that lets TAB finish commands, options and host names. */
import { exitCodes, ReclaimError } from '../errors.ts';
import { commands } from './commands.ts';
import { onePositional, readArgs, type Command } from './io.ts';

const usage = 'reclaim completion bash|zsh|fish';

interface Word {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly string[];
  readonly takesHost: boolean;
}

export const completionCommand: Command = {
  summary: 'Print a script that lets TAB finish commands, options and host names.',
  usage,
  examples: [
    'reclaim completion bash >~/.local/share/bash-completion/completions/reclaim',
    'reclaim completion zsh >>~/.zshrc',
    'reclaim completion fish >~/.config/fish/completions/reclaim.fish',
  ],
  async run(args, io) {
    const { positionals } = readArgs(args, {}, usage);
    const shell = onePositional(positionals, 'shell', usage);
    const script = scripts[shell];
    if (script === undefined) {
      throw new ReclaimError('usage', `There is no completion for "${shell.slice(0, 40)}". Usage: ${usage}`);
    }
    io.out(script(await words()));
    return exitCodes.done;
  },
};

/** Read off the usage lines, so that nothing is offered that the program does not take. */
async function words(): Promise<Word[]> {
  const entries = Object.entries(commands);
  return await Promise.all(
    entries.map(async ([name, entry]) => {
      const { usage } = await entry.load();
      const options = [...usage.matchAll(/--[a-z-]+/g)].map((match) => match[0]);
      return {
        name,
        summary: entry.summary,
        options: [...new Set([...options, '--config', '--help'])],
        takesHost: /\bHOST\b/.test(usage),
      };
    }),
  );
}

const scripts: Readonly<Record<string, (words: readonly Word[]) => string>> = { bash, zsh, fish };

const hostNames = 'reclaim hosts --names 2>/dev/null';

function bash(words: readonly Word[]): string {
  const cases = words.map(
    ({ name, options, takesHost }) =>
      `      ${name}) words='${options.join(' ')}'${takesHost ? ` hosts=$(${hostNames})` : ''} ;;`,
  );
  return `_reclaim() {
  local cur=\${COMP_WORDS[COMP_CWORD]} words= hosts=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${words.map((word) => word.name).join(' ')} help'
  else
    case \${COMP_WORDS[1]} in
${cases.join('\n')}
    esac
  fi
  case $cur in -*) hosts= ;; *) [ "$COMP_CWORD" -eq 1 ] || words= ;; esac
  COMPREPLY=($(compgen -W "$words $hosts" -- "$cur"))
}
complete -o default -F _reclaim reclaim
`;
}

function zsh(words: readonly Word[]): string {
  return `autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n${bash(words)}`;
}

function fish(words: readonly Word[]): string {
  const lines = words.flatMap(({ name, summary, options, takesHost }) => {
    const seen = `complete -c reclaim -n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c reclaim -f -n __fish_use_subcommand -a ${name} -d '${summary}'`,
      ...options.map((option) => `${seen} -l ${option.slice(2)}`),
      ...(takesHost ? [`${seen} -a '(${hostNames})'`] : []),
    ];
  });
  return `${lines.join('\n')}\n`;
}
