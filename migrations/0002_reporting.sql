-- The views for reports, in the schema `:"reporting"`, SCANFEED_DATABASE_SCHEMA with `_reporting`. They run with the
-- rights of their owner (security_invoker is off), so that a reader needs no rights on the tables. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0002_reporting.sql
-- works-from: 1

COMMENT ON SCHEMA :"reporting" IS 'Stable interface for reports: views of the data that scanfeed stores, and functions that parse German values';

-- With all columns of daily_statistics, which reads only this index.
CREATE INDEX runs_statistics ON :"schema".runs (completed_at)
    INCLUDE (environment, document_type_slug, partner_name, status, partner_test_mode, ocr_confidence, submitted_at);
CREATE INDEX runs_by_type ON :"schema".runs (document_type_slug, completed_at);
CREATE INDEX runs_failed ON :"schema".runs (completed_at) WHERE status = 'failed';
CREATE INDEX runs_without_data ON :"schema".runs (feed)
    WHERE status = 'completed' AND result_state = 'complete' AND data IS NULL;
CREATE INDEX runs_earlier_test_mode ON :"schema".runs (feed)
    WHERE status = 'completed' AND environment = 'prod' AND partner_test_mode AND test_mode_revision < revision;
CREATE INDEX run_history_superseded ON :"schema".run_history (superseded_at);
CREATE INDEX quarantine_scan ON :"schema".quarantine (scan_id, revision) WHERE state = 'open';

-- Without them the planner assumes that every completed_at is a separate day, week or month, and sorts whole documents.
CREATE STATISTICS :"schema".runs_days ON (date_trunc('day', completed_at)) FROM :"schema".runs;
CREATE STATISTICS :"schema".runs_weeks ON (date_trunc('week', completed_at)) FROM :"schema".runs;
CREATE STATISTICS :"schema".runs_months ON (date_trunc('month', completed_at)) FROM :"schema".runs;

CREATE TABLE :"schema".deleted_runs (
    scan_id            text COLLATE "C" PRIMARY KEY,
    revision           integer,
    test_mode_revision integer,
    reason             text COLLATE "C" NOT NULL CHECK (reason IN ('erased', 'expired')),
    deleted_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    change_seq         bigint NOT NULL,
    CHECK ((reason = 'erased') = (revision IS NULL))
);
CREATE INDEX deleted_runs_change_seq ON :"schema".deleted_runs (change_seq);
COMMENT ON TABLE :"schema".deleted_runs IS 'Deleted runs, which are not stored again when they are delivered again. No run is here and in runs';
COMMENT ON COLUMN :"schema".deleted_runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"schema".deleted_runs.revision IS 'This revision and lower ones are not stored again; null: no revision is';
COMMENT ON COLUMN :"schema".deleted_runs.test_mode_revision IS 'Revision that states that the partner is in test mode, for later revisions that do not state it; null: the run was not in test mode';
COMMENT ON COLUMN :"schema".deleted_runs.reason IS 'erased: by an operator (scanfeed erase); expired: older than the retention (SCANFEED_RETENTION_DAYS)';
COMMENT ON COLUMN :"schema".deleted_runs.deleted_at IS 'When it was deleted';
COMMENT ON COLUMN :"schema".deleted_runs.change_seq IS 'Number of the deletion, drawn from change_seq like those of runs';

CREATE TABLE :"schema".report_views (
    id                 integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name               text COLLATE "C" NOT NULL UNIQUE,
    document_type_slug text COLLATE "C" NOT NULL,
    arrays             jsonb NOT NULL,
    history_of         integer REFERENCES :"schema".report_views (id),
    stores_rows        boolean NOT NULL DEFAULT false,
    stored_up_to       bigint,
    built_as           text COLLATE "C",
    built_at           timestamptz
);
COMMENT ON TABLE :"schema".report_views IS 'The typed views of documents. Decisions are kept: columns are only added';
COMMENT ON COLUMN :"schema".report_views.id IS 'Number of the view';
COMMENT ON COLUMN :"schema".report_views.name IS 'Name of the view in the schema of the reports';
COMMENT ON COLUMN :"schema".report_views.document_type_slug IS 'Document type whose runs it shows';
COMMENT ON COLUMN :"schema".report_views.arrays IS 'Paths of the nested arrays whose elements are its rows, outermost first, each relative to the previous one; []: its rows are documents';
COMMENT ON COLUMN :"schema".report_views.history_of IS 'The view of documents whose superseded revisions it shows, with the same columns; null: it shows current revisions';
COMMENT ON COLUMN :"schema".report_views.stores_rows IS 'An operator wants its rows in a table (scanfeed views store)';
COMMENT ON COLUMN :"schema".report_views.stored_up_to IS 'Number of the change up to which the table has its rows; null: it has no table';
COMMENT ON COLUMN :"schema".report_views.built_as IS 'Fingerprint of the definition it was last built from; null: not built yet';
COMMENT ON COLUMN :"schema".report_views.built_at IS 'When it was last built';

CREATE TABLE :"schema".report_columns (
    view_id    integer NOT NULL REFERENCES :"schema".report_views (id),
    position   integer NOT NULL,
    name       text COLLATE "C" NOT NULL,
    path       text[] COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL CHECK (type IN ('number', 'boolean', 'date', 'timestamp', 'text', 'json')),
    PRIMARY KEY (view_id, position),
    UNIQUE (view_id, name)
);
COMMENT ON TABLE :"schema".report_columns IS 'Columns of the typed views, one per field of the documents and type';
COMMENT ON COLUMN :"schema".report_columns.view_id IS 'The view';
COMMENT ON COLUMN :"schema".report_columns.position IS 'Position of the column, from 1, after the columns that every typed view has';
COMMENT ON COLUMN :"schema".report_columns.name IS 'Name of the column';
COMMENT ON COLUMN :"schema".report_columns.path IS 'Keys that lead to the field, from the document or the element of the array';
COMMENT ON COLUMN :"schema".report_columns.type IS 'Type as which the value is read: number, boolean, date, timestamp, text, json';

