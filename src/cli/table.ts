/** A column and how to show a row in it. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  /** May be cut where the terminal is too narrow. */
  readonly shrinks?: true;
  /** Numbers stand on the right. */
  readonly right?: true;
}

const GAP = 2;
const NARROWEST = 8;

/** Rows as aligned text, within `columns`; null: as wide as it needs to be. Pure. */
export function table<T>(rows: readonly T[], layout: readonly Column<T>[], columns: number | null): string {
  const cells = [layout.map(({ head }) => head), ...rows.map((row) => layout.map(({ cell }) => printable(cell(row))))];
  const natural = layout.map((_, index) => Math.max(...cells.map((line) => length(line[index] ?? ''))));
  const widths = columns === null ? natural : shrink(natural, layout, columns);
  const lines = cells.map((line) =>
    line.map((text, index) => aligned(cut(text, widths[index] ?? 0), widths[index] ?? 0, layout[index]?.right)),
  );
  return lines.map((line) => `${line.join(' '.repeat(GAP)).trimEnd()}\n`).join('');
}

/** Text of the service, made safe for a terminal: what steers one becomes visible. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\ufffd');
}

/** Takes from the widest column that may shrink, until the line fits or nothing is left to take. */
function shrink<T>(natural: readonly number[], layout: readonly Column<T>[], columns: number): number[] {
  const widths = [...natural];
  const total = () => widths.reduce((sum, width) => sum + width + GAP, -GAP);
  for (let over = total() - columns; over > 0; over -= 1) {
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
