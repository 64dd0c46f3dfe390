-- Pages without entries of several feeds.
WITH sent AS MATERIALIZED (
  SELECT feed, epoch, holder, from_cursor, to_cursor, end_claim, last_delivered_at,
    to_timestamp((polled_ms - abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_ms)) / 1000) AS polled_at,
    to_timestamp((complete_up_to_ms - abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_ms)) / 1000) AS complete_up_to
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::double precision[], $9::double precision[], $10::double precision[])
    AS page (feed, epoch, holder, from_cursor, to_cursor, end_claim, last_delivered_at, polled_ms, complete_up_to_ms, sent_ms)
),

-- May wait for the commit before. A condition on the cursor would be applied here to the row before the wait, and would not match.
locked AS MATERIALIZED (
  SELECT feed.name, feed.cursor, feed.delivered_up_to
  FROM "scanfeed"."feeds" AS feed JOIN sent ON (name = sent.feed AND lease_epoch = sent.epoch AND COALESCE(lease_holder, '') = sent.holder)
  FOR NO KEY UPDATE OF feed SKIP LOCKED
),

held AS (
  SELECT sent.*, locked.name, locked.delivered_up_to, 'feed' AS stored_by
  FROM sent JOIN locked ON locked.name = sent.feed AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor
),

counts AS (
  SELECT 0 AS inserted, 0 AS updated, false AS brings_new
),

-- Commits that overlap may each add a checkpoint. It has the last delivery of its own page: the feed may have read further before it
-- was rewound.
checkpoint AS (
  INSERT INTO "scanfeed"."cursor_history" (feed, cursor, last_delivered_at, reason)
  SELECT name, to_cursor, COALESCE(last_delivered_at, delivered_up_to), 'checkpoint'
  FROM held
  WHERE to_cursor IS DISTINCT FROM from_cursor AND COALESCE(abs(extract(epoch FROM clock_timestamp() - ( -- negative if the clock was set back
    SELECT noted_at FROM "scanfeed"."cursor_history" AS noted WHERE noted.feed = held.name ORDER BY id DESC LIMIT 1
  ))) > 300, true)
  RETURNING feed, id
),

pruned AS (
  DELETE FROM "scanfeed"."cursor_history" AS earlier USING checkpoint AS added
  WHERE earlier.feed = added.feed AND earlier.id <= (
    SELECT id FROM "scanfeed"."cursor_history" AS kept WHERE kept.feed = added.feed
    ORDER BY id DESC OFFSET 300 - 1 LIMIT 1
  )
),

moved AS (
  UPDATE "scanfeed"."feeds" AS feed SET
    cursor = held.to_cursor,
    resume_since = CASE WHEN held.to_cursor IS NULL THEN feed.resume_since END,
    cursor_origin = CASE WHEN held.from_cursor IS NULL THEN gen_random_uuid() ELSE feed.cursor_origin END,
    read_by_time_until = CASE WHEN held.from_cursor IS NULL THEN COALESCE(held.last_delivered_at, clock_timestamp())
      ELSE feed.read_by_time_until END,
    end_reached_at = CASE WHEN (held.end_claim = 'yes' OR held.end_claim = 'ifNothingNew' AND NOT counts.brings_new) THEN COALESCE(feed.end_reached_at, clock_timestamp()) ELSE feed.end_reached_at END,
    last_delivered_at = GREATEST(feed.last_delivered_at, held.last_delivered_at),
    delivered_up_to = GREATEST(feed.delivered_up_to, held.last_delivered_at),
    last_poll_at = held.polled_at,
    last_commit_at = clock_timestamp(),
    -- A page that was requested by the time of a rewind proves nothing: it may leave out runs of any delivery time.
    data_complete_as_of = GREATEST(
      CASE WHEN held.from_cursor IS NOT NULL OR feed.resume_since IS NULL
        THEN CASE WHEN (held.end_claim = 'yes' OR held.end_claim = 'ifNothingNew' AND NOT counts.brings_new) THEN held.polled_at ELSE held.complete_up_to END END,
      CASE WHEN GREATEST(feed.last_commit_at, feed.data_complete_as_of) <= clock_timestamp()
      THEN feed.data_complete_as_of END)
  FROM held CROSS JOIN counts
  WHERE feed.name = held.name
  RETURNING feed.name, feed.data_complete_as_of, counts.*, (held.end_claim = 'yes' OR held.end_claim = 'ifNothingNew' AND NOT counts.brings_new) AS end_claimed
)

SELECT moved.*, extract(epoch FROM clock_timestamp() - moved.data_complete_as_of)::double precision * 1000 AS lag_ms, extract(epoch FROM clock_timestamp())::double precision * 1000 as "database_ms" FROM moved
