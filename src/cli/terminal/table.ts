import { printable } from './format.js';

export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  /** May be cut if the terminal is too narrow. */
  readonly shrinks?: true;
  readonly right?: true;
}

const GAP = 2;
const NARROWEST = 8;

/** Formats rows as aligned text within `columns`; null for any width. Pure. */
export function table<T>(rows: readonly T[], layout: readonly Column<T>[], columns: number | null): string {
  const cells = [layout.map(({ head }) => head), ...rows.map((row) => layout.map(({ cell }) => printable(cell(row))))];
  const natural = layout.map((_, index) =>
    cells.reduce((width, line) => Math.max(width, length(line[index] ?? '')), 0),
  );
  const widths = columns === null ? natural : shrink(natural, layout, columns);
  const lines = cells.map((line) =>
    line.map((text, index) => aligned(cut(text, widths[index] ?? 0), widths[index] ?? 0, layout[index]?.right)),
  );
  return lines.map((line) => `${line.join(' '.repeat(GAP)).trimEnd()}\n`).join('');
}

const totalOf = (widths: readonly number[]) => widths.reduce((sum, width) => sum + width + GAP, -GAP);

/** Shrinks the widest column that may be cut, until the line fits or no column can be cut further. */
function shrink<T>(natural: readonly number[], layout: readonly Column<T>[], columns: number): number[] {
  const widths = [...natural];
  for (let over = totalOf(widths) - columns; over > 0; over -= 1) {
    const candidates = widths.map((width, index) => (layout[index]?.shrinks && width > NARROWEST ? width : 0));
    const widest = Math.max(...candidates);
    if (widest === 0) break;
    widths[candidates.indexOf(widest)] = widest - 1;
  }
  return widths;
}

function cut(text: string, width: number): string {
  return length(text) <= width ? text : `${[...text].slice(0, width - 1).join('')}…`;
}

function aligned(text: string, width: number, right: true | undefined): string {
  const space = ' '.repeat(Math.max(0, width - length(text)));
  return right ? space + text : text + space;
}

function length(text: string): number {
  return [...text].length;
}
