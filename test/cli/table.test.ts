import { expect, test } from 'vitest';
import { type Column, table } from '../../src/cli/terminal/table.js';

const rows = [
  { view: 'document_rechnung_positionen', type: 'rechnung_inland', fields: 8 },
  { view: 'document_rechnung', type: 'rechnung_inland', fields: 28 },
];
const layout: readonly Column<(typeof rows)[number]>[] = [
  { head: 'VIEW', cell: ({ view }) => view },
  { head: 'TYPE', cell: ({ type }) => type, shrinks: true },
  { head: 'FIELDS', cell: ({ fields }) => String(fields), right: true },
];
const shown = (columns: number | null) => table(rows, layout, columns).split('\n').slice(0, -1);

test('a table has its natural width when there is no limit', () => {
  expect(shown(null)).toEqual([
    'VIEW                          TYPE             FIELDS',
    'document_rechnung_positionen  rechnung_inland       8',
    'document_rechnung             rechnung_inland      28',
  ]);
  expect(shown(53)).toEqual(shown(null));
});

test('a table cuts only columns that may shrink when it still does not fit', () => {
  expect(shown(48)[1]).toBe('document_rechnung_positionen  rechnung_…       8');
  expect(shown(20)[1]).toBe('document_rechnung_positionen  rechnun…       8');
});

test('a table replaces control characters', () => {
  expect(table([{ ...rows[0], view: 'a\u001b[2Jb\u202e' } as (typeof rows)[number]], layout, null)).toContain(
    'a\ufffd[2Jb\ufffd',
  );
});
