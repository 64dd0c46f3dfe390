import { Help } from 'commander';

const NARROWEST = 20;
const help = Object.assign(new Help(), { minWidthToWrap: NARROWEST });

/**
 * Breaks text at spaces so that it fits into a terminal behind `indent` columns; later lines are indented as far. Pure.
 * @param columns of the terminal; null: one line, however long
 */
export function wrapIndented(text: string, indent: number, columns: number | null): string {
  if (columns === null) return text;
  return help.boxWrap(text, Math.max(NARROWEST, columns - indent)).replaceAll('\n', `\n${' '.repeat(indent)}`);
}
