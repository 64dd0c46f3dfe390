-- The tables that scanfeed writes. `:"schema"` is SCANFEED_DATABASE_SCHEMA, quoted; to try this file by hand:
--   psql --single-transaction --set schema=scanfeed --file migrations/0001_runs_and_feeds.sql
-- works-from: 1

CREATE TABLE :"schema".feeds (
    name                text PRIMARY KEY,
    cursor              text,
    filters             jsonb NOT NULL,
    filters_since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    filters_widened_at          timestamptz,
    keep_history        boolean NOT NULL DEFAULT true,
    base_url            text NOT NULL,
    start_since         timestamptz,
    resume_since        timestamptz,
    complete_from       timestamptz,
    data_complete_as_of timestamptz,
    reconciled_as_of    timestamptz,
    end_reached_at      timestamptz,
    last_delivered_at   timestamptz,
    delivered_up_to          timestamptz,
    last_poll_at        timestamptz,
    last_commit_at      timestamptz,
    stuck_since         timestamptz,
    lease_holder        text,
    lease_epoch         bigint NOT NULL DEFAULT 0,
    lease_expires_at    timestamptz,
    entries_per_second  double precision,
    seconds_left        double precision,
    rate_measured_at            timestamptz,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50); -- rewritten with every page: room for updates in place
COMMENT ON TABLE :"schema".feeds IS 'One row a feed: where it stands, how fresh it is, and who holds it. The row is the fence of every commit.';
COMMENT ON COLUMN :"schema".feeds.name IS 'Name of the feed (SCANFEED_FEED), also the label of its metrics';
COMMENT ON COLUMN :"schema".feeds.cursor IS 'Opaque position after the last committed page (interface 4.2); null: none yet, or it was given up and the feed continues from a time';
COMMENT ON COLUMN :"schema".feeds.filters IS 'Read-time filters of the feed (interface 4.2): status, environment, documentType';
COMMENT ON COLUMN :"schema".feeds.filters_since IS 'When these filters were first used';
COMMENT ON COLUMN :"schema".feeds.filters_widened_at IS 'When the filters last began to include runs that the cursor had skipped; null: never';
COMMENT ON COLUMN :"schema".feeds.keep_history IS 'Whether superseded revisions of this feed are kept in run_history (SCANFEED_HISTORY)';
COMMENT ON COLUMN :"schema".feeds.base_url IS 'Address of the service that the cursor belongs to';
COMMENT ON COLUMN :"schema".feeds.start_since IS 'Where the feed starts while it has no cursor; null: at the beginning of the history. Set at the very first start; after a live start the history pass replaces it once it has finished';
COMMENT ON COLUMN :"schema".feeds.resume_since IS 'Where the feed goes on while it has no cursor, after one was given up; null: from its start';
COMMENT ON COLUMN :"schema".feeds.complete_from IS 'Earliest delivery time that the data is complete from; -infinity: from the beginning of the history';
COMMENT ON COLUMN :"schema".feeds.data_complete_as_of IS 'Every entry listed by the feed from complete_from up to this time is in runs or in open quarantine; null while unknown. By the clock of this database';
COMMENT ON COLUMN :"schema".feeds.reconciled_as_of IS 'Up to when recent and full passes have looked for runs that the cursor skipped; null: never';
COMMENT ON COLUMN :"schema".feeds.end_reached_at IS 'When the end of the feed was reached from its start; null: the history is still being read';
COMMENT ON COLUMN :"schema".feeds.last_delivered_at IS 'Latest delivery time (service clock) up to which the feed was read';
COMMENT ON COLUMN :"schema".feeds.delivered_up_to IS 'Latest delivery time (service clock) that was read since the last rewind, or the one it went to: a rejected cursor gives way to a time before it';
COMMENT ON COLUMN :"schema".feeds.last_poll_at IS 'When the last successful poll was sent';
COMMENT ON COLUMN :"schema".feeds.last_commit_at IS 'When the last page was committed, empty pages included';
COMMENT ON COLUMN :"schema".feeds.stuck_since IS 'Since when the cursor that the service gives is missing, stands still or goes in circles; null: it leads on';
COMMENT ON COLUMN :"schema".feeds.lease_holder IS 'Identity of the process that holds the feed; null: none';
COMMENT ON COLUMN :"schema".feeds.lease_epoch IS 'Raised whenever the feed changes hands or is rewound; a commit of another epoch is void';
COMMENT ON COLUMN :"schema".feeds.lease_expires_at IS 'When a silent holder loses the feed, by the clock of this database';
COMMENT ON COLUMN :"schema".feeds.entries_per_second IS 'Entries that the leader lately read in a second while it was behind the end of the feed';
COMMENT ON COLUMN :"schema".feeds.seconds_left IS 'Seconds until the end of the feed is reached if it goes on like that; null: unknown';
COMMENT ON COLUMN :"schema".feeds.rate_measured_at IS 'When the pace was measured; null: the feed is not catching up';
COMMENT ON COLUMN :"schema".feeds.created_at IS 'When the feed was first started';

