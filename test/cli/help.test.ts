import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/context/exit.js';
import { commands, loadCommand, readText } from '../support/documents.js';

/** What the help of a command and of those below it shows on a terminal of 80 columns. */
async function helpOf(file: string): Promise<{ name: string; text: string }[]> {
  const below = (command: Command): Command[] => [command, ...command.commands.flatMap(below)];
  return below(await loadCommand(file)).map((command) => {
    const parts: string[] = [];
    const writeOut = (part: string) => void parts.push(part);
    command.configureOutput({ getOutHelpWidth: () => 80, writeOut }).outputHelp();
    return { name: command.name(), text: parts.join('') };
  });
}

test('the program has commands', () => {
  expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining(['run', 'emulator', 'demo']));
});

describe.each(commands)('scanfeed $name --help', ({ file }) => {
  test('fits 80 columns and has an example of every command', async () => {
    for (const { name, text } of await helpOf(file)) {
      expect(text).toMatch(new RegExp(`^Usage: .*\\b${name}\\b`));
      expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
      expect(text).toMatch(new RegExp(`^Examples:\n( {2,}.*\n?)*? {2,}\\$ (.* )?scanfeed .*\\b${name}\\b`, 'm'));
    }
  });
});

test('the documentation names every command and every exit code', () => {
  const table = readText('docs/README.md');
  expect(commands.filter(({ name }) => !new RegExp(`^\\| \\[?\`scanfeed ${name}\``, 'm').test(table))).toEqual([]);
  const codes = readText('docs/commands/README.md');
  expect(Object.values(EXIT).filter((code) => !codes.includes(`| ${code} |`))).toEqual([]);
});