CREATE TABLE :"schema".report_shapes (
    document_type_slug text COLLATE "C" PRIMARY KEY,
    counts             jsonb NOT NULL
);
COMMENT ON TABLE :"schema".report_shapes IS 'How often the fields with columns, and the arrays with views, were found with each shape: unfit_fields does not name columns of an exceptional shape where the value has another one';
COMMENT ON COLUMN :"schema".report_shapes.document_type_slug IS 'Document type';
COMMENT ON COLUMN :"schema".report_shapes.counts IS 'By the keys that lead to the value, as a JSON array: number of scalars, objects and arrays. Empty texts, objects and arrays are not counted; a run that has changed is counted again';

CREATE TABLE :"schema".report_progress (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    change_seq bigint NOT NULL DEFAULT 0
);
INSERT INTO :"schema".report_progress DEFAULT VALUES;
COMMENT ON TABLE :"schema".report_progress IS 'A single row: how far documents were searched for new fields';
COMMENT ON COLUMN :"schema".report_progress.only_row IS 'Keeps the table at one row';
COMMENT ON COLUMN :"schema".report_progress.change_seq IS 'The last change of runs that was searched';

-- The only definition of a productive run; productive_runs and the typed views read it.
CREATE VIEW :"schema".judged_runs WITH (security_invoker = false) AS
SELECT run.scan_id, run.revision, run.status, run.environment, run.document_type_slug, run.document_type_name,
    run.file_name, run.partner_name, run.partner_test_mode, run.ocr_confidence, run.data, run.failure_reason, run.error,
    run.submitted_at, run.completed_at, run.delivered_at, run.markdown, run.result_state, run.pending_since,
    run.pending_for, run.repaired, run.extra, run.feed, run.stored_by, run.first_synced_at, run.synced_at, run.change_seq,
    run.environment = 'prod' AND NOT run.partner_test_mode AND run.status = 'completed'
    AND run.result_state = 'complete' AND run.data IS NOT NULL
    -- Two conditions, and no join: PostgreSQL answers the first one for all runs at once, and the view keeps the order of an
    -- index. An unreadable revision may be a correction, so it counts as higher until an operator settles the entry.
    AND NOT (
        EXISTS (SELECT FROM :"schema".quarantine AS entry WHERE entry.state = 'open' AND entry.scan_id = run.scan_id)
        AND EXISTS (SELECT FROM :"schema".quarantine AS entry WHERE entry.state = 'open' AND entry.scan_id = run.scan_id
            AND COALESCE(entry.revision, 2147483647) > run.revision)
    ) AS productive
FROM :"schema".runs AS run;
COMMENT ON VIEW :"schema".judged_runs IS 'Runs, with a flag for those to be processed productively';
COMMENT ON COLUMN :"schema".judged_runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"schema".judged_runs.revision IS 'Highest revision stored, from 1; a correction or a retry raises it';
COMMENT ON COLUMN :"schema".judged_runs.status IS 'completed; or failed, for the reason in failure_reason';
COMMENT ON COLUMN :"schema".judged_runs.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"schema".judged_runs.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"schema".judged_runs.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"schema".judged_runs.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"schema".judged_runs.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"schema".judged_runs.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"schema".judged_runs.ocr_confidence IS 'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent';
COMMENT ON COLUMN :"schema".judged_runs.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending';
COMMENT ON COLUMN :"schema".judged_runs.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"schema".judged_runs.error IS 'Message of a failed run, in German';
COMMENT ON COLUMN :"schema".judged_runs.submitted_at IS 'When the document was submitted, service clock';
COMMENT ON COLUMN :"schema".judged_runs.completed_at IS 'When the run was completed, service clock';
COMMENT ON COLUMN :"schema".judged_runs.delivered_at IS 'When this revision was delivered in the feed, service clock';
COMMENT ON COLUMN :"schema".judged_runs.markdown IS 'Recognized markdown; null unless SCANFEED_MARKDOWN is on';
COMMENT ON COLUMN :"schema".judged_runs.result_state IS 'complete; or pending: data or markdown was too large for the feed and has not been loaded yet, or was given up';
COMMENT ON COLUMN :"schema".judged_runs.pending_since IS 'Time since which the result has been pending, clock of this database; null: it is complete';
COMMENT ON COLUMN :"schema".judged_runs.pending_for IS 'How long the result was pending before it was loaded; null: it was complete at once, or is pending';
COMMENT ON COLUMN :"schema".judged_runs.repaired IS 'true: a value was replaced so that the run could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"schema".judged_runs.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"schema".judged_runs.feed IS 'The feed that wrote this row last (SCANFEED_FEED)';
COMMENT ON COLUMN :"schema".judged_runs.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"schema".judged_runs.first_synced_at IS 'When the run was first stored, clock of this database';
COMMENT ON COLUMN :"schema".judged_runs.synced_at IS 'When this row was last written, clock of this database';
COMMENT ON COLUMN :"schema".judged_runs.change_seq IS 'Number of the last change that the views show of the run, in the order of commits; a reader can continue after the highest number it has read';
COMMENT ON COLUMN :"schema".judged_runs.productive IS 'true: completed, in the productive environment, not in test mode, with complete and usable data, and no higher revision in open quarantine';

CREATE VIEW :"reporting".runs WITH (security_invoker = false) AS
SELECT scan_id, revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
    partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at,
    markdown, result_state, pending_since, pending_for, repaired, extra, feed, stored_by, first_synced_at,
    synced_at, change_seq, test_mode_revision
