-- The tables of scanfeed. `:"schema"` is SCANFEED_DATABASE_SCHEMA, quoted; to try this file by hand:
--   psql --single-transaction --set schema=scanfeed --file migrations/0001_runs_and_feeds.sql
-- works-from: 1

CREATE TABLE :"schema".feeds (
    name                text COLLATE "C" PRIMARY KEY,
    cursor              text COLLATE "C",
    filters             jsonb NOT NULL,
    filters_widened_at  timestamptz,
    keep_history        boolean NOT NULL DEFAULT true,
    base_url            text COLLATE "C" NOT NULL,
    start_since         timestamptz,
    resume_since        timestamptz,
    complete_from       timestamptz,
    data_complete_as_of timestamptz,
    reconciled_as_of    timestamptz,
    end_reached_at      timestamptz,
    last_delivered_at   timestamptz,
    delivered_up_to     timestamptz,
    last_poll_at        timestamptz,
    last_commit_at      timestamptz,
    stuck_since         timestamptz,
    accepts_bad_until   timestamptz,
    lease_holder        text COLLATE "C",
    lease_epoch         bigint NOT NULL DEFAULT 0,
    lease_renewed_at    timestamptz,
    lease_expires_at    timestamptz,
    entries_per_second  double precision,
    seconds_left        double precision,
    rate_measured_at    timestamptz,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50); -- rewritten with every page: leaves space for in-place updates
COMMENT ON TABLE :"schema".feeds IS 'One row per feed: its position, freshness and lease. The row is the fence of every commit.';
COMMENT ON COLUMN :"schema".feeds.name IS 'Name of the feed (SCANFEED_FEED), also the label of its metrics';
COMMENT ON COLUMN :"schema".feeds.cursor IS 'Opaque position after the last committed page; null: none yet, or it was dropped and the feed continues from a time';
COMMENT ON COLUMN :"schema".feeds.filters IS 'Filters with which the feed is read: status, environment, documentType';
COMMENT ON COLUMN :"schema".feeds.filters_widened_at IS 'When the filters were last widened to include runs that the cursor had skipped; null: never';
COMMENT ON COLUMN :"schema".feeds.keep_history IS 'Whether superseded revisions of this feed are kept in run_history (SCANFEED_HISTORY)';
COMMENT ON COLUMN :"schema".feeds.base_url IS 'Address of the service that the cursor belongs to';
COMMENT ON COLUMN :"schema".feeds.start_since IS 'Delivery time at which the feed starts without a cursor; null: the beginning of the history. Set at the very first start; after a live start, replaced when the history pass has finished';
COMMENT ON COLUMN :"schema".feeds.resume_since IS 'Delivery time at which the feed resumes after its cursor was dropped; null: its start';
COMMENT ON COLUMN :"schema".feeds.complete_from IS 'Earliest delivery time from which the data is complete; -infinity: the beginning of the history';
COMMENT ON COLUMN :"schema".feeds.data_complete_as_of IS 'Every entry listed by the feed from complete_from up to this time is in runs or in quarantine; null while unknown. Clock of this database';
COMMENT ON COLUMN :"schema".feeds.reconciled_as_of IS 'Time up to which recent and full passes have searched for runs that the cursor skipped; null: never';
COMMENT ON COLUMN :"schema".feeds.end_reached_at IS 'When the end of the feed was first reached; null: not yet';
COMMENT ON COLUMN :"schema".feeds.last_delivered_at IS 'Latest delivery time, service clock, up to which the feed was read';
COMMENT ON COLUMN :"schema".feeds.delivered_up_to IS 'Latest delivery time, service clock, that was read since the last rewind, or its target; if the cursor is rejected, the feed falls back to a time before it';
COMMENT ON COLUMN :"schema".feeds.last_poll_at IS 'When the last successful poll was sent';
COMMENT ON COLUMN :"schema".feeds.last_commit_at IS 'When the last page was committed, empty pages included';
COMMENT ON COLUMN :"schema".feeds.stuck_since IS 'Time since when the cursor from the service is missing, does not move or goes in circles; null: it moves on';
COMMENT ON COLUMN :"schema".feeds.accepts_bad_until IS 'Time until which unusable entries are quarantined even if most of them are, instead of holding the feed, because an operator accepts it; null: never. Clock of this database';
COMMENT ON COLUMN :"schema".feeds.lease_holder IS 'Process that holds the lease; null: none';
COMMENT ON COLUMN :"schema".feeds.lease_epoch IS 'Raised when the lease changes hands and when the feed is rewound; a commit with another epoch writes nothing';
COMMENT ON COLUMN :"schema".feeds.lease_renewed_at IS 'When the lease was taken, renewed or used for a commit; a time in the future shows that the clock of this database was set back';
COMMENT ON COLUMN :"schema".feeds.lease_expires_at IS 'When the lease expires unless it is renewed, clock of this database';
COMMENT ON COLUMN :"schema".feeds.entries_per_second IS 'Entries read per second while catching up';
COMMENT ON COLUMN :"schema".feeds.seconds_left IS 'Estimated seconds until the end of the feed is reached; null: unknown';
COMMENT ON COLUMN :"schema".feeds.rate_measured_at IS 'When entries_per_second was measured; null: the feed is not catching up';
COMMENT ON COLUMN :"schema".feeds.created_at IS 'When the feed was first started';

