// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of the program's own templates
import { type Mutant, type Patch, patch } from './mutant.js';

const statements = (name: string, ...patches: readonly Patch[]): Mutant => ({ name, tests: 'statements', patches });

/** Bugs of the statements. */
export const STATEMENT_MUTANTS: readonly Mutant[] = [
  statements(
    'the cursor is not part of the fence',
    patch('src/storage/fence.ts', ' AND cursor IS NOT DISTINCT FROM ${from}::text', ''),
  ),
  statements(
    'a page of another epoch is committed',
    patch(
      'src/storage/fence.ts',
      'name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND cursor',
      'name = ${lease.feed} AND cursor',
    ),
  ),
  statements(
    'a held lease is taken away',
    patch('src/storage/lease.ts', 'OR feed.lease_expires_at < clock_timestamp())', 'OR true)'),
  ),
  statements(
    'the same revision is written again',
    patch(
      'src/storage/judged-entries.ts',
      'WHEN candidate.revision > known.revision THEN',
      'WHEN candidate.revision >= known.revision THEN',
    ),
    patch(
      'src/storage/written-rows.ts',
      'WHERE excluded.revision > run.revision',
      'WHERE excluded.revision >= run.revision',
    ),
  ),
  statements(
    'stored data is replaced within a revision',
    patch(
      'src/storage/union-of-sources.ts',
      'COALESCE(${a(name)}, ${unless(b(name))})',
      'COALESCE(${unless(b(name))}, ${a(name)})',
    ),
  ),
  statements(
    'a test mode that only the later source states is lost',
    patch('src/storage/union-of-sources.ts', "OR ${b('partner_test_mode')})`", 'OR false)`'),
  ),
  statements(
    'the position passes by a stored run that another writer has raised meanwhile',
    patch('src/storage/write-entries.ts', 'WHEN EXISTS (SELECT FROM overtaken) THEN', 'WHEN false THEN'),
  ),
  statements(
    'unknown fields go unnoticed',
    patch('src/interface-fields.ts', 'if (!known.has(name)) return true;', '{}'),
  ),
  statements(
    'entries are quarantined although the fence does not hold',
    patch('src/storage/quarantine.ts', 'USING (position)\n  WHERE EXISTS (SELECT FROM fence)', 'USING (position)'),
  ),
  statements(
    'a late statement finishes the next sweep',
    patch('src/storage/sweeps.ts', '${ID} = ${id}::numeric AND sweep.finished_at', 'sweep.finished_at'),
  ),
  statements(
    'a sweep skips pages that the database has lost',
    patch('src/storage/sweeps.ts', ' AND sweep.cursor IS NOT DISTINCT FROM ${from}::text', ''),
  ),
  statements(
    'freshness goes back',
    patch(
      'src/storage/fence.ts',
      'data_complete_as_of = GREATEST(data_complete_as_of, ${complete})',
      'data_complete_as_of = ${complete}',
    ),
  ),
  statements(
    'a rejected cursor is offered again',
    patch('src/storage/position.ts', "later.reason = 'rejected' AND later.cursor = noted.cursor\n            OR ", ''),
  ),
  statements(
    'a page of a backfill is committed from another position',
    patch('src/storage/backfills.ts', ' AND backfill.cursor IS NOT DISTINCT FROM ${from}::text', ''),
  ),
  statements(
    'a feed is complete while the history is read behind it',
    patch(
      'src/storage/backfills.ts',
      'feed.end_reached_at IS NOT NULL AND NOT ${historyIsBehind(tables)}',
      'feed.end_reached_at IS NOT NULL',
    ),
  ),
];