FROM :"schema".runs;
COMMENT ON VIEW :"reporting".runs IS 'One row per run: its highest revision, in every environment and status. Source: the delivery feed';
COMMENT ON COLUMN :"reporting".runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"reporting".runs.revision IS 'Highest revision stored, from 1; a correction or a retry raises it';
COMMENT ON COLUMN :"reporting".runs.status IS 'completed; or failed, for the reason in failure_reason';
COMMENT ON COLUMN :"reporting".runs.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"reporting".runs.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"reporting".runs.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"reporting".runs.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"reporting".runs.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"reporting".runs.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"reporting".runs.ocr_confidence IS 'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent';
COMMENT ON COLUMN :"reporting".runs.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending';
COMMENT ON COLUMN :"reporting".runs.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"reporting".runs.error IS 'Message of a failed run, in German';
COMMENT ON COLUMN :"reporting".runs.submitted_at IS 'When the document was submitted, service clock';
COMMENT ON COLUMN :"reporting".runs.completed_at IS 'When the run was completed, service clock';
COMMENT ON COLUMN :"reporting".runs.delivered_at IS 'When this revision was delivered in the feed, service clock';
COMMENT ON COLUMN :"reporting".runs.markdown IS 'Recognized markdown; null unless SCANFEED_MARKDOWN is on';
COMMENT ON COLUMN :"reporting".runs.result_state IS 'complete; or pending: data or markdown was too large for the feed and has not been loaded yet, or was given up';
COMMENT ON COLUMN :"reporting".runs.pending_since IS 'Time since which the result has been pending, clock of this database; null: it is complete';
COMMENT ON COLUMN :"reporting".runs.pending_for IS 'How long the result was pending before it was loaded; null: it was complete at once, or is pending';
COMMENT ON COLUMN :"reporting".runs.repaired IS 'true: a value was replaced so that the run could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"reporting".runs.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"reporting".runs.feed IS 'The feed that wrote this row last (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".runs.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"reporting".runs.first_synced_at IS 'When the run was first stored, clock of this database';
COMMENT ON COLUMN :"reporting".runs.synced_at IS 'When this row was last written, clock of this database';
COMMENT ON COLUMN :"reporting".runs.change_seq IS 'Number of the last change that the views show of the run, in the order of commits; a reader can continue after the highest number it has read';
COMMENT ON COLUMN :"reporting".runs.test_mode_revision IS 'The highest revision that states the test mode of the partner, which is partner_test_mode; null: no revision states it, so it is false';

CREATE VIEW :"reporting".productive_runs WITH (security_invoker = false) AS
SELECT scan_id, revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
    partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at,
    markdown, result_state, pending_since, pending_for, repaired, extra, feed, stored_by, first_synced_at,
    synced_at, change_seq
FROM :"schema".judged_runs
WHERE productive;
COMMENT ON VIEW :"reporting".productive_runs IS 'Runs to be processed productively: completed, in the productive environment, partner not in test mode, with complete and usable data, and no higher revision in open quarantine';
COMMENT ON COLUMN :"reporting".productive_runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"reporting".productive_runs.revision IS 'Highest revision stored, from 1; a correction or a retry raises it';
COMMENT ON COLUMN :"reporting".productive_runs.status IS 'completed; or failed, for the reason in failure_reason';
COMMENT ON COLUMN :"reporting".productive_runs.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"reporting".productive_runs.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"reporting".productive_runs.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"reporting".productive_runs.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"reporting".productive_runs.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"reporting".productive_runs.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"reporting".productive_runs.ocr_confidence IS 'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent';
COMMENT ON COLUMN :"reporting".productive_runs.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending';
COMMENT ON COLUMN :"reporting".productive_runs.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"reporting".productive_runs.error IS 'Message of a failed run, in German';
COMMENT ON COLUMN :"reporting".productive_runs.submitted_at IS 'When the document was submitted, service clock';
COMMENT ON COLUMN :"reporting".productive_runs.completed_at IS 'When the run was completed, service clock';
COMMENT ON COLUMN :"reporting".productive_runs.delivered_at IS 'When this revision was delivered in the feed, service clock';
COMMENT ON COLUMN :"reporting".productive_runs.markdown IS 'Recognized markdown; null unless SCANFEED_MARKDOWN is on';
COMMENT ON COLUMN :"reporting".productive_runs.result_state IS 'complete; or pending: data or markdown was too large for the feed and has not been loaded yet, or was given up';
COMMENT ON COLUMN :"reporting".productive_runs.pending_since IS 'Time since which the result has been pending, clock of this database; null: it is complete';
COMMENT ON COLUMN :"reporting".productive_runs.pending_for IS 'How long the result was pending before it was loaded; null: it was complete at once, or is pending';
COMMENT ON COLUMN :"reporting".productive_runs.repaired IS 'true: a value was replaced so that the run could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"reporting".productive_runs.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"reporting".productive_runs.feed IS 'The feed that wrote this row last (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".productive_runs.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"reporting".productive_runs.first_synced_at IS 'When the run was first stored, clock of this database';
COMMENT ON COLUMN :"reporting".productive_runs.synced_at IS 'When this row was last written, clock of this database';
COMMENT ON COLUMN :"reporting".productive_runs.change_seq IS 'Number of the last change that the views show of the run, in the order of commits; a reader can continue after the highest number it has read';

CREATE VIEW :"reporting".failed_runs WITH (security_invoker = false) AS
SELECT scan_id, revision, environment, document_type_slug, document_type_name, file_name, partner_name,
    partner_test_mode, failure_reason, error, submitted_at, completed_at, delivered_at, repaired, extra, feed,
    stored_by, first_synced_at, synced_at, change_seq
FROM :"schema".runs
WHERE status = 'failed';
COMMENT ON VIEW :"reporting".failed_runs IS 'Failed runs of every environment';
COMMENT ON COLUMN :"reporting".failed_runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"reporting".failed_runs.revision IS 'Highest revision stored, from 1; a correction or a retry raises it';
COMMENT ON COLUMN :"reporting".failed_runs.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"reporting".failed_runs.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"reporting".failed_runs.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"reporting".failed_runs.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"reporting".failed_runs.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"reporting".failed_runs.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"reporting".failed_runs.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"reporting".failed_runs.error IS 'Message of a failed run, in German';
COMMENT ON COLUMN :"reporting".failed_runs.submitted_at IS 'When the document was submitted, service clock';
COMMENT ON COLUMN :"reporting".failed_runs.completed_at IS 'When the run was completed, service clock';
COMMENT ON COLUMN :"reporting".failed_runs.delivered_at IS 'When this revision was delivered in the feed, service clock';
COMMENT ON COLUMN :"reporting".failed_runs.repaired IS 'true: a value was replaced so that the run could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"reporting".failed_runs.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"reporting".failed_runs.feed IS 'The feed that wrote this row last (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".failed_runs.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"reporting".failed_runs.first_synced_at IS 'When the run was first stored, clock of this database';
COMMENT ON COLUMN :"reporting".failed_runs.synced_at IS 'When this row was last written, clock of this database';
COMMENT ON COLUMN :"reporting".failed_runs.change_seq IS 'Number of the last change that the views show of the run, in the order of commits; a reader can continue after the highest number it has read';

CREATE VIEW :"reporting".run_history WITH (security_invoker = false) AS
SELECT superseded_at, scan_id, revision, status, environment, document_type_slug, document_type_name, file_name,
    partner_name, partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at,
    delivered_at, markdown, result_state, pending_since, pending_for, repaired, extra, feed, stored_by,
    first_synced_at, synced_at, change_seq
FROM :"schema".run_history;
COMMENT ON VIEW :"reporting".run_history IS 'Superseded revisions, each as it was: what was reported before a correction. Kept while SCANFEED_HISTORY is on';
COMMENT ON COLUMN :"reporting".run_history.superseded_at IS 'When the higher revision was stored, clock of this database';
COMMENT ON COLUMN :"reporting".run_history.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"reporting".run_history.revision IS 'The revision that was replaced';
COMMENT ON COLUMN :"reporting".run_history.status IS 'completed; or failed, for the reason in failure_reason';
COMMENT ON COLUMN :"reporting".run_history.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"reporting".run_history.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"reporting".run_history.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"reporting".run_history.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"reporting".run_history.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"reporting".run_history.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"reporting".run_history.ocr_confidence IS 'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent';
COMMENT ON COLUMN :"reporting".run_history.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending';
COMMENT ON COLUMN :"reporting".run_history.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"reporting".run_history.error IS 'Message of a failed run, in German';
COMMENT ON COLUMN :"reporting".run_history.submitted_at IS 'When the document was submitted, service clock';
COMMENT ON COLUMN :"reporting".run_history.completed_at IS 'When the run was completed, service clock';
COMMENT ON COLUMN :"reporting".run_history.delivered_at IS 'When this revision was delivered in the feed, service clock';
COMMENT ON COLUMN :"reporting".run_history.markdown IS 'Recognized markdown; null unless SCANFEED_MARKDOWN is on';
COMMENT ON COLUMN :"reporting".run_history.result_state IS 'complete; or pending: data or markdown was too large for the feed and has not been loaded yet, or was given up';
COMMENT ON COLUMN :"reporting".run_history.pending_since IS 'Time since which the result has been pending, clock of this database; null: it is complete';
COMMENT ON COLUMN :"reporting".run_history.pending_for IS 'How long the result was pending before it was loaded; null: it was complete at once, or is pending';
COMMENT ON COLUMN :"reporting".run_history.repaired IS 'true: a value was replaced so that the run could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"reporting".run_history.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"reporting".run_history.feed IS 'The feed that wrote this row last (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".run_history.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"reporting".run_history.first_synced_at IS 'When the run was first stored, clock of this database';
COMMENT ON COLUMN :"reporting".run_history.synced_at IS 'When this row was last written, clock of this database';
COMMENT ON COLUMN :"reporting".run_history.change_seq IS 'Number of the last change of this revision, before it was replaced';

CREATE VIEW :"reporting".quarantined WITH (security_invoker = false) AS
SELECT id, feed, scan_id, revision, state, reason, detail, octet_length(payload) AS payload_bytes,
    first_seen_at, last_seen_at, times_seen
FROM :"schema".quarantine;
COMMENT ON VIEW :"reporting".quarantined IS 'Entries of the feed that could not be stored unchanged, without their content. Open entries are missing from runs';
COMMENT ON COLUMN :"reporting".quarantined.id IS 'Number to name the entry by (scanfeed quarantine show)';
COMMENT ON COLUMN :"reporting".quarantined.feed IS 'The feed that delivered it (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".quarantined.scan_id IS 'Identifier of the run; null: not usable';
COMMENT ON COLUMN :"reporting".quarantined.revision IS 'Its revision; null: not usable';
COMMENT ON COLUMN :"reporting".quarantined.state IS 'open: not in runs; repaired: stored after a repair, this is the original; replayed: stored later; discarded by an operator, or because a newer revision was stored';
COMMENT ON COLUMN :"reporting".quarantined.reason IS 'Reason, as one word';
COMMENT ON COLUMN :"reporting".quarantined.detail IS 'Reason, as a sentence; names fields, never values';
COMMENT ON COLUMN :"reporting".quarantined.payload_bytes IS 'Size of the entry as received, bytes; 0: the content is deleted, older than the retention';
COMMENT ON COLUMN :"reporting".quarantined.first_seen_at IS 'When it was first delivered, clock of this database';
COMMENT ON COLUMN :"reporting".quarantined.last_seen_at IS 'When it was last delivered, clock of this database';
COMMENT ON COLUMN :"reporting".quarantined.times_seen IS 'Number of deliveries';

CREATE VIEW :"reporting".deleted_runs WITH (security_invoker = false) AS
SELECT scan_id, reason, deleted_at, change_seq
FROM :"schema".deleted_runs;
COMMENT ON VIEW :"reporting".deleted_runs IS 'Deleted runs, which readers should delete too. When a later revision is stored, the run is in runs instead';
COMMENT ON COLUMN :"reporting".deleted_runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"reporting".deleted_runs.reason IS 'erased: deleted by an operator, no revision is stored again; expired: older than the retention (SCANFEED_RETENTION_DAYS), a later revision is stored again';
COMMENT ON COLUMN :"reporting".deleted_runs.deleted_at IS 'When it was deleted, clock of this database';
COMMENT ON COLUMN :"reporting".deleted_runs.change_seq IS 'Number of the deletion, from the same sequence as runs.change_seq';

CREATE VIEW :"reporting".changes WITH (security_invoker = false) AS
SELECT change_seq, scan_id,
    CASE WHEN synced_at = first_synced_at THEN 'stored' WHEN productive THEN 'updated' ELSE 'withdrawn' END AS change,
    document_type_slug, productive, synced_at AS changed_at
FROM :"schema".judged_runs
UNION ALL
SELECT change_seq, scan_id, 'deleted', NULL, false, deleted_at
FROM :"schema".deleted_runs; -- no condition here, or PostgreSQL would not read both tables in order
COMMENT ON VIEW :"reporting".changes IS 'One row per run, deleted ones included: its last change. Read the rows after the highest number you have read, in order, and replace your copy of each run by its present rows in the views';
COMMENT ON COLUMN :"reporting".changes.change_seq IS 'Number of the change, in the order of commits; no lower number becomes visible later';
COMMENT ON COLUMN :"reporting".changes.scan_id IS 'Identifier of the run';
COMMENT ON COLUMN :"reporting".changes.change IS 'stored: for the first time; updated: changed since, and productive; withdrawn: changed since, and not productive now; deleted: erased or expired';
COMMENT ON COLUMN :"reporting".changes.document_type_slug IS 'Slug of the document type; an earlier revision may have had another one; null: none, or the run is deleted';
COMMENT ON COLUMN :"reporting".changes.productive IS 'Whether the run is to be processed productively, as in productive_runs; false if it is deleted';
COMMENT ON COLUMN :"reporting".changes.changed_at IS 'When it changed, clock of this database';

CREATE TABLE :"schema".report_settings (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    time_zone text COLLATE "C" NOT NULL
);
COMMENT ON TABLE :"schema".report_settings IS 'A single row: settings that the views for reports read';
COMMENT ON COLUMN :"schema".report_settings.only_row IS 'Keeps the table at one row';
COMMENT ON COLUMN :"schema".report_settings.time_zone IS 'Time zone of the days of daily_statistics (SCANFEED_REPORTING_TIME_ZONE)';

-- In some zones the hour after midnight occurs twice when the clocks change; the day begins with the first one.
CREATE FUNCTION :"schema".start_of_day(day date, zone text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN ((day::timestamp AT TIME ZONE zone - interval '1 hour') AT TIME ZONE zone)::date = day
        THEN day::timestamp AT TIME ZONE zone - interval '1 hour' ELSE day::timestamp AT TIME ZONE zone END;
COMMENT ON FUNCTION :"schema".start_of_day(date, text) IS 'The first instant of a day in a time zone';

-- Each day with runs is found by one search of the index, and its runs by another, so that one index serves any time zone.
CREATE VIEW :"reporting".daily_statistics WITH (security_invoker = false) AS
SELECT days.day, statistics.*
FROM (
    WITH RECURSIVE found (zone, day) AS (
        SELECT time_zone, ((SELECT min(completed_at) FROM :"schema".runs) AT TIME ZONE time_zone)::date
        FROM :"schema".report_settings
        UNION
        -- At least the next day: in some zones the hour before midnight occurs twice, the second time after midnight.
        SELECT zone, CASE WHEN next.completed_at IS NOT NULL THEN
            GREATEST((next.completed_at AT TIME ZONE zone)::date, day + 1) END
        FROM found CROSS JOIN LATERAL (
            SELECT min(completed_at) AS completed_at FROM :"schema".runs
            WHERE completed_at >= :"schema".start_of_day(day + 1, zone)
        ) AS next
        WHERE day IS NOT NULL
    )
    SELECT day, :"schema".start_of_day(day, zone) AS begins, :"schema".start_of_day(day + 1, zone) AS ends FROM found
) AS days CROSS JOIN LATERAL (
    SELECT environment, document_type_slug, partner_name,
        count(*) FILTER (WHERE status = 'completed') AS completed,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        avg(ocr_confidence) AS ocr_confidence_mean,
        percentile_cont(0.05) WITHIN GROUP (ORDER BY ocr_confidence) AS ocr_confidence_p05,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - submitted_at)::double precision)
            AS turnaround_p50_seconds,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - submitted_at)::double precision)
            AS turnaround_p95_seconds
    FROM :"schema".runs
    WHERE completed_at >= begins AND completed_at < ends AND NOT partner_test_mode
    -- The column with the most values first: sorts faster.
    GROUP BY partner_name, document_type_slug, environment
) AS statistics
UNION ALL
SELECT NULL, environment, document_type_slug, partner_name,
    count(*) FILTER (WHERE status = 'completed') AS completed,
    count(*) FILTER (WHERE status = 'failed') AS failed,
    avg(ocr_confidence) AS ocr_confidence_mean,
    percentile_cont(0.05) WITHIN GROUP (ORDER BY ocr_confidence) AS ocr_confidence_p05,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - submitted_at)::double precision)
        AS turnaround_p50_seconds,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - submitted_at)::double precision)
        AS turnaround_p95_seconds
