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
    patch('src/storage/fence.ts', 'name = ${feed} AND lease_epoch = ${epoch} AND cursor', 'name = ${feed} AND cursor'),
  ),
  statements(
    'a result of another epoch is committed',
    patch(
      'src/storage/fence.ts',
      'WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} FOR NO KEY UPDATE',
      'WHERE name = ${lease.feed} FOR NO KEY UPDATE',
    ),
  ),
  statements(
    'a lease is extended whatever its epoch',
    patch(
      'src/storage/lease.ts',
      'WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch}\n    RETURNING name',
      'WHERE name = ${lease.feed}\n    RETURNING name',
    ),
  ),
  statements(
    'a held lease is taken away',
    patch('src/storage/lease.ts', 'OR feed.lease_expires_at < clock_timestamp())', 'OR true)'),
  ),
  statements(
    'what was found about an entry is noted of another page',
    patch('src/storage/received-entries.ts', 'before += items;', ''),
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
    'what is only filled counts as delivered for the first time',
    patch('src/storage/write-entries.ts', 'json_agg(scan_id) FROM stored', 'json_agg(scan_id) FROM written'),
  ),
  statements(
    'stored data is replaced within a revision',
    patch('src/storage/written-rows.ts', 'data = COALESCE(run.data, judged.data)', 'data = judged.data'),
  ),
  statements(
    'stored markdown is replaced within a revision',
    patch(
      'src/storage/written-rows.ts',
      'markdown = COALESCE(run.markdown, judged.markdown)',
      'markdown = judged.markdown',
    ),
  ),
  statements(
    'a truncated entry is preferred to a full one',
    patch(
      'src/storage/judged-entries.ts',
      'agrees DESC, pending IS NOT NULL, bare,',
      'agrees DESC, pending IS NULL, bare,',
    ),
  ),
  statements(
    'that a stored revision has no markdown is not remembered',
    patch(
      'src/storage/judged-entries.ts',
      '(candidate.markdown IS NOT NULL OR candidate.markdown_absent AND NOT known.markdown_absent)',
      'candidate.markdown IS NOT NULL',
    ),
  ),
  statements(
    'that there is no markdown is written again with every delivery',
    patch(
      'src/storage/judged-entries.ts',
      'candidate.markdown_absent AND NOT known.markdown_absent',
      'candidate.markdown_absent',
    ),
  ),
  statements(
    'rows are written although the fence does not hold',
    patch(
      'src/storage/written-rows.ts',
      'WHERE EXISTS (SELECT FROM fence) AND EXISTS (SELECT FROM judged',
      'WHERE EXISTS (SELECT FROM judged',
    ),
  ),
  statements(
    'a new scan that another writer stores meanwhile fails the commit',
    patch('src/storage/rivals.ts', 'if (!isEncounter(error)) throw error;', 'throw error;'),
  ),
  statements(
    'other writers are forgotten at once',
    patch('src/storage/rivals.ts', 'const REMEMBERED_MS = 3_600_000;', 'const REMEMBERED_MS = 0;'),
  ),
  statements(
    'the position passes by a stored run that another writer has raised meanwhile',
    patch('src/storage/write-entries.ts', 'WHEN EXISTS (SELECT FROM overtaken) THEN', 'WHEN false THEN'),
  ),
  statements(
    'what another writer came in between is not written again',
    patch('src/storage/write-entries.ts', 'if (once.overtaken.length === 0) {', 'if (tries === 0) {'),
  ),
  statements(
    'rows are written beside other writers although the position has moved',
    patch(
      'src/storage/commit-page.ts',
      'WITH fence AS MATERIALIZED (${fenceAtPosition(tables, commit)})',
      'WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, commit.lease)})',
    ),
  ),
  statements(
    'the position moves before what another writer came in between',
    patch(
      'src/storage/write-entries.ts',
      '{ ...entries, quarantine }, fence.held, how)',
      '{ ...entries, quarantine }, fence.moved ?? fence.held, how)',
    ),
  ),
  statements(
    'another writer that is met again is forgotten after the first hour',
    patch('src/storage/write-entries.ts', 'settings.rivals.met();', ''),
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
    'a late statement begins a sweep anew that is under way',
    patch('src/storage/sweeps.ts', 'WHERE sweep.finished_at IS NOT NULL\n', 'WHERE true\n'),
  ),
  statements(
    'a late statement finishes the next sweep',
    patch('src/storage/sweeps.ts', '${ID} = ${id}::numeric AND sweep.finished_at', 'sweep.finished_at'),
  ),
  statements(
    'pending results of a feed that is led are taken over',
    patch('src/storage/pending.ts', "GREATEST(${column('lease_expires_at')}, ", 'GREATEST('),
  ),
  statements(
    'pending results that were given up count as stranded',
    patch(
      'src/storage/pending.ts',
      "run.result_state = 'pending' AND ${IS_RETRIED} AND",
      "run.result_state = 'pending' AND",
    ),
  ),
  statements(
    'a rewind leaves what was read before as read',
    patch('src/storage/rewind.ts', 'read_up_to = target.read_up_to, ', ''),
  ),
  statements(
    'an entry seen again is open again',
    patch(
      'src/storage/quarantine.ts',
      "state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END",
      'state = excluded.state',
    ),
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
    'freshness grows younger while a statement waits',
    patch('src/storage/fence.ts', 'sql`transaction_timestamp() - ', 'sql`clock_timestamp() - '),
  ),
  statements(
    "a sweep begins before the feed's start",
    patch(
      'src/storage/sweeps.ts',
      'GREATEST(${since?.toISOString() ?? null}::timestamptz, start_since)',
      'COALESCE(${since?.toISOString() ?? null}::timestamptz, start_since)',
    ),
  ),
  statements(
    'an unfinished sweep says up to when it looked',
    patch('src/storage/sweeps.ts', '${finished ? reconciled : sql``}', '${reconciled}'),
  ),
  statements(
    'a sweep looked for what became complete after its end was reckoned',
    patch(
      'src/storage/sweeps.ts',
      'LEAST(data_complete_as_of, ${completeAsOf.toISOString()}::timestamptz)',
      'data_complete_as_of',
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
    'a backfill whose end has moved out is finished',
    patch('src/storage/backfills.ts', '\n    AND backfill.until = ${until.toISOString()}::timestamptz', ''),
  ),
  statements(
    'a page of a backfill is committed by another epoch',
    patch('src/storage/backfills.ts', ' AND feed.lease_epoch = ${lease.epoch} AND backfill.id', ' AND backfill.id'),
  ),
  statements(
    'a stopped backfill goes on',
    patch('src/storage/backfills.ts', 'AND backfill.finished_at IS NULL AND backfill.cursor', 'AND backfill.cursor'),
  ),
  statements(
    'the fence of a backfill locks nothing',
    patch('src/storage/backfills.ts', '::timestamptz\n  FOR NO KEY UPDATE`', '::timestamptz`'),
  ),
  statements(
    'every taking of a live feed begins its history anew',
    patch('src/storage/backfills.ts', 'FROM taken WHERE lease_epoch = 1 --', 'FROM taken --'),
  ),
  statements(
    'a history makes the data complete that widened filters left behind',
    patch('src/storage/backfills.ts', 'WHEN feed.widened_at >= backfilled.requested_at THEN feed.complete_from', ''),
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
