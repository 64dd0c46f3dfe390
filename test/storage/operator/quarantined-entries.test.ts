import { sql } from 'kysely';
import { expect, it } from 'vitest';
import type { OperatorStore } from '../../../src/storage/operator/operator-store.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { tables, useStore } from '../../support/store.js';
import { IS_THOROUGH } from '../../support/thorough.js';

const setup = useStore();

it.each([
  ['discarding', (quarantine, feed, ids) => quarantine.discard(feed, ids)],
  ['settling', (quarantine, feed, [id]) => quarantine.settle(feed, id ?? '', 'replayed')],
] as const satisfies readonly (readonly [
  string,
  (quarantine: OperatorStore['quarantine'], feed: string, ids: readonly string[]) => Promise<unknown>,
])[])('%s entries waits before it locks any of them when a commit is running', async (name, change) => {
  const feed = await setup.takeFeed({ name });
  await feed.commit([entryJson({ scanId: `${name}-1`, status: 'x' }), entryJson({ scanId: `${name}-2`, status: 'x' })]);
  const ids = await setup.operatorStore.quarantine.openIds(name);
  const changing = await setup.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT FROM ${tables.feeds} WHERE name = ${name} FOR NO KEY UPDATE`.execute(tx);
    const begun = change(setup.operatorStore.quarantine, name, ids);
    await Promise.race([
      untilWaiting(setup.database.sql, 1),
      begun.then(() => {
        throw new Error('it did not wait');
      }),
    ]);
    // Fails if one of them is locked.
    const { rows } = await sql`SELECT FROM ${tables.quarantine} WHERE feed = ${name} FOR UPDATE NOWAIT`.execute(tx);
    expect(rows).toHaveLength(2);
    return { begun };
  });
  await changing.begun;
  expect(await setup.operatorStore.quarantine.openIds(name)).toHaveLength(name === 'discarding' ? 0 : 1);
});

it.runIf(IS_THOROUGH)(
  'an entry is kept byte for byte when it is too long for JSON',
  async () => {
    const feed = await setup.takeFeed({ name: 'long' });
    const payload = Buffer.alloc(202 * 1024 * 1024, 'x'); // as base64 more than 256 MiB
    payload.write('{"', 0);
    payload.write('\u0000\xff}', payload.length - 3, 'latin1');
    const entry = { scanId: 'long', revision: 1, reason: 'status', detail: 'status is neither', payload } as const;
    const short = { ...entry, scanId: 'short', payload: Buffer.from('{}') } as const;
    const quarantine = [short, entry].map((bad) => ({ ...bad, state: 'open' as const }));
    await feed.commit([], { batch: batchOf([]), quarantine });
    const rows = await setup.rows(sql`
    SELECT scan_id, octet_length(payload) AS bytes, substr(payload, 1, 2) AS head,
      encode(substr(payload, octet_length(payload) - 2), 'hex') AS tail
    FROM ${tables.quarantine} WHERE feed = 'long' ORDER BY octet_length(payload) DESC`);
    expect(rows).toEqual([
      { scan_id: 'long', bytes: payload.length, head: Buffer.from('{"'), tail: '00ff7d' },
      expect.objectContaining({ scan_id: 'short', bytes: 2 }),
    ]);
  },
  60_000,
);
