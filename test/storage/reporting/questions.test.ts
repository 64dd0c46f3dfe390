import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grantReader } from '../../../src/storage/reporting/reader-role.js';
import { DEMO_DATA } from '../../support/demo-data.js';
import { useDatabase } from '../../support/postgres/index.js';
import { useStore } from '../../support/store.js';

const setup = useStore(useDatabase(DEMO_DATA));
const readPage = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const TEXT = readPage('docs/reporting.md');

interface Example {
  readonly heading: string;
  readonly statement: string;
  /** `setup`: changes the server. `untested`: needs other documents than those of the demo. */
  readonly note: string;
  /** Names of the columns of the result shown in the documentation; null: no result is shown. */
  readonly columns: readonly string[] | null;
}

function readExamples(text: string): readonly Example[] {
  const examples: Example[] = [];
  for (const section of text.split(/^(?=##+ )/m)) {
    const heading = /^##+ (.*)/.exec(section)?.[1] ?? '';
    for (const [, note = '', statement = '', head] of section.matchAll(
      /^```sql ?(\w*)\n([^`]*)```\n(?:```text\n(.*)\n)?/gm,
    )) {
      const columns = head === undefined ? null : head.split('|').map((name) => name.trim());
      examples.push({ heading, statement, note, columns });
    }
  }
  return examples;
}

const EXAMPLES = [...readExamples(TEXT), ...readExamples(readPage('README.md'))];
const QUERIES = readExamples(/^## Example queries\n(.*?)^## /ms.exec(TEXT)?.[1] ?? '');
/** Roles are shared by the whole server. */
const READER = `scanfeed_questions_${process.pid}`;

/** Runs it in a transaction that is rolled back. */
async function run(role: string | null, statement: string): Promise<Record<string, unknown>[]> {
  const tx = await setup.database.sql.startTransaction().execute();
  try {
    if (role !== null) await sql`SET LOCAL ROLE ${sql.id(role)}`.execute(tx);
    return (await sql.raw<Record<string, unknown>>(statement).execute(tx)).rows;
  } finally {
    await tx.rollback().execute();
  }
}

beforeAll(async () => {
  expect(await grantReader(setup.connection, READER)).toBe(true);
});
afterAll(async () => {
  await setup.rows(sql`DROP OWNED BY ${sql.id(READER)}`);
  await setup.rows(sql`DROP ROLE ${sql.id(READER)}`);
});

describe('docs/reporting.md and README.md', () => {
  it('show twelve example queries, and one', () => {
    expect(QUERIES).toHaveLength(12);
    expect(QUERIES.filter(({ columns }) => columns === null)).toEqual([]);
    expect(readExamples(readPage('README.md')).map(({ columns }) => columns?.length)).toEqual([4]);
  });

  it.each(EXAMPLES.filter(({ note }) => note === ''))(
    'answer "$heading" on the data of the demo, for a reader, in the columns that they show',
    async ({ statement, columns }) => {
      const rows = await run(READER, statement);
      if (columns === null) return expect(rows).toBeInstanceOf(Array);
      expect(rows.length).toBeGreaterThan(0);
      expect(Object.keys(rows[0] ?? {})).toEqual(columns);
    },
  );

  it.each(EXAMPLES.filter(({ note }) => note === 'setup'))(
    'show statements for "$heading" that work',
    async (example) => {
      const statement = example.statement
        .replaceAll('scanfeed_reader', READER)
        .replaceAll('reports ', `${READER}_login `);
      expect(await run(null, statement)).toBeDefined();
    },
  );
});
