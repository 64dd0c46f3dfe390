import { expect, it } from 'vitest';
import { dbtSources } from '../../../src/cli/views/dbt-sources.js';
import { readDescribedViews } from '../../../src/storage/reporting/described-views.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';

const setup = useStore(useDatabase(MIGRATED));

const HEAD = `# The views of scanfeed that every database has, as sources of dbt. \`scanfeed views show --dbt\` prints the typed views.
# In a quiet feed there are no new runs although the data is fresh; only data_complete_as_of shows the freshness. With several
# feeds, the oldest counts, and one without any data counts as old.
`;
const FRESHNESS = `{loaded_at_query: "SELECT min(COALESCE(data_complete_as_of, 'epoch')) FROM {{ this }}", freshness: {warn_after: {count: 10, period: minute}, error_after: {count: 1, period: hour}}}`;
const KEY = ['unique', 'not_null'];
const oneOf = (...values: string[]) => [`{accepted_values: {arguments: {values: [${values.join(', ')}]}}}`];
const RUN = {
  scan_id: KEY,
  environment: oneOf('prod', 'test'),
  status: oneOf('completed', 'failed'),
  result_state: oneOf('complete', 'pending'),
};
const TESTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  changes: { scan_id: KEY, change_seq: KEY, change: oneOf('stored', 'updated', 'withdrawn', 'deleted') },
  deleted_runs: { scan_id: KEY, reason: oneOf('erased', 'expired') },
  failed_runs: RUN,
  productive_runs: RUN,
  quarantined: { id: KEY, state: oneOf('open', 'repaired', 'replayed', 'discarded') },
  runs: RUN,
  sync_status: { feed: KEY },
};

it('docs/dbt/models/scanfeed.yml matches the views when all migrations are applied', async () => {
  const options = (view: string) => ({
    tests: TESTS[view] ?? {},
    ...(view === 'sync_status' && { config: FRESHNESS }),
  });
  const text = HEAD + dbtSources('scanfeed_reporting', await readDescribedViews(setup.connection), options);
  await expect(text).toMatchFileSnapshot('../../../docs/dbt/models/scanfeed.yml');
});
