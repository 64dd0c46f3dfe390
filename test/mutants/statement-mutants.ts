// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of the program's own templates
import { type Mutant, type Patch, patch } from './mutant.js';

const statements = (name: string, ...patches: readonly Patch[]): Mutant => ({ name, tests: 'statements', patches });

/** Bugs of the statements. */
export const STATEMENT_MUTANTS: readonly Mutant[] = [
  statements(
    'the cursor is not part of the fence',
    patch('src/storage/commit/commit-page.ts', ' AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor', ''),
  ),
  statements(
    'a page does not wait for the commit of the page before',
    patch(
      'src/storage/commit/commit-page.ts',
      'AS feed JOIN sent ON ${isHeld(SENT_LEASE)}',
      'AS feed JOIN sent ON ${isHeld(SENT_LEASE)} AND feed.cursor IS NOT DISTINCT FROM sent.from_cursor',
    ),
  ),
  statements(
    'a page of another epoch is committed',
    patch('src/storage/tables/lease-columns.ts', 'AND lease_epoch = ${epoch} AND COALESCE', 'AND COALESCE'),
  ),
  statements(
    'a commit of an epoch that was granted twice lands',
    patch('src/storage/tables/lease-columns.ts', " AND COALESCE(lease_holder, '') = ${holder}", ''),
  ),
  statements(
    'filters that include more leave the feed complete',
    patch('src/storage/feeds/lease.ts', 'setting @> (settings', 'setting <@ (settings'),
  ),
  statements(
    'a feed is taken from a living process',
    patch('src/storage/feeds/lease.ts', ' AND NOT ${isLed(tables)}', ''),
  ),
  statements(
    'a process that renewed its lease in the future is alive',
    patch(
      'src/storage/tables/lease-columns.ts',
      'clock_timestamp() BETWEEN process.renewed_at AND process.expires_at',
      'clock_timestamp() <= process.expires_at',
    ),
  ),
  statements(
    'a process leads feeds of a schema that it cannot use',
    patch('src/storage/tables/lease-columns.ts', ' AND ${schema}::text <> ALL (unusable)', ''),
  ),
  statements(
    'the same revision is written again',
    patch(
      'src/storage/commit/judged-entries.ts',
      'WHEN candidate.revision > known.revision THEN',
      'WHEN candidate.revision >= known.revision THEN',
    ),
    patch(
      'src/storage/commit/written-runs.ts',
      'WHERE excluded.revision > run.revision',
      'WHERE excluded.revision >= run.revision',
    ),
  ),
  statements(
    'stored data is replaced within a revision',
    patch(
      'src/storage/commit/union-of-sources.ts',
      'COALESCE(${a(name)}, ${unless(b(name))})',
      'COALESCE(${unless(b(name))}, ${a(name)})',
    ),
  ),
  statements(
    'a test mode that only the later source states is lost',
    patch('src/storage/commit/union-of-sources.ts', "latest('partner_test_mode')", "a('partner_test_mode')"),
  ),
  statements(
    'the position passes by a stored run that another writer has raised meanwhile',
    patch('src/storage/commit/entries.ts', 'WHEN EXISTS (SELECT FROM overtaken) THEN', 'WHEN false THEN'),
  ),
  statements(
    'unknown fields go unnoticed',
    patch('src/core/run-fields.ts', 'if (!known.has(name)) return true;', '{}'),
  ),
  statements(
    'entries are quarantined by a process that lost the feed',
    patch(
      'src/storage/commit/unusable-entries.ts',
      'USING (position)\n  WHERE EXISTS (SELECT FROM held)',
      'USING (position)',
    ),
  ),
  statements(
    'a page of a cancelled pass is committed',
    patch('src/storage/commit/pass-page.ts', 'WHERE finished_at IS NULL AND cursor', 'WHERE cursor'),
  ),
  statements(
    'a reconciliation with an end of its own claims freshness',
    patch(
      'src/storage/operator/request-pass.ts',
      'CASE WHEN ${until === null} AND ${leavesNoGap} THEN data_complete_as_of END',
      'data_complete_as_of',
    ),
  ),
  statements(
    'a pass skips pages that the database has lost',
    patch('src/storage/commit/pass-page.ts', ' AND cursor IS NOT DISTINCT FROM ${from}::text', ''),
  ),
  statements(
    'a page that brings something new is claimed to be the end',
    patch('src/storage/commit/commit-row.ts', ' AND NOT counts.brings_new', ''),
  ),
  statements(
    'freshness goes back',
    patch(
      'src/storage/commit/commit-page.ts',
      'data_complete_as_of = GREATEST(\n      CASE',
      'data_complete_as_of = COALESCE(\n      CASE',
    ),
  ),
  statements(
    'a rejected cursor is offered again',
    patch('src/storage/commit/position.ts', "later.reason = 'rejected' AND later.cursor = earlier.cursor\n", 'false\n'),
  ),
  statements(
    'a feed is complete before its history is read',
    patch(
      'src/storage/passes/passes.ts',
      'feed.end_reached_at IS NOT NULL AND NOT ${historyIsUnfinished(tables)}',
      'feed.end_reached_at IS NOT NULL',
    ),
  ),
];
