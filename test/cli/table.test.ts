import { expect, test } from 'vitest';
import { type Column, table } from '../../src/cli/terminal/table.js';

const rows = [
  { view: 'document_rechnung_positionen', type: 'rechnung_inland', fields: 8, built: '2026-11-21T15:43:47Z' },
  { view: 'document_rechnung', type: 'rechnung_inland', fields: 28, built: '2026-11-21T15:43:47Z' },
];
const layout: readonly Column<(typeof rows)[number]>[] = [
  { head: 'VIEW', cell: ({ view }) => view },
  { head: 'TYPE', cell: ({ type }) => type, shrinks: true },
  { head: 'FIELDS', cell: ({ fields }) => String(fields), right: true },
  { head: 'BUILT', cell: ({ built }) => built, spare: true },
];
const shown = (columns: number | null) => table(rows, layout, columns).split('\n').slice(0, -1);

test('a table is as wide as it needs to be where nothing bounds it', () => {
  expect(shown(null)).toEqual([
    'VIEW                          TYPE             FIELDS  BUILT',
    'document_rechnung_positionen  rechnung_inland       8  2026-11-21T15:43:47Z',
    'document_rechnung             rechnung_inland      28  2026-11-21T15:43:47Z',
  ]);
  expect(shown(75)).toEqual(shown(null));
});

test('a table that does not fit loses what can be spared before anything is cut', () => {
  expect(shown(74)).toEqual([
    'VIEW                          TYPE             FIELDS',
    'document_rechnung_positionen  rechnung_inland       8',
    'document_rechnung             rechnung_inland      28',
  ]);
});

test('a table that still does not fit is cut where it may be, and no further', () => {
  expect(shown(48)[1]).toBe('document_rechnung_positionen  rechnung_…       8');
  expect(shown(20)[1]).toBe('document_rechnung_positionen  rechnun…       8');
});

test('what steers a terminal is shown as a sign', () => {
  expect(table([{ ...rows[0], view: 'a\u001b[2Jb\u202e' } as (typeof rows)[number]], layout, null)).toContain(
    'a\ufffd[2Jb\ufffd',
  );
});
