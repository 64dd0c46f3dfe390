-- A history pass may end only if the feed has kept its cursor since before the last page of the pass was requested. A failover can take
-- the cursor away, and the feed may get one further ahead. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0006_cursor_origin.sql
-- works-from: 4

ALTER TABLE :"schema".feeds ADD COLUMN cursor_origin uuid NOT NULL DEFAULT gen_random_uuid();
COMMENT ON COLUMN :"schema".feeds.cursor_origin IS 'Identifies an unbroken series of cursors: it changes when the feed gets a cursor while it has none';

-- A backfill makes a feed that began at a time complete from an earlier time only if it has read everything that the feed read by time.
ALTER TABLE :"schema".feeds ADD COLUMN read_by_time_until timestamptz;
UPDATE :"schema".feeds SET read_by_time_until = clock_timestamp() WHERE start_since IS NOT NULL;
COMMENT ON COLUMN :"schema".feeds.read_by_time_until IS 'Delivery time up to which the feed was last read without a cursor, by a time, which may leave out runs; null: never';

-- Comments that were incomplete or hard to understand.
COMMENT ON COLUMN :"schema".passes.complete_as_of IS 'data_complete_as_of of the feed when the pass began, or earlier if a cache repeated a page; becomes reconciled_as_of when it finishes. null or -infinity: it leaves reconciled_as_of unchanged; -infinity: because a cache repeated a page that was too old';
COMMENT ON COLUMN :"schema".judged_runs.data IS 'Structured recognition result, every digit as sent; null: not loaded yet, missing or unusable, or the run failed';
COMMENT ON COLUMN :"schema".judged_runs.result_state IS 'complete; or pending: data or markdown has not been loaded yet or was given up, or the test mode is in doubt';
COMMENT ON COLUMN :"reporting".runs.data IS 'Structured recognition result, every digit as sent; null: not loaded yet, missing or unusable, or the run failed';
COMMENT ON COLUMN :"reporting".runs.result_state IS 'complete; or pending: data or markdown has not been loaded yet or was given up, or the test mode is in doubt';
COMMENT ON COLUMN :"reporting".run_history.data IS 'Structured recognition result, every digit as sent; null: not loaded yet, missing or unusable, or the run failed';
COMMENT ON COLUMN :"reporting".run_history.result_state IS 'complete; or pending: data or markdown has not been loaded yet or was given up, or the test mode is in doubt';
COMMENT ON COLUMN :"reporting".productive_runs.data IS 'Structured recognition result, every digit as sent';
COMMENT ON COLUMN :"reporting".productive_runs.result_state IS 'complete, because productive runs have their full result';
COMMENT ON COLUMN :"reporting".runs.test_mode_revision IS 'Highest revision that contains partnerTestMode, from which partner_test_mode is taken; null: no revision contains it, and partner_test_mode is false';
COMMENT ON VIEW :"reporting".quarantined IS 'Entries of the feed that could not be stored unchanged. The content is not shown here. Open entries are missing from runs';
COMMENT ON COLUMN :"reporting".quarantined.state IS 'open: not in runs; repaired: stored after a repair, this is the original; replayed: stored later; discarded: by an operator, because a newer revision was stored, or because the content was erased or expired';
COMMENT ON COLUMN :"reporting".quarantined.payload_bytes IS 'Size of the entry as received, bytes; 0: the content was erased or expired';
COMMENT ON COLUMN :"reporting".changes.change IS 'stored: for the first time; updated: changed since, and productive now; withdrawn: changed since, and not productive now (whether or not it was productive before); deleted: erased or expired';
COMMENT ON COLUMN :"reporting".productive_runs.status IS 'completed, because failed runs are not productive';
COMMENT ON COLUMN :"reporting".productive_runs.environment IS 'prod, because test runs are not productive';
COMMENT ON COLUMN :"reporting".productive_runs.partner_test_mode IS 'false, because runs of partners in test mode are not productive';
COMMENT ON COLUMN :"reporting".productive_runs.pending_since IS 'null, because productive runs have their full result';
COMMENT ON VIEW :"reporting".deleted_runs IS 'Deleted runs, which readers should delete too. When a later revision of an expired run is stored, the run is in runs instead';
COMMENT ON VIEW :"reporting".changes IS 'One row per run, deleted ones included: its last change. Remember the highest change_seq that you have processed. Read the rows with a higher one in ascending order, and replace your copy of each run with what the views show now';
COMMENT ON COLUMN :"reporting".sync_status.runs_with_earlier_test_mode IS 'Number of completed runs of this feed in the productive environment whose test mode comes from an earlier revision, because the stored revision does not state it';
COMMENT ON COLUMN :"reporting".sync_status.full_views IS 'Number of limits reached by typed views (counted for all feeds together): 500 columns for fields in a view, 50 views of a document type, 2,000 views of all types together. Further fields are only in other_fields or JSON columns, and further types have no view';
