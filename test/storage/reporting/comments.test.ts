import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { DEMO_DATA } from '../../support/demo-data.js';
import { useDatabase } from '../../support/postgres/index.js';
import { useStore } from '../../support/store.js';

const setup = useStore(useDatabase(DEMO_DATA));

/** All comments, also those that no view of the catalog lists: schemas, functions, triggers, sequences. */
const COMMENTS = sql<{ text: string }>`
  SELECT DISTINCT description AS text FROM pg_description
  WHERE (pg_identify_object(classoid, objoid, objsubid)).identity ~ '\\yscanfeed(_reporting)?\\y'`;

it('comments give rules without citing a document that readers do not have when they are shown', async () => {
  const texts = (await setup.rows(COMMENTS)).map(({ text }) => text);
  expect(texts).toContain('Field lieferant → ustId');
  expect(texts).toContain('prod; or test: a trial, to be left out of figures');
  expect(texts.filter((text) => /interface \d|section \d|rule \d/i.test(text))).toEqual([]);
});