CREATE TABLE :"schema".runs (
    scan_id            text COLLATE "C" PRIMARY KEY,
    revision           integer NOT NULL CHECK (revision >= 1),
    status             text COLLATE "C" NOT NULL CHECK (status IN ('completed', 'failed')),
    environment        text COLLATE "C" NOT NULL CHECK (environment IN ('prod', 'test')),
    document_type_slug text COLLATE "C",
    document_type_name text,
    file_name          text NOT NULL,
    partner_name       text,
    partner_test_mode  boolean NOT NULL,
    test_mode_revision integer,
    ocr_confidence     double precision,
    data               jsonb,
    failure_reason     text COLLATE "C",
    error              text,
    submitted_at       timestamptz,
    completed_at       timestamptz,
    delivered_at       timestamptz,
    markdown           text,
    markdown_absent    boolean NOT NULL DEFAULT false,
    result_state       text COLLATE "C" NOT NULL CHECK (result_state IN ('complete', 'pending')),
    pending_reason     text COLLATE "C",
    pending_since      timestamptz,
    next_try_at        timestamptz,
    attempts           integer NOT NULL DEFAULT 0,
    pending_for        interval,
    feed               text COLLATE "C" NOT NULL,
    stored_by          text COLLATE "C" NOT NULL CHECK (stored_by IN ('feed', 'recent', 'full', 'history', 'backfill', 'result')),
    repaired           boolean NOT NULL,
    extra              jsonb,
    first_synced_at    timestamptz NOT NULL,
    synced_at          timestamptz NOT NULL,
    change_seq         bigint NOT NULL,
    CONSTRAINT pending_has_reason_and_times CHECK ((result_state = 'pending') = (pending_reason IS NOT NULL AND pending_since IS NOT NULL AND next_try_at IS NOT NULL))
);
CREATE INDEX runs_change_seq ON :"schema".runs (change_seq);
CREATE INDEX runs_pending ON :"schema".runs (feed, next_try_at) WHERE result_state = 'pending';
COMMENT ON TABLE :"schema".runs IS 'One row per scan: its highest revision as delivered by the service';
COMMENT ON COLUMN :"schema".runs.scan_id IS 'Identifier of the run: the scanId that the service returned for the submission';
COMMENT ON COLUMN :"schema".runs.revision IS 'Highest revision received, from 1; never decreases';
COMMENT ON COLUMN :"schema".runs.status IS 'completed; or failed, for the reason in failure_reason';
COMMENT ON COLUMN :"schema".runs.environment IS 'prod; or test: a trial, to be left out of figures';
COMMENT ON COLUMN :"schema".runs.document_type_slug IS 'Slug of the document type at the time of the run; null: none';
COMMENT ON COLUMN :"schema".runs.document_type_name IS 'Display name of the document type; null: none';
COMMENT ON COLUMN :"schema".runs.file_name IS 'Original name of the submitted PDF';
COMMENT ON COLUMN :"schema".runs.partner_name IS 'Recognized sender of the document; null: none';
COMMENT ON COLUMN :"schema".runs.partner_test_mode IS 'true: the partner is in test mode for this document type; file the run for checking only, do not process it';
COMMENT ON COLUMN :"schema".runs.test_mode_revision IS 'The highest revision that states the test mode of the partner, which is partner_test_mode; null: no revision states it, so it is false';
COMMENT ON COLUMN :"schema".runs.ocr_confidence IS 'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent';
COMMENT ON COLUMN :"schema".runs.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending';
COMMENT ON COLUMN :"schema".runs.failure_reason IS 'Machine-readable reason of a failed run';
COMMENT ON COLUMN :"schema".runs.error IS 'German failure message of a failed run';
COMMENT ON COLUMN :"schema".runs.submitted_at IS 'Submission time, service clock';
COMMENT ON COLUMN :"schema".runs.completed_at IS 'Completion time, service clock';
COMMENT ON COLUMN :"schema".runs.delivered_at IS 'Time of delivery in the feed, service clock';
COMMENT ON COLUMN :"schema".runs.markdown IS 'Recognized markdown, stored if SCANFEED_MARKDOWN is on';
COMMENT ON COLUMN :"schema".runs.markdown_absent IS 'The service has no markdown for this revision and is not asked again';
COMMENT ON COLUMN :"schema".runs.result_state IS 'complete; or pending: data or markdown was too large for the feed and has not been loaded yet, or was given up';
COMMENT ON COLUMN :"schema".runs.pending_reason IS 'Why the result is pending: no_memory (loaded next), not_loaded, processing, not_found, still_truncated, older_revision, newer_revision (without partnerTestMode), test_mode_unknown (only an earlier revision has partnerTestMode; the single run is asked for it), invalid_result (unusable, refused, or contradicts the entry), too_large';
COMMENT ON COLUMN :"schema".runs.pending_since IS 'Time since which the result has been pending';
COMMENT ON COLUMN :"schema".runs.next_try_at IS 'When loading the result is retried; infinity: an operator gave it up';
COMMENT ON COLUMN :"schema".runs.attempts IS 'Number of retries since the result is pending';
COMMENT ON COLUMN :"schema".runs.pending_for IS 'How long the result was pending before it was loaded; null: it was complete at once, or is pending';
COMMENT ON COLUMN :"schema".runs.feed IS 'The feed that wrote this row last; it retries the result while that is pending';
COMMENT ON COLUMN :"schema".runs.stored_by IS 'What stored this revision: feed; recent, full, history or backfill: a pass of this kind; result: its full result, loaded by a retry or a command';
COMMENT ON COLUMN :"schema".runs.repaired IS 'A value was replaced so that the entry could be stored; the original is in extra or in quarantine';
COMMENT ON COLUMN :"schema".runs.extra IS 'Fields that have no column, and originals of replaced values; null: none';
COMMENT ON COLUMN :"schema".runs.first_synced_at IS 'When the scan was first stored';
COMMENT ON COLUMN :"schema".runs.synced_at IS 'When the row was last written';
COMMENT ON COLUMN :"schema".runs.change_seq IS 'Number of the last change that reports show of the run, in the order of commits; a reader can continue after the highest number it has read';