FROM :"schema".runs
WHERE completed_at IS NULL AND NOT partner_test_mode
GROUP BY partner_name, document_type_slug, environment;
COMMENT ON VIEW :"reporting".daily_statistics IS 'Statistics of current revisions per day, environment, document type and partner. Test runs have rows of their own (environment test), to be left out of figures. Runs of partners in test mode are not counted';
COMMENT ON COLUMN :"reporting".daily_statistics.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"reporting".daily_statistics.document_type_slug IS 'Slug of the document type; null: none';
COMMENT ON COLUMN :"reporting".daily_statistics.partner_name IS 'Recognized sender; null: none';
COMMENT ON COLUMN :"reporting".daily_statistics.completed IS 'Number of completed runs';
COMMENT ON COLUMN :"reporting".daily_statistics.failed IS 'Number of failed runs';
COMMENT ON COLUMN :"reporting".daily_statistics.ocr_confidence_mean IS 'Mean recognition confidence of the runs that have one; null: no run has one';
COMMENT ON COLUMN :"reporting".daily_statistics.ocr_confidence_p05 IS '5th percentile of the recognition confidence (interpolated); null: no run has one';
COMMENT ON COLUMN :"reporting".daily_statistics.turnaround_p50_seconds IS 'Median time from submission to completion, seconds; null: unknown';
COMMENT ON COLUMN :"reporting".daily_statistics.turnaround_p95_seconds IS '95th percentile of the time from submission to completion, seconds (interpolated); null: unknown';

