import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';

const root = new URL('../../', import.meta.url);

/** A file of the project, by its path below the root. */
export const readText = (path: string): string => readFileSync(new URL(path, root), 'utf8');

/** Paths of all files below a folder. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(new URL(folder, root), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).replace(root.pathname, ''));

/** Folders with generated or foreign files. */
const FOREIGN: readonly string[] = [
  '.git',
  '.scanfeed',
  '.simulation',
  '.tools',
  'build',
  'coverage',
  'dist',
  'node_modules',
];

/** Paths of all files of the project. */
export const projectFiles = (): string[] =>
  readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !FOREIGN.includes(name))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(`${entry.name}/`) : [entry.name]));

/** The commands as the program knows them: name and file in `src/cli/commands/`. */
export const commands = [
  ...readText('src/main.ts').matchAll(/^ {2}(\w+): \(\) => import\('\.\/cli\/commands\/(.+)\.js'\)/gm),
].map(([, name = '', file = '']) => ({ name, file }));

/** A command of `src/cli/commands/`, as commander has it. */
export async function loadCommand(file: string): Promise<Command> {
  const { register } = (await import(`../../src/cli/commands/${file}.ts`)) as { register(program: Command): void };
  const program = new Command('scanfeed');
  register(program);
  return program.commands[0] as Command;
}

/** The name that GitHub gives to a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

/** Anchors of a Markdown text's headings. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const prose = text.replaceAll(/^```.*?^```$/gms, '');
  return new Set([...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading)));
}