CREATE TABLE :"schema".runs (
    scan_id            text PRIMARY KEY,
    revision           integer NOT NULL CHECK (revision >= 1),
    status             text NOT NULL CHECK (status IN ('completed', 'failed')),
    environment        text NOT NULL CHECK (environment IN ('prod', 'test')),
    document_type_slug text,
    document_type_name text,
    file_name          text NOT NULL,
    partner_name       text,
    partner_test_mode  boolean NOT NULL,
    ocr_confidence     double precision,
    data               jsonb,
    failure_reason     text,
    error              text,
    submitted_at       timestamptz,
    completed_at       timestamptz,
    delivered_at       timestamptz,
    markdown           text,
    markdown_absent    boolean NOT NULL DEFAULT false,
    result_state       text NOT NULL CHECK (result_state IN ('complete', 'pending')),
    pending_reason     text,
    pending_since      timestamptz,
    next_try_at        timestamptz,
    attempts           integer NOT NULL DEFAULT 0,
    feed               text NOT NULL,
    repaired           boolean NOT NULL,
    extra              jsonb,
    first_synced_at    timestamptz NOT NULL,
    synced_at          timestamptz NOT NULL,
    change_seq         bigint NOT NULL,
    CHECK ((result_state = 'pending') = (pending_reason IS NOT NULL AND pending_since IS NOT NULL AND next_try_at IS NOT NULL))
);
CREATE INDEX runs_change_seq ON :"schema".runs (change_seq);
CREATE INDEX runs_pending ON :"schema".runs (feed, next_try_at) WHERE result_state = 'pending';
COMMENT ON TABLE :"schema".runs IS 'One row a scan: its highest revision as delivered by the service (interface 2.1)';
COMMENT ON COLUMN :"schema".runs.scan_id IS 'Identifier of the run (interface 2.1 scanId)';
COMMENT ON COLUMN :"schema".runs.revision IS 'Highest revision seen, from 1; never goes back (interface 2.1 revision)';
COMMENT ON COLUMN :"schema".runs.status IS 'completed or failed (interface 2.1 status)';
COMMENT ON COLUMN :"schema".runs.environment IS 'prod or test (interface 2.1 environment)';
COMMENT ON COLUMN :"schema".runs.document_type_slug IS 'Slug of the document type at the time of the run (interface 2.1 documentType.slug)';
COMMENT ON COLUMN :"schema".runs.document_type_name IS 'Display name of the document type (interface 2.1 documentType.name)';
COMMENT ON COLUMN :"schema".runs.file_name IS 'Original name of the submitted PDF (interface 2.1 fileName)';
COMMENT ON COLUMN :"schema".runs.partner_name IS 'Classified sender of the document; null: none recognized (interface 2.1 partnerName)';
COMMENT ON COLUMN :"schema".runs.partner_test_mode IS 'The partner is in test mode for this document type: file for checking only, do not process (interface 2.1 partnerTestMode)';
COMMENT ON COLUMN :"schema".runs.ocr_confidence IS 'Overall recognition confidence, if present (interface 2.1 ocrConfidence)';
COMMENT ON COLUMN :"schema".runs.data IS 'Structured recognition result, every digit as sent; null for failed runs and while pending (interface 2.1 data)';
COMMENT ON COLUMN :"schema".runs.failure_reason IS 'Machine-readable reason of a failed run (interface 2.1 failureReason)';
COMMENT ON COLUMN :"schema".runs.error IS 'German failure message of a failed run (interface 2.1 error)';
COMMENT ON COLUMN :"schema".runs.submitted_at IS 'Submission time, service clock (interface 2.1 submittedAt)';
COMMENT ON COLUMN :"schema".runs.completed_at IS 'Completion time, service clock (interface 2.1 completedAt)';
COMMENT ON COLUMN :"schema".runs.delivered_at IS 'Time of delivery in the feed, service clock (interface 2.1 deliveredAt)';
COMMENT ON COLUMN :"schema".runs.markdown IS 'Recognized markdown, stored where SCANFEED_MARKDOWN is on (interface 2.1 markdown)';
COMMENT ON COLUMN :"schema".runs.markdown_absent IS 'The service was asked for this very revision with its markdown, and has none: it is not asked again';
COMMENT ON COLUMN :"schema".runs.result_state IS 'complete, or pending while a truncated result is still to be loaded, or was given up (interface 4.2 rule 6)';
COMMENT ON COLUMN :"schema".runs.pending_reason IS 'Why the result is pending: no_memory (loaded next), not_loaded, processing, not_found, still_truncated, older_revision, test_mode_unknown (a later revision without partnerTestMode), invalid_result (unusable, refused, or contradicts the entry), too_large';
COMMENT ON COLUMN :"schema".runs.pending_since IS 'Since when the result is pending';
COMMENT ON COLUMN :"schema".runs.next_try_at IS 'When loading the result is tried next; infinity: it was given up by an operator';
COMMENT ON COLUMN :"schema".runs.attempts IS 'Tries in the background since the result is pending';
COMMENT ON COLUMN :"schema".runs.feed IS 'The feed that wrote this row last; while its result is pending, the one that retries it';
COMMENT ON COLUMN :"schema".runs.repaired IS 'A value was replaced to make the entry storable; the original is in extra or in quarantine';
COMMENT ON COLUMN :"schema".runs.extra IS 'Fields that the interface does not know, and originals of replaced values; null: none';
COMMENT ON COLUMN :"schema".runs.first_synced_at IS 'When the scan was first stored';
COMMENT ON COLUMN :"schema".runs.synced_at IS 'When the row was last written';
COMMENT ON COLUMN :"schema".runs.change_seq IS 'Number of the last change; its order is the order of commits, so a reader may remember the highest one seen';