CREATE TABLE :"schema".run_history (
    superseded_at timestamptz NOT NULL, -- first, so that columns added to both tables later stay aligned
    LIKE :"schema".runs INCLUDING COMMENTS,
    PRIMARY KEY (scan_id, revision)
);
COMMENT ON TABLE :"schema".run_history IS 'Rows of runs as they were when a higher revision replaced them';
COMMENT ON COLUMN :"schema".run_history.superseded_at IS 'When the higher revision was stored';

CREATE TABLE :"schema".cursor_history (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed              text COLLATE "C" NOT NULL,
    cursor            text COLLATE "C",
    since             timestamptz,
    last_delivered_at timestamptz,
    reason            text COLLATE "C" NOT NULL CHECK (reason IN ('checkpoint', 'rejected', 'rewind')),
    target_id         bigint,
    target_since      timestamptz,
    noted_at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX cursor_history_feed ON :"schema".cursor_history (feed, id DESC);
COMMENT ON TABLE :"schema".cursor_history IS 'Earlier positions of each feed, limited in number; targets of rewinds and of automatic fallback';
COMMENT ON COLUMN :"schema".cursor_history.id IS 'Number of the position, in order of time';
COMMENT ON COLUMN :"schema".cursor_history.feed IS 'The feed';
COMMENT ON COLUMN :"schema".cursor_history.cursor IS 'The cursor; null: the feed had none';
COMMENT ON COLUMN :"schema".cursor_history.since IS 'The time at which the feed resumed instead of a cursor; null: none';
COMMENT ON COLUMN :"schema".cursor_history.last_delivered_at IS 'Delivery time up to which the feed was read at that cursor, service clock';
COMMENT ON COLUMN :"schema".cursor_history.reason IS 'Why it was stored: checkpoint, rejected, rewind';
COMMENT ON COLUMN :"schema".cursor_history.target_id IS 'Earlier position that is the target of a rewind; null: a time or the start';
COMMENT ON COLUMN :"schema".cursor_history.target_since IS 'Delivery time that is the target of a rewind; null: a position or the start';
COMMENT ON COLUMN :"schema".cursor_history.noted_at IS 'When it was stored';

CREATE TABLE :"schema".passes (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed               text COLLATE "C" NOT NULL,
    kind               text COLLATE "C" NOT NULL CHECK (kind IN ('recent', 'full', 'history', 'backfill')),
    since              timestamptz,
    until              timestamptz NOT NULL,
    cursor             text COLLATE "C",
    delivered_up_to    timestamptz,
    entries            bigint NOT NULL DEFAULT 0,
    stored             bigint NOT NULL DEFAULT 0,
    entries_per_second double precision,
    seconds_left       double precision,
    rate_measured_at   timestamptz,
    begun_at           timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
    complete_as_of     timestamptz,
    last_commit_at     timestamptz,
    finished_at        timestamptz,
    cancelled          boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50); -- rewritten with every page: leaves space for in-place updates
CREATE INDEX passes_feed ON :"schema".passes (feed, kind, id);
CREATE UNIQUE INDEX passes_unfinished ON :"schema".passes (feed, kind) WHERE finished_at IS NULL AND kind <> 'backfill';
COMMENT ON TABLE :"schema".passes IS 'Passes over a feed. Each reads the feed again up to an end, with its own position, and never moves the cursor of the feed';
COMMENT ON COLUMN :"schema".passes.id IS 'Number of the pass, in the order in which they began';
COMMENT ON COLUMN :"schema".passes.feed IS 'The feed';
COMMENT ON COLUMN :"schema".passes.kind IS 'recent and full: find runs that the cursor skipped, in the recent past or in the whole feed; history: reads runs delivered before the start of the feed (SCANFEED_START=live); backfill: requested with scanfeed backfill';
COMMENT ON COLUMN :"schema".passes.since IS 'Delivery time, service clock, at which it begins; null: the beginning of the history';
COMMENT ON COLUMN :"schema".passes.until IS 'Delivery time, service clock, at which it ends';
COMMENT ON COLUMN :"schema".passes.cursor IS 'Cursor after its last page; null: none yet';
COMMENT ON COLUMN :"schema".passes.delivered_up_to IS 'Latest delivery time, service clock, up to which it has read';
COMMENT ON COLUMN :"schema".passes.entries IS 'Entries read';
COMMENT ON COLUMN :"schema".passes.stored IS 'Runs inserted or updated';
COMMENT ON COLUMN :"schema".passes.entries_per_second IS 'Entries read per second, over the last minutes';
COMMENT ON COLUMN :"schema".passes.seconds_left IS 'Estimated seconds until its end; null: unknown';
COMMENT ON COLUMN :"schema".passes.rate_measured_at IS 'When entries_per_second was measured';
COMMENT ON COLUMN :"schema".passes.begun_at IS 'When it began, or was requested; identifies it together with id, which a failover that loses commits may give twice';
COMMENT ON COLUMN :"schema".passes.complete_as_of IS 'data_complete_as_of of the feed when the pass began; becomes reconciled_as_of when it finishes; null: it leaves reconciled_as_of unchanged';
COMMENT ON COLUMN :"schema".passes.last_commit_at IS 'When its last page was committed';
COMMENT ON COLUMN :"schema".passes.finished_at IS 'When it reached its end or was cancelled; null: it is unfinished';
COMMENT ON COLUMN :"schema".passes.cancelled IS 'It was cancelled before its end';

CREATE TABLE :"schema".recent_errors (
    holder      text COLLATE "C" NOT NULL,
    stage       text COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    feed        text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    message     text NOT NULL,
    held        boolean NOT NULL,
    runbook     text COLLATE "C" NOT NULL,
    failures    integer NOT NULL,
    since       timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    next_try_at timestamptz NOT NULL,
    ended_at    timestamptz,
    PRIMARY KEY (holder, stage, number)
) WITH (vacuum_truncate = false);
CREATE INDEX recent_errors_feed ON :"schema".recent_errors (feed, since DESC);
-- Keeps a page of the table and its indexes, so that the first error can be recorded on a disk that is full.
INSERT INTO :"schema".recent_errors VALUES ('', '', 0, '', '', '', false, '', 0, now(), now(), now(), now());
DELETE FROM :"schema".recent_errors;
COMMENT ON TABLE :"schema".recent_errors IS 'Recent outages of each feed, limited in number, for scanfeed status; outages of this database are written when it is back';
COMMENT ON COLUMN :"schema".recent_errors.holder IS 'Process in which it occurred';
COMMENT ON COLUMN :"schema".recent_errors.stage IS 'What failed: feed, result, lease, a kind of pass, a maintenance task of the daemon, or a part of the setup of the reports';
COMMENT ON COLUMN :"schema".recent_errors.number IS 'Number of the outage in its process';
COMMENT ON COLUMN :"schema".recent_errors.feed IS 'The feed';
COMMENT ON COLUMN :"schema".recent_errors.kind IS 'Kind of the last error, as in scanfeed_errors_total';
COMMENT ON COLUMN :"schema".recent_errors.message IS 'Last error with its remedy, as in the log; contains no key, no cursor and no document content';
COMMENT ON COLUMN :"schema".recent_errors.held IS 'Whether it requires an operator; it is retried in both cases';
COMMENT ON COLUMN :"schema".recent_errors.runbook IS 'Name of its runbook';
COMMENT ON COLUMN :"schema".recent_errors.failures IS 'Number of consecutive failures';
COMMENT ON COLUMN :"schema".recent_errors.since IS 'When the first try failed';
COMMENT ON COLUMN :"schema".recent_errors.last_at IS 'When the last try failed';
COMMENT ON COLUMN :"schema".recent_errors.next_try_at IS 'When the next try was due; if nothing was recorded since, the process is gone';
COMMENT ON COLUMN :"schema".recent_errors.ended_at IS 'When a try succeeded or the process stopped; null: not yet';

-- A new feed with the same name must not skip entries because of positions of the deleted one. Foreign keys would not do: they
-- would lock the row of the feed for every row that refers to it, and forbid TRUNCATE.
CREATE FUNCTION :"schema".forget_positions() RETURNS trigger LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
    DELETE FROM cursor_history WHERE feed NOT IN (SELECT name FROM feeds);
    DELETE FROM passes WHERE feed NOT IN (SELECT name FROM feeds);
    DELETE FROM recent_errors WHERE feed NOT IN (SELECT name FROM feeds);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION :"schema".forget_positions() IS 'Deletes the positions, passes and errors of deleted feeds';
CREATE TRIGGER forget_positions AFTER DELETE OR TRUNCATE ON :"schema".feeds
    FOR EACH STATEMENT EXECUTE FUNCTION :"schema".forget_positions();
COMMENT ON TRIGGER forget_positions ON :"schema".feeds IS 'Positions, passes and errors are deleted with their feed';

CREATE TABLE :"schema".quarantine (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed          text COLLATE "C" NOT NULL,
    identity      text COLLATE "C" NOT NULL,
    scan_id       text COLLATE "C",
    revision      integer,
    reason        text COLLATE "C" NOT NULL,
    detail        text NOT NULL,
    payload       bytea NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    times_seen    integer NOT NULL DEFAULT 1,
    state         text COLLATE "C" NOT NULL CHECK (state IN ('open', 'repaired', 'replayed', 'discarded')),
    UNIQUE (feed, identity)
);
CREATE INDEX quarantine_open ON :"schema".quarantine (feed, scan_id) WHERE state = 'open';
COMMENT ON TABLE :"schema".quarantine IS 'Entries that could not be stored, and originals of repaired ones, byte for byte as received';
COMMENT ON COLUMN :"schema".quarantine.id IS 'Number of the entry';
COMMENT ON COLUMN :"schema".quarantine.feed IS 'The feed that delivered it';
COMMENT ON COLUMN :"schema".quarantine.identity IS 'Scan id and revision if both are usable, else the SHA-256 of the bytes; unique per feed, so a repeated delivery adds no row';
COMMENT ON COLUMN :"schema".quarantine.scan_id IS 'Scan id; null: not usable';
COMMENT ON COLUMN :"schema".quarantine.revision IS 'Revision; null: not usable';
COMMENT ON COLUMN :"schema".quarantine.reason IS 'Reason, as one word';
COMMENT ON COLUMN :"schema".quarantine.detail IS 'Reason, as a sentence; names fields, never values';
COMMENT ON COLUMN :"schema".quarantine.payload IS 'The entry as received, byte for byte';
COMMENT ON COLUMN :"schema".quarantine.first_seen_at IS 'When it was first delivered';
COMMENT ON COLUMN :"schema".quarantine.last_seen_at IS 'When it was last delivered';
COMMENT ON COLUMN :"schema".quarantine.times_seen IS 'Number of deliveries';
COMMENT ON COLUMN :"schema".quarantine.state IS 'open: not in runs; repaired: stored after a repair, this is the original; replayed: stored later; discarded by an operator, or because a newer revision was stored';

CREATE TABLE :"schema".change_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)
);
INSERT INTO :"schema".change_clock DEFAULT VALUES;
CREATE SEQUENCE :"schema".change_seq;
COMMENT ON TABLE :"schema".change_clock IS 'A single row that every writer of runs locks before it draws numbers from change_seq, so the order of numbers is the order of commits';
COMMENT ON COLUMN :"schema".change_clock.only_row IS 'Keeps the table at one row';
COMMENT ON SEQUENCE :"schema".change_seq IS 'Numbers of runs.change_seq, drawn under the lock of change_clock';

