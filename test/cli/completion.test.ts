import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, test } from 'vitest';
import { type CommandProcess, thisProcess } from '../../src/cli/context/command-process.js';
import { commands } from '../support/documents.js';

/** Returns the script for a shell, as the program prints it. */
async function scriptFor(shell: string): Promise<string> {
  const program = new Command('scanfeed')
    .version('0.0.0')
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  const script: string[] = [];
  const io: CommandProcess = { ...thisProcess, write: (text) => void script.push(String(text)) };
  for (const { file } of commands) {
    const { register } = (await import(`../../src/cli/commands/${file}.ts`)) as {
      register(program: Command, io?: CommandProcess): void;
    };
    register(program, io);
  }
  await program.parseAsync(['completion', shell], { from: 'user' });
  return script.join('');
}

/** How each shell prints its suggestions for the last of the words, with the script in `$1`. */
const ASK: Readonly<Record<string, string>> = {
  bash: `eval "$1"; shift; complete -p scanfeed >/dev/null || exit 1
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _scanfeed; printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: `compdef() { [[ "$*" = "_scanfeed scanfeed" ]] || exit 1 }
    eval "$1"; shift; words=("$@") CURRENT=$#
    compadd() { shift; print -l -- "\${(@M)@:#\${words[CURRENT]}*}" }; _scanfeed`,
  fish: 'eval $argv[1]; complete -C (string join -- " " $argv[2..])',
};

describe.each(Object.keys(ASK))('in %s', (shell) => {
  const isMissing = spawnSync(shell, ['--version']).error !== undefined;
  const cwd = mkdtempSync(join(tmpdir(), 'empty-')); // without file names to suggest
  afterAll(() => rmSync(cwd, { recursive: true }));
  const suggest = (script: string, words: readonly string[]): string[] => {
    const given = shell === 'fish' ? [script, ...words] : [shell, script, ...words];
    const { stdout, stderr, status } = spawnSync(shell, ['-c', ASK[shell] as string, ...given], {
      encoding: 'utf8',
      cwd,
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout.split('\n').filter((line) => line !== '');
  };

  test.skipIf(isMissing)('completes commands, those below them, options and the choices of arguments', async () => {
    const script = await scriptFor(shell);
    const all = suggest(script, ['scanfeed', '']);
    expect(all).toEqual(expect.arrayContaining(commands.map(({ name }) => name)));
    expect(suggest(script, ['scanfeed', 'quar'])).toEqual(['quarantine']);
    expect(suggest(script, ['scanfeed', 'quarantine', 're'])).toEqual(['replay']);
    const discard = suggest(script, ['scanfeed', 'quarantine', 'discard', '--']);
    expect(discard).toEqual(expect.arrayContaining(['--all', '--yes', '--help']));
    expect(discard).not.toContain('--payload');
    expect(suggest(script, ['scanfeed', 'submit', '--document-type', 'x', '--conc'])).toEqual(['--concurrency']);
    expect(suggest(script, ['scanfeed', 'completion', 'z'])).toEqual(['zsh']);
  });

  test.skipIf(isMissing)(
    'completes the values of options with fixed choices, and suggests no words for other values',
    async () => {
      const script = await scriptFor(shell);
      expect(suggest(script, ['scanfeed', 'submit', '--environment', ''])).toEqual(['prod', 'test']);
      expect(suggest(script, ['scanfeed', 'quarantine', 'list', '--all', '--state', 'd'])).toEqual(['discarded']);
      for (const value of [
        ['quarantine', 'list', '--limit', ''],
        ['sql', '-f', ''],
        ['sql', '--file', ''],
      ])
        expect(suggest(script, ['scanfeed', ...value]), value.join(' ')).toEqual([]);
      const next = suggest(script, ['scanfeed', 'submit', '--environment', 'prod', '--']);
      expect(next).toEqual(expect.arrayContaining(['--document-type', '--wait']));
    },
  );
});