CREATE TABLE :"schema".run_history (
    superseded_at timestamptz NOT NULL, -- first, so that columns added to both tables later stay aligned
    LIKE :"schema".runs INCLUDING COMMENTS,
    PRIMARY KEY (scan_id, revision)
);
COMMENT ON TABLE :"schema".run_history IS 'Rows of runs as they were when a higher revision replaced them';
COMMENT ON COLUMN :"schema".run_history.superseded_at IS 'When the higher revision was stored';

CREATE TABLE :"schema".cursor_history (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed     text NOT NULL,
    cursor   text,
    since    timestamptz,
    last_delivered_at timestamptz,
    reason   text NOT NULL,
    target_id bigint,
    target_since timestamptz,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX cursor_history_feed ON :"schema".cursor_history (feed, id DESC);
COMMENT ON TABLE :"schema".cursor_history IS 'Earlier positions of each feed, bounded in number, to go back to';
COMMENT ON COLUMN :"schema".cursor_history.id IS 'Order of noting';
COMMENT ON COLUMN :"schema".cursor_history.feed IS 'The feed';
COMMENT ON COLUMN :"schema".cursor_history.cursor IS 'The cursor as it was; null: the feed had none';
COMMENT ON COLUMN :"schema".cursor_history.since IS 'The start time in place of a cursor, where there was one';
COMMENT ON COLUMN :"schema".cursor_history.last_delivered_at IS 'Delivery time up to which the feed was read at that cursor, service clock';
COMMENT ON COLUMN :"schema".cursor_history.reason IS 'Why it was noted: checkpoint, rejected, rewind, adopt';
COMMENT ON COLUMN :"schema".cursor_history.target_id IS 'The earlier position that a rewind went to; null: to a time or to the start';
COMMENT ON COLUMN :"schema".cursor_history.target_since IS 'The time that a rewind went to; null: to a position or to the start';
COMMENT ON COLUMN :"schema".cursor_history.noted_at IS 'When it was noted';

CREATE TABLE :"schema".passes (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed               text NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('recent', 'full', 'history', 'backfill')),
    since              timestamptz,
    until              timestamptz NOT NULL,
    cursor             text,
    delivered_up_to    timestamptz,
    entries            bigint NOT NULL DEFAULT 0,
    stored             bigint NOT NULL DEFAULT 0,
    entries_per_second double precision,
    seconds_left       double precision,
    rate_measured_at           timestamptz,
    begun_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    complete_as_of     timestamptz,
    last_commit_at     timestamptz,
    finished_at        timestamptz,
    cancelled          boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50); -- rewritten with every page: room for updates in place