CREATE FUNCTION :"schema".keep_change_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: the row of change_clock must not be deleted: without it nothing can be written to runs';
END $$;
COMMENT ON FUNCTION :"schema".keep_change_clock() IS 'Keeps the row of change_clock from being deleted';
CREATE TRIGGER keep_row BEFORE DELETE OR TRUNCATE ON :"schema".change_clock
    FOR EACH STATEMENT EXECUTE FUNCTION :"schema".keep_change_clock();
COMMENT ON TRIGGER keep_row ON :"schema".change_clock IS 'Keeps the row';

CREATE FUNCTION :"schema".lock_change_clock() RETURNS boolean LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
    PERFORM FROM change_clock FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'scanfeed: change_clock has lost its row' USING ERRCODE = 'SF001';
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION :"schema".lock_change_clock() IS 'Locks change_clock until the end of the transaction. Fails a commit that finds no row, so that its cursor does not move';

CREATE FUNCTION :"schema".refuse_overtaken() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: a run of this commit was not written: another writer has changed it, or a trigger skips it; the commit is retried' USING ERRCODE = 'SF002';
END $$;
COMMENT ON FUNCTION :"schema".refuse_overtaken() IS 'Fails a commit if another writer has changed one of its runs since it began, so that its cursor does not move';
-- The default of PostgreSQL, unless default privileges were revoked.
GRANT EXECUTE ON FUNCTION :"schema".lock_change_clock(), :"schema".refuse_overtaken() TO PUBLIC;