-- Runs as its owner, since only the owner of a view may comment on it.
CREATE FUNCTION :"schema".set_reporting_time_zone(zone text) RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = :"schema", :"reporting", pg_temp AS $$
BEGIN
    PERFORM clock_timestamp() AT TIME ZONE zone; -- fails if the server does not know it
    INSERT INTO report_settings AS settings (time_zone) VALUES (zone)
        ON CONFLICT (only_row) DO UPDATE SET time_zone = excluded.time_zone
        WHERE settings.time_zone <> excluded.time_zone;
    IF FOUND THEN
        EXECUTE format('COMMENT ON COLUMN daily_statistics.day IS %L',
            format('Day, in the time zone %s, on which the runs were completed (completed_at); null: unknown', zone));
    END IF;
END $$;
COMMENT ON FUNCTION :"schema".set_reporting_time_zone(text) IS 'Sets the time zone of the days of daily_statistics, and names it in the comment of that column';
REVOKE EXECUTE ON FUNCTION :"schema".set_reporting_time_zone(text) FROM PUBLIC;
SELECT :"schema".set_reporting_time_zone('UTC');

CREATE VIEW :"reporting".sync_status WITH (security_invoker = false) AS
SELECT name AS feed, data_complete_as_of,
    CASE WHEN data_complete_as_of IS NULL THEN 'Infinity'
        ELSE GREATEST(extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision, 0) END AS lag_seconds,
    NULLIF(complete_from, '-infinity') AS complete_from, reconciled_as_of,
    (SELECT count(*) FROM :"schema".runs AS run
        WHERE run.feed = feed.name AND run.result_state = 'pending' AND run.next_try_at < 'infinity')
        AS pending_results,
    (SELECT count(*) FROM :"schema".quarantine AS entry WHERE entry.feed = feed.name AND entry.state = 'open')
        AS quarantined,
    -- A live feed is not complete before its history is read.
    end_reached_at IS NOT NULL AND NOT EXISTS (SELECT FROM :"schema".passes AS history
        WHERE history.feed = feed.name AND history.kind = 'history' AND history.finished_at IS NULL)
        AS initial_sync_complete, last_poll_at, last_commit_at,
    (SELECT count(*) FROM :"schema".runs AS run
        WHERE run.feed = feed.name AND run.status = 'completed' AND run.result_state = 'complete' AND run.data IS NULL)
        AS runs_without_data,
    (SELECT count(*) FROM :"schema".runs AS run
        WHERE run.feed = feed.name AND run.status = 'completed' AND run.environment = 'prod'
            AND run.partner_test_mode AND run.test_mode_revision < run.revision)
        AS runs_with_earlier_test_mode,
    (SELECT count(*) FROM (
        SELECT 1 FROM :"schema".report_columns GROUP BY view_id HAVING count(*) >= 500
        UNION ALL SELECT 1 FROM :"schema".report_views GROUP BY document_type_slug HAVING count(*) >= 50
        UNION ALL SELECT 1 FROM :"schema".report_views HAVING count(*) >= 2000) AS reached)
        AS full_views