CREATE INDEX passes_feed ON :"schema".passes (feed, kind, id);
CREATE UNIQUE INDEX passes_unfinished ON :"schema".passes (feed, kind) WHERE finished_at IS NULL AND kind <> 'backfill';
COMMENT ON TABLE :"schema".passes IS 'Passes over a feed, each with a position of its own: they read it again from a position to an end and never move its cursor';
COMMENT ON COLUMN :"schema".passes.id IS 'Order of beginning';
COMMENT ON COLUMN :"schema".passes.feed IS 'The feed';
COMMENT ON COLUMN :"schema".passes.kind IS 'recent and full: find what the cursor skipped, in the recent past and in everything; history: what was delivered before the start of a feed (SCANFEED_START=live); backfill: requested by scanfeed backfill';
COMMENT ON COLUMN :"schema".passes.since IS 'Delivery time, service clock, at which it begins; null: the beginning of the history';
COMMENT ON COLUMN :"schema".passes.until IS 'Delivery time, service clock, at which it ends';
COMMENT ON COLUMN :"schema".passes.cursor IS 'Cursor after its last page; null: it has read none';
COMMENT ON COLUMN :"schema".passes.delivered_up_to IS 'Latest delivery time, service clock, up to which it has read';
COMMENT ON COLUMN :"schema".passes.entries IS 'Entries read';
COMMENT ON COLUMN :"schema".passes.stored IS 'Runs that it inserted or updated';
COMMENT ON COLUMN :"schema".passes.entries_per_second IS 'Entries read per second, over the last minutes';
COMMENT ON COLUMN :"schema".passes.seconds_left IS 'Estimated seconds until its end; null: unknown';
COMMENT ON COLUMN :"schema".passes.rate_measured_at IS 'When the pace was measured';
COMMENT ON COLUMN :"schema".passes.begun_at IS 'When it began, or was requested';
COMMENT ON COLUMN :"schema".passes.complete_as_of IS 'data_complete_as_of of the feed when the pass began; becomes reconciled_as_of when it is finished; null: it makes no such claim';
COMMENT ON COLUMN :"schema".passes.last_commit_at IS 'When its last page was committed';
COMMENT ON COLUMN :"schema".passes.finished_at IS 'When it reached its end, or was cancelled; null: it is unfinished';
COMMENT ON COLUMN :"schema".passes.cancelled IS 'It was ended before its end';