-- A trigger copies the row that is actually replaced; a subquery in the writing statement would see an older snapshot.
CREATE FUNCTION :"schema".keep_superseded_run() RETURNS trigger LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
    IF (SELECT keep_history FROM feeds WHERE name = NEW.feed) IS NOT FALSE THEN
        -- By name: the tables may have columns of others.
        INSERT INTO run_history (superseded_at,
            scan_id, revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
            partner_test_mode, test_mode_revision, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at,
            markdown, markdown_absent, result_state, pending_reason, pending_since, next_try_at, attempts, pending_for,
            feed, stored_by, repaired, extra, first_synced_at, synced_at, change_seq
        ) VALUES (clock_timestamp(),
            OLD.scan_id, OLD.revision, OLD.status, OLD.environment, OLD.document_type_slug, OLD.document_type_name,
            OLD.file_name, OLD.partner_name, OLD.partner_test_mode, OLD.test_mode_revision, OLD.ocr_confidence, OLD.data, OLD.failure_reason,
            OLD.error, OLD.submitted_at, OLD.completed_at, OLD.delivered_at, OLD.markdown, OLD.markdown_absent,
            OLD.result_state, OLD.pending_reason, OLD.pending_since, OLD.next_try_at, OLD.attempts, OLD.pending_for,
            OLD.feed, OLD.stored_by, OLD.repaired, OLD.extra, OLD.first_synced_at, OLD.synced_at, OLD.change_seq
        ) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION :"schema".keep_superseded_run() IS 'Copies a row of runs to run_history when a higher revision replaces it';
