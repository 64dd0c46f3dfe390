import { type Kysely, sql } from 'kysely';
import { batchOf, checkEntries } from '../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../src/sync/ports/index.js';
import { entryJson, type Fields, pageJson } from './entries.js';
import { untilWaiting } from './lock-waits.js';
import { rawPage } from './pages.js';
import { tables } from './store.js';

/** Runs two commits so that each has judged its entries before either writes: they queue for the clock, in this order. */
export async function concurrently<A, B>(
  db: Kysely<unknown>,
  first: () => Promise<A>,
  second: () => Promise<B>,
  meanwhile = () => {},
): Promise<[A, B]> {
  const queued = await db.transaction().execute(async (tx) => {
    await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(tx);
    const one = first();
    await untilWaiting(db, 1);
    const two = second();
    await untilWaiting(db, 2);
    meanwhile();
    return [one, two] as const;
  });
  return Promise.all(queued);
}

/** Entries by scan id, as JSON texts. */
export const entriesOf = (fields: Readonly<Record<string, Fields>>): string[] =>
  Object.entries(fields).map(([scanId, over]) => entryJson({ scanId, ...over }));

/** What a commit writes of a page with these entries. */
export function pageOf(entries: readonly string[]): Pick<PageCommit, 'batch' | 'quarantine'> {
  const checked = checkEntries(rawPage(pageJson(entries)));
  return { batch: batchOf(checked.entries), quarantine: checked.quarantine };
}
