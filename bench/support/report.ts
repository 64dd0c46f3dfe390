import { readFile, writeFile } from 'node:fs/promises';
import type { Figure, Findings, Table } from './figure.js';

/** A figure's part of the report, in Markdown. */
export function render(figure: Figure, findings: Findings, circumstances: string): string {
  const { table, wanted, notes = [] } = findings;
  const parts = [
    `### ${figure.title}`,
    figure.method,
    renderTable(table),
    wanted.map(({ what, measured, met }) => `- ${met ? '✓' : '✗'} ${what}; measured ${measured}`).join('\n'),
    ...notes,
    `*${circumstances} \`npm run bench -- ${figure.name}\`*`,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function renderTable({ head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}

/** Puts a figure's part in its place in the document, which is marked there. */
export async function writePart(document: URL, name: string, part: string): Promise<void> {
  const text = await readFile(document, 'utf8');
  const begin = `<!-- figure ${name} -->`;
  const end = `<!-- end of ${name} -->`;
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${document.pathname} has no place for ${name}: ${begin} … ${end}`);
  await writeFile(document, `${text.slice(0, from + begin.length)}\n\n${part}\n\n${text.slice(to)}`);
}
