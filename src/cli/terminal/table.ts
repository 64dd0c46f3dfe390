import { printable } from './format.js';

export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  readonly right?: boolean;
}

const GAP = '  ';

/** Formats rows as aligned text. Pure. */
export function table<T>(rows: readonly T[], layout: readonly Column<T>[]): string {
  const cells = [layout.map(({ head }) => head), ...rows.map((row) => layout.map(({ cell }) => printable(cell(row))))];
  const widths = layout.map((_, index) => cells.reduce((width, line) => Math.max(width, length(line[index] ?? '')), 0));
  const lines = cells.map((line) =>
    line.map((text, index) => {
      const space = ' '.repeat((widths[index] ?? 0) - length(text));
      return layout[index]?.right ? space + text : text + space;
    }),
  );
  return lines.map((line) => `${line.join(GAP).trimEnd()}\n`).join('');
}

function length(text: string): number {
  return [...text].length;
}
