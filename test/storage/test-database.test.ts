import { expect, test } from 'vitest';
import { useDatabase } from '../support/postgres/index.js';
import { withConnection } from '../support/postgres/maintenance.js';

const database = useDatabase();

test('sessions use another time zone than UTC when they connect', async () => {
  const zone = await withConnection(database.url, (client) => client.query('SHOW TimeZone'));
  expect(zone.rows).toEqual([{ TimeZone: 'Asia/Kathmandu' }]);
});