FROM :"schema".feeds AS feed;
COMMENT ON VIEW :"reporting".sync_status IS 'One row per feed: how fresh and how complete the data is';
COMMENT ON COLUMN :"reporting".sync_status.feed IS 'Name of the feed (SCANFEED_FEED)';
COMMENT ON COLUMN :"reporting".sync_status.data_complete_as_of IS 'Every entry that the feed listed from complete_from up to this time is in runs, possibly pending, or in quarantine; null while unknown. Clock of this database';
COMMENT ON COLUMN :"reporting".sync_status.lag_seconds IS 'Current time minus data_complete_as_of, seconds, like scanfeed_lag_seconds; Infinity while unknown';
COMMENT ON COLUMN :"reporting".sync_status.complete_from IS 'Earliest delivery time from which the data is complete; null: the beginning of the history';
COMMENT ON COLUMN :"reporting".sync_status.reconciled_as_of IS 'Time up to which passes have searched for runs that the cursor skipped; null: never';
COMMENT ON COLUMN :"reporting".sync_status.pending_results IS 'Number of runs whose full result has not been loaded yet, like scanfeed_pending_results';
COMMENT ON COLUMN :"reporting".sync_status.quarantined IS 'Number of entries in open quarantine, like scanfeed_quarantined_entries';
COMMENT ON COLUMN :"reporting".sync_status.initial_sync_complete IS 'true once the end of the feed was reached from its start';
COMMENT ON COLUMN :"reporting".sync_status.last_poll_at IS 'When the last successful poll of the feed was sent; null: never';
COMMENT ON COLUMN :"reporting".sync_status.last_commit_at IS 'When the last page was committed; null: never';
COMMENT ON COLUMN :"reporting".sync_status.runs_without_data IS 'Number of completed runs of this feed whose data is missing, null or not an object; they are never productive';
COMMENT ON COLUMN :"reporting".sync_status.runs_with_earlier_test_mode IS 'Number of completed runs of this feed in the productive environment that are in test mode only by an earlier revision, because the stored revision does not state it';
COMMENT ON COLUMN :"reporting".sync_status.full_views IS 'Number of limits that typed views have reached, of all feeds: 500 fields of a view, 50 views of a document type, 2,000 views of all types together. Further fields are only in other_fields or JSON columns, and further types have no view';

CREATE VIEW :"reporting".columns WITH (security_invoker = false) AS
SELECT class.relname::text AS view_name, attribute.attname::text AS column_name, attribute.attnum::integer AS position,
    -- Without the quotes of sessions with quote_all_identifiers.
    replace(format_type(attribute.atttypid, attribute.atttypmod), '"', '') AS data_type, view.document_type_slug,
    CASE WHEN field.path IS NOT NULL THEN '$'
        || COALESCE((SELECT string_agg((SELECT string_agg('.' || key::text, '' ORDER BY place)
                FROM jsonb_array_elements(keys) WITH ORDINALITY AS step (key, place)) || '[*]', '' ORDER BY level)
            FROM jsonb_array_elements(view.arrays) WITH ORDINALITY AS outer_array (keys, level)), '')
        || (SELECT string_agg('.' || to_json(key)::text, '' ORDER BY place)
            FROM unnest(field.path) WITH ORDINALITY AS step (key, place)) END AS json_path,
    col_description(class.oid, attribute.attnum) AS description
