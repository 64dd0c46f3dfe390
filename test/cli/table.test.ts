import { expect, test } from 'vitest';
import { type Column, table } from '../../src/cli/terminal/table.js';

const rows = [
  { view: 'document_rechnung_positionen', type: 'rechnung_inland', fields: 8 },
  { view: 'document_rechnung', type: 'rechnung_inland', fields: 28 },
];
const layout: readonly Column<(typeof rows)[number]>[] = [
  { head: 'VIEW', cell: ({ view }) => view },
  { head: 'TYPE', cell: ({ type }) => type },
  { head: 'FIELDS', cell: ({ fields }) => String(fields), right: true },
];

test('a table aligns its columns', () => {
  expect(table(rows, layout).split('\n').slice(0, -1)).toEqual([
    'VIEW                          TYPE             FIELDS',
    'document_rechnung_positionen  rechnung_inland       8',
    'document_rechnung             rechnung_inland      28',
  ]);
});

test('a table replaces control characters', () => {
  expect(table([{ ...rows[0], view: 'a\u001b[2Jb\u202e' } as (typeof rows)[number]], layout)).toContain(
    'a\ufffd[2Jb\ufffd',
  );
});
