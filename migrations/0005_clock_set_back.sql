-- sync_status claims nothing about a feed whose last commit is in the future: the clock of the database was set back. While a process
-- leads the feed, it forgets how fresh the feed is; this is for the time in which none does. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0005_clock_set_back.sql
-- works-from: 4

CREATE OR REPLACE VIEW :"reporting".sync_status WITH (security_invoker = false) AS
SELECT name AS feed, fresh.data_complete_as_of,
    COALESCE(extract(epoch FROM clock_timestamp() - fresh.data_complete_as_of)::double precision, 'Infinity') AS lag_seconds,
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
FROM :"schema".feeds AS feed CROSS JOIN LATERAL (
    SELECT CASE WHEN GREATEST(feed.last_commit_at, feed.data_complete_as_of) <= clock_timestamp()
        THEN feed.data_complete_as_of END AS data_complete_as_of) AS fresh;
COMMENT ON COLUMN :"reporting".sync_status.data_complete_as_of IS 'Time up to which every entry that the feed listed since complete_from is in runs or in quarantine; runs may be pending. Null while unknown, for example after the clock was set back to an earlier time. Clock of this database';