FROM pg_class AS class
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0
LEFT JOIN :"schema".report_views AS view ON view.name = class.relname
LEFT JOIN :"schema".report_columns AS field ON field.view_id = COALESCE(view.history_of, view.id)
    AND field.name = attribute.attname
-- The schema of the reports, found by a type in it, whatever its name is.
WHERE class.relnamespace = (SELECT typnamespace FROM pg_type WHERE oid = pg_typeof(NULL:::"reporting".runs))
    AND class.relkind = 'v';
COMMENT ON VIEW :"reporting".columns IS 'One row per column of each view of this schema';
COMMENT ON COLUMN :"reporting".columns.view_name IS 'Name of the view';
COMMENT ON COLUMN :"reporting".columns.column_name IS 'Name of the column';
COMMENT ON COLUMN :"reporting".columns.position IS 'Position of the column in the view, from 1';
COMMENT ON COLUMN :"reporting".columns.data_type IS 'Type of the column in SQL';
COMMENT ON COLUMN :"reporting".columns.document_type_slug IS 'Document type of a typed view; null: the view is not of one type';
COMMENT ON COLUMN :"reporting".columns.json_path IS 'Path of the field in data, for jsonb_path_query(data, json_path::jsonpath); null: the column is not a field of the documents';
COMMENT ON COLUMN :"reporting".columns.description IS 'Meaning of the column';

-- Parse values as documents write them. Null if the text is not such a value: one document must not fail a report. No pattern
-- has a class such as \d or \s, which some databases extend to the digits and blanks of other scripts. Nor is there a backslash
-- in an ordinary literal, which means something else with standard_conforming_strings = off, or a name that is looked up in the
-- search path of the reader.
CREATE FUNCTION :"reporting".german_number(value text) RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plain text := translate(left(value, 101), E'\n\r\f\u000b\u00a0\u202f', E'\t\t\t\t  '); -- spaces group digits, tabs do not
BEGIN
    IF length(value) > 100 OR value ~ '[-−].*[-−]'
        OR plain ~ E'^[ \t]*[-+−]?[ \t]*[0-9]+[.][0-9]{3}[ \t]*$' -- 1234, or a number that was sent with a point
        OR plain !~ (
        E'^[ \t]*(EUR|€)?[ \t]*[-+−]?[ \t]*(EUR|€)?[ \t]*'
        '([1-9][0-9]{0,2}([.][0-9]{3})+|[1-9][0-9]{0,2}( [0-9]{3})+|[0-9]+)(,[0-9]+)?'
        '[ \t]*(EUR|€)?[ \t]*-?[ \t]*(EUR|€)?[ \t]*$') THEN
        RETURN NULL;
    END IF;
    RETURN (CASE WHEN value ~ '[-−]' THEN '-' ELSE '' END
        || replace(regexp_replace(value, '[^0-9,]', '', 'g'), ',', '.'))::numeric;
END $$;
COMMENT ON FUNCTION :"reporting".german_number(text) IS 'Parses a number in German notation: 1.234,56, 1 234,56, -5, 7,50 €. A point groups digits, a comma starts the fraction. Null if the text is not a number, or is ambiguous like 1.234';

CREATE FUNCTION :"reporting".german_date(value text) RETURNS date
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plain text := btrim(translate(lower(left(value, 41) COLLATE "C"), E'Ä\t\n\r\f\u000b\u00a0\u202f', 'ä       '), ' ');
    part text[];
    years integer;
    months integer;
    days integer;
BEGIN
    IF length(value) > 40 THEN
        RETURN NULL;
    END IF;
    part := regexp_match(plain, '^([0-9]{1,2})[.] *([0-9]{1,2})[.] *([0-9]{4}|[0-9]{2})$');
    IF part IS NOT NULL THEN
        months := part[2];
    ELSE
        part := regexp_match(plain,
            '^([0-9]{1,2})[.]? *(jan(?:uar)?|jän(?:ner)?|feb(?:ruar|er)?|märz?|maerz|mrz|apr(?:il)?|mai|juni?|juli?|aug(?:ust)?|'
            'sep(?:t|tember)?|okt(?:ober)?|nov(?:ember)?|dez(?:ember)?)[.]? *([0-9]{4})$');
        IF part IS NULL THEN
            part := regexp_match(plain, '^([0-9]{4})-([0-9]{2})-([0-9]{2})$');
            IF part IS NULL THEN
                RETURN NULL;
            END IF;
            part := ARRAY[part[3], part[2], part[1]];
            months := part[2];
        ELSE
            months := CASE left(part[2], 3) WHEN 'jän' THEN 1 WHEN 'mrz' THEN 3 WHEN 'mae' THEN 3
                ELSE (strpos('jan feb mär apr mai jun jul aug sep okt nov dez', left(part[2], 3)) + 3) / 4 END;
        END IF;
    END IF;
    days := part[1];
    years := part[3];
    IF length(part[3]) = 2 THEN -- like PostgreSQL for two-digit years
        years := years + CASE WHEN years < 70 THEN 2000 ELSE 1900 END;
    END IF;
    IF years = 0 OR months NOT BETWEEN 1 AND 12 OR days NOT BETWEEN 1 AND 31
        OR extract(month FROM make_date(years, months, 1) + (days - 1)) <> months THEN
        RETURN NULL;
    END IF;
    RETURN make_date(years, months, days);
END $$;
COMMENT ON FUNCTION :"reporting".german_date(text) IS 'Parses a date in German notation: 31.12.2026, 1.2.26 (1970 to 2069), 31. Dezember 2026, 31. Dez. 2026; also 2026-12-31. Null if the text is not a date';