CREATE TABLE :"schema".recent_errors (
    holder      text NOT NULL,
    stage       text NOT NULL,
    number      integer NOT NULL,
    feed        text NOT NULL,
    kind        text NOT NULL,
    message     text NOT NULL,
    failures    integer NOT NULL,
    since       timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    next_try_at timestamptz NOT NULL,
    ended_at    timestamptz,
    PRIMARY KEY (holder, stage, number)
);
CREATE INDEX recent_errors_feed ON :"schema".recent_errors (feed, since DESC);
COMMENT ON TABLE :"schema".recent_errors IS 'The last outages of each feed, bounded in number, for scanfeed status; noted by the daemon beside its work, those of this database once it is back';
COMMENT ON COLUMN :"schema".recent_errors.holder IS 'The process that met it';
COMMENT ON COLUMN :"schema".recent_errors.stage IS 'What failed: feed, result, lease, a kind of pass, or a maintenance task of the daemon';
COMMENT ON COLUMN :"schema".recent_errors.number IS 'Counts the outages of the process';
COMMENT ON COLUMN :"schema".recent_errors.feed IS 'The feed';
COMMENT ON COLUMN :"schema".recent_errors.kind IS 'How it failed last, as in scanfeed_errors_total';
COMMENT ON COLUMN :"schema".recent_errors.message IS 'The last error, with its remedy, as the log has it; no key, no cursor and no document content';
COMMENT ON COLUMN :"schema".recent_errors.failures IS 'Tries that failed in a row';
COMMENT ON COLUMN :"schema".recent_errors.since IS 'When the first one failed';
COMMENT ON COLUMN :"schema".recent_errors.last_at IS 'When the last one failed';
COMMENT ON COLUMN :"schema".recent_errors.next_try_at IS 'When the next was to be made; where nothing was noted since, the process is gone';
COMMENT ON COLUMN :"schema".recent_errors.ended_at IS 'When a try succeeded, or the process gave the work up; null: not yet';

-- A feed that begins anew under the same name must not be led past its entries by the positions of the one before.
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
    feed          text NOT NULL,
    identity      text NOT NULL,
    scan_id       text,
    revision      integer,
    reason        text NOT NULL,
    detail        text NOT NULL,
    payload       bytea NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    times_seen    integer NOT NULL DEFAULT 1,
    state         text NOT NULL CHECK (state IN ('open', 'repaired', 'replayed', 'discarded')),
    UNIQUE (feed, identity)
);
CREATE INDEX quarantine_open ON :"schema".quarantine (feed, scan_id) WHERE state = 'open';
COMMENT ON TABLE :"schema".quarantine IS 'Entries that could not be stored, and originals of repaired ones, byte for byte as received';
COMMENT ON COLUMN :"schema".quarantine.id IS 'Number to name the entry by';
COMMENT ON COLUMN :"schema".quarantine.feed IS 'The feed that delivered it';
COMMENT ON COLUMN :"schema".quarantine.identity IS 'Scan id and revision where both are usable, else the SHA-256 of the bytes: an entry seen again makes no second row';
COMMENT ON COLUMN :"schema".quarantine.scan_id IS 'Scan id, where usable';
COMMENT ON COLUMN :"schema".quarantine.revision IS 'Revision, where usable';
COMMENT ON COLUMN :"schema".quarantine.reason IS 'Why, as one word';
COMMENT ON COLUMN :"schema".quarantine.detail IS 'Why, for a person; names fields, never values';
COMMENT ON COLUMN :"schema".quarantine.payload IS 'The entry as received, byte for byte';
COMMENT ON COLUMN :"schema".quarantine.first_seen_at IS 'When it was first delivered';
COMMENT ON COLUMN :"schema".quarantine.last_seen_at IS 'When it was last delivered';
COMMENT ON COLUMN :"schema".quarantine.times_seen IS 'How often it was delivered';
COMMENT ON COLUMN :"schema".quarantine.state IS 'open: not in runs; repaired: stored, this is the original; replayed: stored later; discarded: by an operator, or a newer revision was stored';

