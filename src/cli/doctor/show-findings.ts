import { printable } from '../table.js';
import { wrapIndented } from '../wrap.js';
import type { Finding, Outcome } from './finding.js';

/** Readable without colours, too. */
const MARKS: Readonly<Record<Outcome, string>> = { ok: 'ok', warning: 'WARN', failing: 'FAIL', skipped: 'skip' };
const COLOURS: Readonly<Record<Outcome, number>> = { ok: 32, warning: 33, failing: 31, skipped: 2 };

/** @param columns of the terminal; null: each finding on one line, however long */
export function showFindings(
  findings: readonly Finding[],
  { columns, colours }: { readonly columns: number | null; readonly colours: boolean },
): string {
  const named = Math.max(...findings.map(({ check }) => check.length)) + 2;
  const head = 6 + named;
  return findings
    .map(({ check, outcome, message, statements = [] }) => {
      const mark = MARKS[outcome].padEnd(6);
      const shown = colours ? `\x1b[${COLOURS[outcome]}m${mark}\x1b[0m` : mark;
      const text = wrapIndented(printable(message), head, columns);
      // Not indented, so that they can be copied as they are.
      const mend = statements.map((statement) => `${printable(statement)};\n`).join('');
      return `${shown}${check.padEnd(named)}${text}\n${mend}`;
    })
    .join('');
}
