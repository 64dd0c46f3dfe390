import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';
import {
  type Cell,
  expectSameRows,
  expectWorstValues,
  type Kind,
  readRelations,
  storeWorstDocuments,
  ZONES,
} from '../../support/worst-documents.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
beforeAll(() => storeWorstDocuments(setup));

/** Writes a value as the default type parsers of node-postgres have read it. */
function write(value: unknown, kind: Kind): Cell {
  if (value === null || value === undefined) return null;
  if (kind === 'json' || kind === 'list') return JSON.stringify(value);
  if (kind !== 'date') return value instanceof Date ? value.toISOString() : String(value);
  // A date is midnight in the zone of the process.
  const date = value as Date;
  const [year, month, day] = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
}

describe('node-postgres', () => {
  it('finds the values of the worst documents in columns, or marked', () => expectWorstValues(setup));

  it.each(ZONES)(
    'reads every view and function, with the right values, over the worst documents in %s',
    async (zone) => {
      const client = new pg.Client({ connectionString: given.url, options: `-c timezone=${zone}` });
      await client.connect();
      try {
        const relations = await readRelations(setup);
        expect(relations.length).toBeGreaterThan(10);
        for (const relation of relations) {
          const { rows } = await client.query({ text: `SELECT * FROM ${relation.name}`, rowMode: 'array' });
          const read = rows.map((row: unknown[]) => relation.columns.map(({ kind }, place) => write(row[place], kind)));
          expectSameRows(relation, read, zone);
        }
      } finally {
        await client.end();
      }
    },
  );
});
