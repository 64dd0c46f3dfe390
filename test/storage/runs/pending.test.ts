import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { pendingBatch } from '../../support/pending.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();

it('are due when their time has come, or the clock of the database was set back by more than a pause', async () => {
  const feed = await setup.takeFeed();
  await feed.commit([], pendingBatch({ scanId: 'pending' }));
  const isDueIn = async (time: string) => {
    await setup.rows(sql`UPDATE ${tables.runs} SET next_try_at = clock_timestamp() + ${time}::interval`);
    return (await setup.store.duePending('default', 100)).length === 1;
  };
  expect(await isDueIn('0')).toBe(true);
  expect(await isDueIn('1 minute')).toBe(false);
  expect(await isDueIn('59 minutes')).toBe(false);
  expect(await isDueIn('61 minutes')).toBe(true);
  await setup.rows(sql`UPDATE ${tables.runs} SET pending_since = pending_since - interval '8 days'`);
  expect(await isDueIn('23 hours')).toBe(false);
  expect(await isDueIn('25 hours')).toBe(true);
  await setup.rows(sql`UPDATE ${tables.runs} SET next_try_at = 'infinity'`);
  expect(await setup.store.duePending('default', 100)).toEqual([]);
});
