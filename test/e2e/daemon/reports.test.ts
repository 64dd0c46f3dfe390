import { test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test('creates typed views of stored documents that the reader role can read', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(30);
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_TYPED_VIEWS: 'auto' });
  await daemon.catchesUp();
  const built = 'built typed views';
  await eventually(() => daemon.logged().map(({ message }) => message)).toContain(built);
  const types = await database.query('SELECT DISTINCT document_type_slug FROM scanfeed.runs');
  const readable = () =>
    database.query(
      `SELECT name FROM scanfeed.report_views
       WHERE arrays = '[]' AND has_table_privilege($1, 'scanfeed_reporting.' || name, 'SELECT')`,
      [database.role],
    );
  await eventually(readable).toHaveLength(2 * types.length);
});
