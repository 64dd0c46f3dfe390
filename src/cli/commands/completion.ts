import { Argument, type Command } from 'commander';
import { type CommandProcess, thisProcess } from '../context/command-process.js';

const examples = `
The script completes commands, options, their fixed choices and file names.

Examples:
  $ source <(scanfeed completion bash)
  For every new shell:
    $ echo 'source <(scanfeed completion bash)' >> ~/.bashrc
    $ scanfeed completion zsh > ~/.zfunc/_scanfeed
    $ scanfeed completion fish > ~/.config/fish/completions/scanfeed.fish`;

/** `scanfeed completion`. Describes the other commands of the program, so all of them must be registered. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('completion')
    .description('Print a script that completes commands in a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', examples)
    .action((shell: keyof typeof SCRIPTS) => io.write(SCRIPTS[shell](placesIn(program, ''))));
}

/** What may follow a command, or the name of the program, and the word before the cursor. */
interface Place {
  readonly after: string;
  /** An option whose value follows, or `*` for every other word. */
  readonly last: string;
  /** Empty if any value is possible. */
  readonly words: string;
}

function placesIn(command: Command, after: string): readonly Place[] {
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const options = command.options.flatMap(({ long }) => long ?? []);
  const words = [...command.commands.map((each) => each.name()), ...choices, ...options, '--help'].join(' ');
  const values = command.options
    .filter(({ required }) => required)
    .flatMap(({ short, long, argChoices = [] }) =>
      [short ?? [], long ?? []].flat().map((last) => ({ after, last, words: argChoices.join(' ') })),
    );
  const below = command.commands.flatMap((each) => placesIn(each, `${after} ${each.name()}`.trim()));
  return [...values, { after, last: '*', words }, ...below];
}

const SCRIPTS = {
  bash: (places: readonly Place[]) => `_scanfeed() {
${walk(places, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  COMPREPLY=($(compgen -W "$list" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _scanfeed scanfeed
`,
  zsh: (places: readonly Place[]) => `#compdef scanfeed
_scanfeed() {
${walk(places, `"\${(@)words[2,CURRENT-1]}"`)}
  compadd -- \${=list} || _files
}
if [ "$funcstack[1]" = _scanfeed ]; then _scanfeed; else compdef _scanfeed scanfeed; fi
`,
  fish: (places: readonly Place[]) => `function __scanfeed_words
  set -l place ''
  set -l last ''
  for word in (commandline -opc)[2..]
    set last "$word"
    set -l next (string trim "$place $word")
    if contains -- "$next" ${commandsIn(places).join(' ')}
      set place "$next"
    end
  end
  switch "$place|$last"
${places.map(({ after, last, words }) => `    case '${after}|${last}'${words && `\n      printf '%s\\n' ${words}`}`).join('\n')}
  end
end
complete -c scanfeed -a '(__scanfeed_words)'
`,
} as const;

/** Returns the lines of a POSIX shell that find the words after the previous ones. */
function walk(places: readonly Place[], previous: string): string {
  return `  local place='' word='' list=''
  for word in ${previous}; do
    case "\${place:+$place }$word" in
      ${commandsIn(places).join('|')}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place|$word" in
${places.map(({ after, last, words }) => `    '${after}|'${last}) list='${words}' ;;`).join('\n')}
  esac`;
}

function commandsIn(places: readonly Place[]): readonly string[] {
  return places.flatMap(({ after, last }) => (after === '' || last !== '*' ? [] : [`'${after}'`]));
}