CREATE TABLE :"schema".change_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)
);
INSERT INTO :"schema".change_clock DEFAULT VALUES;
CREATE SEQUENCE :"schema".change_seq;
COMMENT ON TABLE :"schema".change_clock IS 'One row that every writer of runs locks before it draws numbers from change_seq: so the order of numbers is the order of commits';
COMMENT ON COLUMN :"schema".change_clock.only_row IS 'Keeps the table at one row';
COMMENT ON SEQUENCE :"schema".change_seq IS 'Numbers of runs.change_seq, drawn under the lock of change_clock';

CREATE FUNCTION :"schema".keep_change_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: change_clock keeps its one row: without it nothing can be written to runs';
END $$;
COMMENT ON FUNCTION :"schema".keep_change_clock() IS 'Refuses to empty change_clock, whoever asks';
CREATE TRIGGER keep_row BEFORE DELETE OR TRUNCATE ON :"schema".change_clock
    FOR EACH STATEMENT EXECUTE FUNCTION :"schema".keep_change_clock();
COMMENT ON TRIGGER keep_row ON :"schema".change_clock IS 'The row is never missing';

CREATE FUNCTION :"schema".refuse_missing_clock() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: change_clock has lost its row' USING ERRCODE = 'SF001';
END $$;
COMMENT ON FUNCTION :"schema".refuse_missing_clock() IS 'Fails a commit that found no row in change_clock, so that its cursor does not move either';

CREATE FUNCTION :"schema".refuse_overtaken() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: a run of this commit was not written: another writer has changed it, or a trigger skips it; the commit is tried again' USING ERRCODE = 'SF002';
END $$;
COMMENT ON FUNCTION :"schema".refuse_overtaken() IS 'Fails a commit if another writer has changed one of its runs since it began, so that its cursor does not move either';
-- PostgreSQL gives this by itself, unless it was told to give nothing to everybody.
GRANT EXECUTE ON FUNCTION :"schema".refuse_missing_clock(), :"schema".refuse_overtaken() TO PUBLIC;

-- The copy is taken from the row that is really replaced: a sub-select in the writing statement would see its snapshot.
CREATE FUNCTION :"schema".keep_superseded_run() RETURNS trigger LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
    IF (SELECT keep_history FROM feeds WHERE name = NEW.feed) IS NOT FALSE THEN
        INSERT INTO run_history SELECT clock_timestamp(), OLD.* ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION :"schema".keep_superseded_run() IS 'Copies a row of runs to run_history when a higher revision replaces it';
CREATE TRIGGER keep_superseded AFTER UPDATE ON :"schema".runs
    FOR EACH ROW WHEN (NEW.revision > OLD.revision) EXECUTE FUNCTION :"schema".keep_superseded_run();
COMMENT ON TRIGGER keep_superseded ON :"schema".runs IS 'Keeps superseded revisions';

CREATE FUNCTION :"schema".refuse_older_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'scanfeed: revision % of a scan would go back to %', OLD.revision, NEW.revision;
END $$;
COMMENT ON FUNCTION :"schema".refuse_older_revision() IS 'Refuses to let a stored revision go back, whoever asks';
CREATE TRIGGER refuse_older_revision BEFORE UPDATE ON :"schema".runs
    FOR EACH ROW WHEN (NEW.revision < OLD.revision) EXECUTE FUNCTION :"schema".refuse_older_revision();
COMMENT ON TRIGGER refuse_older_revision ON :"schema".runs IS 'A stored revision never goes back';
