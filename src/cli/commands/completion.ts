import { Argument, type Command } from 'commander';
import { type CommandProcess, thisProcess } from '../context/command-process.js';

const examples = `
The script completes commands, options and their choices, and file names.

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

/** What may follow on a command line. */
interface Place {
  /** The commands before, or these and an option whose value follows. */
  readonly after: string;
  readonly words: readonly string[];
  readonly isCommand: boolean;
}

function placesIn(command: Command, after: string): readonly Place[] {
  const { options } = command;
  const below = command.commands.map((each) => [each, `${after} ${each.name()}`.trim()] as const);
  const words = [
    ...below.map(([each]) => each.name()),
    ...command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    ...options.flatMap(({ long }) => long ?? []),
    '--help',
  ];
  const ofOption = (long: string, choices: readonly string[]): Place => ({
    ...{ after: `${after} ${long}`, words: choices, isCommand: false },
  });
  return [
    { after, words, isCommand: true },
    ...options.flatMap(({ long, argChoices }) => (long && argChoices ? [ofOption(long, argChoices)] : [])),
    ...below.flatMap(([each, path]) => placesIn(each, path)),
  ];
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
  set -l word ''
  for word in (commandline -opc)[2..]
    switch (string trim "$place $word")
      case ${commandsIn(places)}
        set place (string trim "$place $word")
    end
  end
  set -l last (commandline -opc)[-1]
  switch "$place $last"
${places
  .filter(({ isCommand }) => !isCommand)
  .map(fishCase)
  .join('\n')}
    case '*'
      switch "$place"
${places
  .filter(({ isCommand }) => isCommand)
  .map(fishCase)
  .join('\n')}
      end
  end
end
complete -c scanfeed -a '(__scanfeed_words)'
`,
} as const;

/** Returns the lines of a POSIX shell that find the words after the previous ones. */
function walk(places: readonly Place[], previous: string): string {
  const line = ({ after, words }: Place) => `    '${after}') list='${words.join(' ')}' ;;`;
  const of = (isCommand: boolean) => places.filter((place) => place.isCommand === isCommand).map(line);
  return `  local place='' word='' list=''
  for word in ${previous}; do
    case "\${place:+$place }$word" in
      ${commandsIn(places).replaceAll(" '", "|'")}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place" in
${of(true).join('\n')}
  esac
  case "$place $word" in
${of(false).join('\n')}
  esac`;
}

function commandsIn(places: readonly Place[]): string {
  return places.flatMap(({ after, isCommand }) => (isCommand && after !== '' ? [`'${after}'`] : [])).join(' ');
}

function fishCase({ after, words }: Place): string {
  return `    case '${after}'\n      printf '%s\\n' ${words.join(' ')}`;
}