CREATE TRIGGER keep_superseded AFTER UPDATE ON :"schema".runs
    FOR EACH ROW WHEN (NEW.revision > OLD.revision) EXECUTE FUNCTION :"schema".keep_superseded_run();
COMMENT ON TRIGGER keep_superseded ON :"schema".runs IS 'Keeps superseded revisions';

CREATE FUNCTION :"schema".refuse_older_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: revision % of a scan would be replaced by the lower revision %', OLD.revision, NEW.revision;
END $$;
COMMENT ON FUNCTION :"schema".refuse_older_revision() IS 'Keeps a stored revision from being replaced by a lower one';
CREATE TRIGGER refuse_older_revision BEFORE UPDATE ON :"schema".runs
    FOR EACH ROW WHEN (NEW.revision < OLD.revision) EXECUTE FUNCTION :"schema".refuse_older_revision();
COMMENT ON TRIGGER refuse_older_revision ON :"schema".runs IS 'A stored revision never decreases';

-- Whether a run is productive depends on open entries of later revisions (judged_runs in 0002), so the run changes with them.
CREATE FUNCTION :"schema".number_quarantine_change() RETURNS trigger LANGUAGE plpgsql
    SET search_path = :"schema", pg_temp AS $$
DECLARE
    entry quarantine := COALESCE(NEW, OLD);
