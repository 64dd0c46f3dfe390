import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { discardQuarantined, openQuarantineIds, settleQuarantined } from '../../src/storage/quarantined-entries.js';
import { entryJson } from '../support/entries.js';
import { untilWaiting } from '../support/lock-waits.js';
import { tables, useStore } from '../support/store.js';

const bench = useStore();

it.each([
  ['discarding', discardQuarantined],
  ['settling', (db, of, feed, [id]) => settleQuarantined(db, of, feed, id ?? '', 'replayed')],
] as const satisfies readonly (readonly [
  string,
  (...args: Parameters<typeof discardQuarantined>) => Promise<unknown>,
])[])('%s entries waits for a commit on its way before it locks any of them', async (name, change) => {
  const feed = await bench.takeFeed({ name });
  await feed.commit([entryJson({ scanId: `${name}-1`, status: 'x' }), entryJson({ scanId: `${name}-2`, status: 'x' })]);
  const ids = await openQuarantineIds(bench.database.sql, tables, name);
  const changing = await bench.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT FROM ${tables.feeds} WHERE name = ${name} FOR NO KEY UPDATE`.execute(tx);
    const begun = change(bench.database.sql, tables, name, ids);
    await Promise.race([
      untilWaiting(bench.database.sql, 1),
      begun.then(() => {
        throw new Error('it did not wait');
      }),
    ]);
    // Would fail where one of them is locked.
    const { rows } = await sql`SELECT FROM ${tables.quarantine} WHERE feed = ${name} FOR UPDATE NOWAIT`.execute(tx);
    expect(rows).toHaveLength(2);
    return { begun };
  });
  await changing.begun;
  expect(await openQuarantineIds(bench.database.sql, tables, name)).toHaveLength(name === 'discarding' ? 0 : 1);
});