-- The columns of typed views call these functions. A value of another type is null, never an error: a CASE precedes every
-- cast, and a text that matches the pattern of a date is a valid date.
CREATE FUNCTION :"schema".as_number(value jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END;
COMMENT ON FUNCTION :"schema".as_number(jsonb) IS 'A JSON number, every digit as sent; else null';
CREATE FUNCTION :"schema".as_boolean(value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'boolean' THEN value::boolean END;
COMMENT ON FUNCTION :"schema".as_boolean(jsonb) IS 'A JSON boolean; else null';
CREATE FUNCTION :"schema".as_text(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) IN ('string', 'number', 'boolean') THEN value #>> '{}' END;
COMMENT ON FUNCTION :"schema".as_text(jsonb) IS 'A JSON string, number or boolean as text; else null';
CREATE FUNCTION :"schema".as_json(value jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN NULLIF(value, 'null'::jsonb);
COMMENT ON FUNCTION :"schema".as_json(jsonb) IS 'Any JSON value except null';

-- The first pattern decides most dates, at a quarter of the cost.
CREATE FUNCTION :"schema".is_iso_date(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN length(value) = 10 AND (
        value ~ '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])$'
        OR value ~ '^[0-9]{4}-(?:(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)$'
        OR value ~ '^(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][48]|[13579][26]|[2468]0)00)-02-29$'
    ) AND left(value, 4) <> '0000';
COMMENT ON FUNCTION :"schema".is_iso_date(text) IS 'Whether a text is a valid date as YYYY-MM-DD';
CREATE FUNCTION :"schema".is_iso_time(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN length(value) <= 40 AND substr(value, 11) ~
        '^T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)$'
        AND value ~ '^([1-8]|9000)' AND :"schema".is_iso_date(left(value, 10));
COMMENT ON FUNCTION :"schema".is_iso_time(text) IS 'Whether a text is a time in ISO 8601 with a time zone, in the years 1000 to 9000: some clients fail on the years before 1 and after 9999, which a time of the years 1 and 9999 can be in another zone';
CREATE FUNCTION :"schema".as_date(value jsonb) RETURNS date LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'string' AND :"schema".is_iso_date(value #>> '{}') THEN
        (value #>> '{}')::date
    END;
COMMENT ON FUNCTION :"schema".as_date(jsonb) IS 'A JSON string that is a valid date (YYYY-MM-DD); else null';
CREATE FUNCTION :"schema".as_timestamp(value jsonb) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'string' AND :"schema".is_iso_time(value #>> '{}') THEN
        replace(value #>> '{}', ',', '.')::timestamptz
    END;
COMMENT ON FUNCTION :"schema".as_timestamp(jsonb) IS 'A JSON string that is a time in ISO 8601 with a time zone, in the years 1000 to 9000; else null';

-- One call per row, in PL/pgSQL: PostgreSQL would otherwise inline an expression per field, which takes longer to plan than a
-- lookup by an index takes. It runs as its owner, since the reader has no rights on this schema.
CREATE FUNCTION :"schema".unfit_fields(names text[], types text[], field_values jsonb[]) RETURNS text[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = :"schema", pg_temp AS $$
DECLARE
    unfit text[];
    value jsonb;
BEGIN
    FOR place IN 1..cardinality(names) LOOP
        value := field_values[place];
        CONTINUE WHEN value IS NULL OR value IN ('null', '""', '[]', '{}'); -- nothing is lost
        IF (CASE types[place]
            WHEN 'text' THEN as_text(value) IS NULL
            WHEN 'number' THEN as_number(value) IS NULL
            WHEN 'date' THEN as_date(value) IS NULL
            WHEN 'boolean' THEN as_boolean(value) IS NULL
            WHEN 'timestamp' THEN as_timestamp(value) IS NULL
            WHEN 'object' THEN jsonb_typeof(value) <> 'object'
            WHEN 'array' THEN jsonb_typeof(value) NOT IN ('array', 'object')
        END) THEN
            unfit := unfit || string_to_array(names[place], ' ');
        END IF;
    END LOOP;
    RETURN unfit;
END $$;
COMMENT ON FUNCTION :"schema".unfit_fields(text[], text[], jsonb[]) IS 'The names of the columns that are null, and of the views that have no rows, although the document has a value of another type or shape. types: as in report_columns; or object, for a value with several columns and views, whose names are separated by a space; or array, for one with a view. Null: none';

-- Recursive, so it needs a search path; it runs as its owner, since the reader has no rights on this schema.
CREATE FUNCTION :"schema".other_fields(document jsonb, known jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SECURITY DEFINER SET search_path = :"schema", pg_temp AS $$
BEGIN
    IF jsonb_typeof(document) <> 'object' THEN
        RETURN document; -- an element of an array
    END IF;
    RETURN (
        SELECT NULLIF(jsonb_object_agg(key, value), '{}')
        FROM (
            SELECT key, CASE
                WHEN jsonb_typeof(value) = 'object' AND known->key ? 'fields' THEN other_fields(value, known->key->'fields')
                WHEN COALESCE(known->key->'kinds' ? jsonb_typeof(value), false) THEN NULL
                WHEN value NOT IN ('null', '{}', '[]') THEN value
            END AS value
            FROM jsonb_each(document)
        ) AS field
        WHERE value IS NOT NULL
    );
END $$;
COMMENT ON FUNCTION :"schema".other_fields(jsonb, jsonb) IS 'The part of a document, or of an element of an array, without columns. known lists, by key, the types of values that have a column and the fields of an object. Null: none';

-- For readers of the views that call them. The default of PostgreSQL, unless default privileges were revoked.
GRANT EXECUTE ON FUNCTION :"schema".start_of_day(date, text), :"schema".as_number(jsonb),
    :"schema".as_boolean(jsonb), :"schema".as_text(jsonb), :"schema".as_json(jsonb), :"schema".is_iso_date(text),
    :"schema".is_iso_time(text), :"schema".as_date(jsonb), :"schema".as_timestamp(jsonb),
    :"schema".unfit_fields(text[], text[], jsonb[]), :"schema".other_fields(jsonb, jsonb) TO PUBLIC;