BEGIN
    PERFORM lock_change_clock();
    UPDATE runs SET change_seq = nextval('change_seq'), synced_at = statement_timestamp()
    WHERE scan_id = entry.scan_id AND revision < COALESCE(entry.revision, 2147483647);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION :"schema".number_quarantine_change() IS 'Gives a run a new change_seq when a later revision enters or leaves open quarantine';
CREATE TRIGGER number_entering AFTER INSERT ON :"schema".quarantine
    FOR EACH ROW WHEN (NEW.state = 'open' AND NEW.scan_id IS NOT NULL)
    EXECUTE FUNCTION :"schema".number_quarantine_change();
CREATE TRIGGER number_settled AFTER UPDATE ON :"schema".quarantine
    FOR EACH ROW WHEN ((NEW.state = 'open') <> (OLD.state = 'open') AND NEW.scan_id IS NOT NULL)
    EXECUTE FUNCTION :"schema".number_quarantine_change();
CREATE TRIGGER number_deleted AFTER DELETE ON :"schema".quarantine
    FOR EACH ROW WHEN (OLD.state = 'open' AND OLD.scan_id IS NOT NULL)
    EXECUTE FUNCTION :"schema".number_quarantine_change();
COMMENT ON TRIGGER number_entering ON :"schema".quarantine IS 'An open entry is a change of its run';
COMMENT ON TRIGGER number_settled ON :"schema".quarantine IS 'Settling or reopening an entry is a change of its run';
COMMENT ON TRIGGER number_deleted ON :"schema".quarantine IS 'Deleting an open entry is a change of its run';
