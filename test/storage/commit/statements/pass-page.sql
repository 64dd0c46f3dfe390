-- A page of a pass that lists a scan twice.
-- Locks the feed and the pass: if two processes run the same pass (a leader and a command), the second writes nothing.
WITH locked AS MATERIALIZED (
  SELECT feed.name, feed.data_complete_as_of, feed.cursor AS feed_cursor,
    feed.cursor IS NOT NULL AND feed.cursor_origin IS DISTINCT FROM $1::uuid AS has_gap,
    pass.kind, pass.cursor, pass.until, pass.finished_at
  FROM "scanfeed"."feeds" AS feed JOIN "scanfeed"."passes" AS pass ON pass.feed = feed.name
  WHERE (name = $2 AND lease_epoch = $3 AND COALESCE(lease_holder, '') = $4) AND pass.id = $5::bigint AND pass.begun_at = $6::timestamptz
  FOR NO KEY UPDATE
),

held AS (
  SELECT name, data_complete_as_of, kind AS stored_by, kind = 'history' AND feed_cursor IS NULL AS is_by_time, has_gap
  FROM locked
  WHERE finished_at IS NULL AND cursor IS NOT DISTINCT FROM $7::text AND until = $8::timestamptz
    AND ($9 OR kind <> 'history' OR NOT has_gap)
),

received AS (
  SELECT position, scan_id COLLATE "C" AS scan_id, revision, status COLLATE "C" AS status,
    environment COLLATE "C" AS environment, document_type_slug COLLATE "C" AS document_type_slug, document_type_name,
    file_name #>> '{}' AS file_name,
    COALESCE(partner_test_mode, false) AS partner_test_mode,
    CASE WHEN partner_test_mode IS NOT NULL THEN revision END AS test_mode_revision,
    data AS data,
    failure_reason COLLATE "C" AS failure_reason,
    error #>> '{}' AS error,
    partner_name AS partner_name,
    ocr_confidence::double precision AS ocr_confidence,
    submitted_at::timestamptz AS submitted_at,
    completed_at::timestamptz AS completed_at,
    delivered_at::timestamptz AS delivered_at,
    markdown #>> '{}' AS markdown,
    markdown_absent, pending COLLATE "C" AS pending, repaired, is_answer, extra
  FROM unnest($10::text[], $11::integer[], $12::text[], $13::text[], $14::text[], $15::text[], $16::jsonb[], $17::boolean[], $18::jsonb[], $19::text[], $20::jsonb[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::jsonb[], $27::boolean[], $28::text[], $29::boolean[], $30::boolean[], $31::jsonb[]) WITH ORDINALITY
    AS entry (scan_id, revision, status, environment, document_type_slug, document_type_name, file_name, partner_test_mode, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, pending, repaired, is_answer, extra, position)
),

-- The scans that the page lists more than once, with their highest revision.
repeated AS MATERIALIZED (
  SELECT scan_id, max(revision) AS revision FROM received GROUP BY scan_id HAVING count(*) > 1
),

-- The sources to unite, numbered in their order. Without values, so that sorting is cheap. If the stored row has the same revision, it
-- is the first.
source AS MATERIALIZED (
  SELECT *, row_number() OVER (PARTITION BY scan_id ORDER BY position) AS number, count(*) OVER (PARTITION BY scan_id) AS sources
  FROM (
    SELECT scan_id, position FROM received JOIN repeated USING (scan_id, revision)
    UNION ALL
    SELECT scan_id, 0 FROM "scanfeed"."runs" AS run JOIN repeated USING (scan_id, revision)
  ) AS unnumbered
),

-- Counts the entries of a scan that are not its candidate, with the test mode that all entries state, of any revision.
others AS MATERIALIZED (
  SELECT scan_id,
    GREATEST(count(*) FILTER (WHERE received.revision = repeated.revision AND NOT is_answer)::int - 1, 0) AS others_same,
    count(*) FILTER (WHERE received.revision < repeated.revision AND NOT is_answer)::int AS others_stale,
    max(ARRAY[test_mode_revision, partner_test_mode::int]) FILTER (WHERE test_mode_revision IS NOT NULL) AS test_mode
  FROM received JOIN repeated USING (scan_id) GROUP BY scan_id
),

-- Adds one source after another to their union.
united AS MATERIALIZED (
  WITH RECURSIVE united AS (
    SELECT scan_id, received.revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision, pending, is_answer, 0 AS others_conflicts, number, sources
    FROM source JOIN received USING (scan_id, position) WHERE source.number = 1
    UNION ALL
    SELECT scan_id, run.revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision, pending_reason, false, 0, source.number, source.sources
    FROM source JOIN "scanfeed"."runs" AS run USING (scan_id) WHERE source.position = 0
    UNION ALL
    SELECT united.scan_id, united.revision, united.status,
      CASE WHEN next.environment = 'test' AND next.revision >= united.revision THEN 'test' ELSE united.environment END,
      united.file_name,
      COALESCE(united.document_type_slug, CASE WHEN NOT compared.contradicts THEN next.document_type_slug END),
      COALESCE(united.document_type_name, CASE WHEN NOT compared.contradicts THEN next.document_type_name END),
      COALESCE(united.data, CASE WHEN NOT compared.contradicts THEN next.data END),
      COALESCE(united.failure_reason, CASE WHEN NOT compared.contradicts THEN next.failure_reason END),
      COALESCE(united.error, CASE WHEN NOT compared.contradicts THEN next.error END),
      COALESCE(united.partner_name, CASE WHEN NOT compared.contradicts THEN next.partner_name END),
      COALESCE(united.ocr_confidence, CASE WHEN NOT compared.contradicts THEN next.ocr_confidence END),
      COALESCE(united.submitted_at, CASE WHEN NOT compared.contradicts THEN next.submitted_at END),
      COALESCE(united.completed_at, CASE WHEN NOT compared.contradicts THEN next.completed_at END),
      COALESCE(united.delivered_at, CASE WHEN NOT compared.contradicts THEN next.delivered_at END),
      COALESCE(united.markdown, CASE WHEN NOT compared.contradicts THEN next.markdown END),
      ((united.markdown_absent OR next.markdown_absent AND NOT compared.contradicts)
      AND COALESCE(united.markdown, CASE WHEN NOT compared.contradicts THEN next.markdown END) IS NULL),
      (united.repaired OR next.repaired AND NOT compared.contradicts),
      CASE WHEN compared.contradicts THEN united.extra ELSE CASE WHEN united.extra IS NULL OR next.extra IS NULL THEN COALESCE(united.extra, next.extra)
          ELSE united.extra || next.extra || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(united.extra) WHERE value <> 'null') || CASE WHEN (united.extra->'documentType') IS NULL OR (next.extra->'documentType') IS NULL THEN '{}'
            ELSE jsonb_build_object('documentType', (united.extra->'documentType') || (next.extra->'documentType') || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each((united.extra->'documentType')) WHERE value <> 'null')) END END END,
      CASE WHEN COALESCE((next.test_mode_revision, next.partner_test_mode)
    > (COALESCE(united.test_mode_revision, 0), united.partner_test_mode), false) THEN next.partner_test_mode ELSE united.partner_test_mode END,
      CASE WHEN COALESCE((next.test_mode_revision, next.partner_test_mode)
    > (COALESCE(united.test_mode_revision, 0), united.partner_test_mode), false) THEN next.test_mode_revision ELSE united.test_mode_revision END,
      CASE WHEN (COALESCE(united.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (united.data IS NOT NULL OR united.status = 'failed')) OR (COALESCE(next.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (next.data IS NOT NULL OR next.status = 'failed')) AND NOT compared.contradicts
          THEN CASE WHEN false AND united.status = 'completed' AND (united.pending IS NOT NULL OR COALESCE((next.test_mode_revision, next.partner_test_mode)
    > (COALESCE(united.test_mode_revision, 0), united.partner_test_mode), false))
            THEN 'test_mode_unknown' END
          ELSE COALESCE(united.pending, CASE WHEN NOT compared.contradicts THEN next.pending END) END, united.is_answer OR next.is_answer,
      united.others_conflicts + (compared.contradicts OR (united.environment <> next.environment
        OR COALESCE(united.test_mode_revision = next.test_mode_revision, false)
          AND united.partner_test_mode <> next.partner_test_mode))::int,
      source.number, united.sources
    FROM united
    JOIN source ON source.scan_id = united.scan_id AND source.number = united.number + 1
    JOIN received AS next ON next.position = source.position
    CROSS JOIN LATERAL (SELECT COALESCE(
        united.status <> next.status OR united.document_type_slug <> next.document_type_slug OR united.failure_reason <> next.failure_reason OR united.error <> next.error
        -- Fast path: usually byte-identical.
        OR NOT ROW(united.data)::record OPERATOR(pg_catalog.*=) ROW(next.data)::record AND united.data <> next.data, false) AS contradicts OFFSET 0) AS compared
  )
  SELECT * FROM united WHERE number = sources
),

-- The candidate of each scan. others_* counts its other entries.
candidate AS (
  SELECT scan_id, revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision, pending, is_answer,
    false AS united, 0 AS others_same, 0 AS others_stale, 0 AS others_conflicts
  FROM received WHERE scan_id NOT IN (SELECT scan_id FROM repeated)
  UNION ALL
  SELECT scan_id, revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra,
    COALESCE(test_mode[2] = 1, false), test_mode[1], pending, is_answer,
    true, others_same, others_stale, others_conflicts
  FROM united JOIN others USING (scan_id)
),

-- Each candidate with a verdict after comparison with the stored row. The test mode is that of the row if no higher revision states it.
judged AS MATERIALIZED (
  SELECT candidate.scan_id, candidate.revision, candidate.status, candidate.environment, candidate.file_name, candidate.document_type_slug, candidate.document_type_name, candidate.data, candidate.failure_reason, candidate.error, candidate.partner_name, candidate.ocr_confidence, candidate.submitted_at, candidate.completed_at, candidate.delivered_at, candidate.markdown, candidate.markdown_absent, candidate.repaired, candidate.extra, candidate.is_answer,
    candidate.others_same, candidate.others_stale, candidate.others_conflicts,
    stated.*, compared.*, (stated.partner_test_mode AND stated.test_mode_revision < GREATEST(candidate.revision, known.revision)
        AND NOT (candidate.is_answer AND candidate.revision >= known.revision)) AS in_doubt, deleted.scan_id IS NOT NULL AS was_deleted,
    CASE WHEN candidate.revision = known.revision THEN candidate.pending
      ELSE CASE WHEN (stated.partner_test_mode AND stated.test_mode_revision < GREATEST(candidate.revision, known.revision)
        AND NOT (candidate.is_answer AND candidate.revision >= known.revision)) AND candidate.status = 'completed' AND (COALESCE(candidate.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (candidate.data IS NOT NULL OR candidate.status = 'failed')) THEN 'test_mode_unknown'
      ELSE candidate.pending END END AS pending,
    CASE
      WHEN candidate.revision < known.revision AND compared.restates THEN 'restates'
      WHEN (deleted.scan_id IS NOT NULL
        AND (deleted.revision IS NULL OR candidate.revision <= deleted.revision)) THEN 'deleted'
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN (
        candidate.environment = 'test' AND known.environment <> 'test'
        OR compared.restates
        OR NOT compared.contradicts AND (
          known.document_type_slug IS NULL AND candidate.document_type_slug IS NOT NULL
          OR known.document_type_name IS NULL AND candidate.document_type_name IS NOT NULL
          OR known.data IS NULL AND candidate.data IS NOT NULL
          OR known.failure_reason IS NULL AND candidate.failure_reason IS NOT NULL
          OR known.error IS NULL AND candidate.error IS NOT NULL
          OR known.partner_name IS NULL AND candidate.partner_name IS NOT NULL
          OR known.ocr_confidence IS NULL AND candidate.ocr_confidence IS NOT NULL
          OR known.submitted_at IS NULL AND candidate.submitted_at IS NOT NULL
          OR known.completed_at IS NULL AND candidate.completed_at IS NOT NULL
          OR known.delivered_at IS NULL AND candidate.delivered_at IS NOT NULL
          OR known.markdown IS NULL AND candidate.markdown IS NOT NULL
          OR candidate.markdown_absent AND NOT known.markdown_absent AND known.markdown IS NULL
          OR candidate.repaired AND NOT known.repaired
          OR candidate.extra IS DISTINCT FROM known.extra AND CASE WHEN known.extra IS NULL OR candidate.extra IS NULL THEN COALESCE(known.extra, candidate.extra)
          ELSE known.extra || candidate.extra || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(known.extra) WHERE value <> 'null') || CASE WHEN (known.extra->'documentType') IS NULL OR (candidate.extra->'documentType') IS NULL THEN '{}'
            ELSE jsonb_build_object('documentType', (known.extra->'documentType') || (candidate.extra->'documentType') || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each((known.extra->'documentType')) WHERE value <> 'null')) END END IS DISTINCT FROM known.extra)
        OR known.pending_reason IS DISTINCT FROM CASE WHEN (COALESCE(known.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (known.data IS NOT NULL OR known.status = 'failed')) OR (COALESCE(candidate.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (candidate.data IS NOT NULL OR candidate.status = 'failed')) AND NOT compared.contradicts
          THEN CASE WHEN (stated.partner_test_mode AND stated.test_mode_revision < GREATEST(candidate.revision, known.revision)
        AND NOT (candidate.is_answer AND candidate.revision >= known.revision)) AND known.status = 'completed' AND (known.pending_reason IS NOT NULL OR compared.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(known.pending_reason, CASE WHEN NOT compared.contradicts THEN candidate.pending END) END) THEN 'completes'
      ELSE 'same'
    END AS verdict,
    -- Entries that were united with the stored row were compared with it already.
    COALESCE(NOT candidate.united AND candidate.revision = known.revision
      AND (compared.contradicts OR (known.environment <> candidate.environment
        OR COALESCE(known.test_mode_revision = candidate.test_mode_revision, false)
          AND known.partner_test_mode <> candidate.partner_test_mode)), false) AS conflicting
  FROM candidate
  -- LIMIT makes PostgreSQL look up each scan by the index, also with a plan that was made when the tables were empty.
  LEFT JOIN LATERAL (
    SELECT * FROM "scanfeed"."runs" AS run WHERE run.scan_id = candidate.scan_id LIMIT 1
  ) AS known ON true
  LEFT JOIN LATERAL (
    SELECT * FROM "scanfeed"."deleted_runs" AS run WHERE run.scan_id = candidate.scan_id LIMIT 1
  ) AS deleted ON true
  -- OFFSET 0 makes PostgreSQL compare the contents only once.
  CROSS JOIN LATERAL (
    SELECT candidate.revision < known.revision
        OR candidate.revision = known.revision AND COALESCE(
        known.status <> candidate.status OR known.document_type_slug <> candidate.document_type_slug OR known.failure_reason <> candidate.failure_reason OR known.error <> candidate.error
        -- Fast path: usually byte-identical.
        OR NOT ROW(known.data)::record OPERATOR(pg_catalog.*=) ROW(candidate.data)::record AND known.data <> candidate.data, false) AS contradicts,
      COALESCE((candidate.test_mode_revision, candidate.partner_test_mode)
    > (COALESCE(known.test_mode_revision, 0), known.partner_test_mode), false) AS restates
    OFFSET 0
  ) AS compared
  CROSS JOIN LATERAL ( -- no run is both stored and deleted
    SELECT CASE WHEN compared.restates THEN candidate.partner_test_mode
        ELSE COALESCE(known.partner_test_mode, deleted.test_mode_revision IS NOT NULL) END AS partner_test_mode,
      GREATEST(candidate.test_mode_revision, known.test_mode_revision, deleted.test_mode_revision) AS test_mode_revision
  ) AS stated
),

-- A writer holds this lock while it draws change numbers, until it commits, so the order of numbers is the order of commits. A
-- trigger of quarantine does the same for runs that become productive, or cease to be, with the entries below.
number_lock AS MATERIALIZED (
  SELECT "scanfeed"."lock_change_clock"() AS locked
  WHERE EXISTS (SELECT FROM held) AND EXISTS (SELECT FROM judged WHERE verdict IN ('new', 'newer', 'completes', 'restates'))
),

-- Writes new scans and higher revisions, and returns which of the two each is: a replaced row keeps first_synced_at. After
-- waiting for another writer, PostgreSQL checks the revision again on the current row. Stored rows are locked in the order
-- of their scan ids, so that writers do not deadlock. New scans need no order, and sorting costs time.
stored AS (
  INSERT INTO "scanfeed"."runs" AS run (scan_id, first_synced_at, revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision, result_state, pending_reason, pending_since, next_try_at, attempts, pending_for, feed, stored_by, synced_at, change_seq)
  SELECT scan_id, statement_timestamp() AS first_synced_at, revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision,
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END AS result_state,
    pending AS pending_reason,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END AS pending_since,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp()
      + CASE WHEN judged.pending = 'no_memory' THEN 0 ELSE $32 END * interval '1 millisecond' END AS next_try_at,
    0 AS attempts, NULL AS pending_for,
    $33 AS feed, (SELECT stored_by FROM held), statement_timestamp() AS synced_at, nextval('"scanfeed".change_seq'::regclass) AS change_seq
  FROM (
    SELECT * FROM judged WHERE verdict = 'new'
    UNION ALL
    (SELECT * FROM judged WHERE verdict = 'newer' ORDER BY scan_id)
  ) AS judged
  WHERE EXISTS (SELECT FROM number_lock) -- a join would keep a copy of all rows
  ON CONFLICT (scan_id) DO UPDATE SET
    (revision, status, environment, file_name, document_type_slug, document_type_name, data, failure_reason, error, partner_name, ocr_confidence, submitted_at, completed_at, delivered_at, markdown, markdown_absent, repaired, extra, partner_test_mode, test_mode_revision, result_state, pending_reason, pending_since, next_try_at, attempts, pending_for, feed, stored_by, synced_at, change_seq)
    = ROW (excluded.revision, excluded.status, excluded.environment, excluded.file_name, excluded.document_type_slug, excluded.document_type_name, excluded.data, excluded.failure_reason, excluded.error, excluded.partner_name, excluded.ocr_confidence, excluded.submitted_at, excluded.completed_at, excluded.delivered_at, excluded.markdown, excluded.markdown_absent, excluded.repaired, excluded.extra, excluded.partner_test_mode, excluded.test_mode_revision, excluded.result_state, excluded.pending_reason, excluded.pending_since, excluded.next_try_at, excluded.attempts, excluded.pending_for, excluded.feed, excluded.stored_by, excluded.synced_at, excluded.change_seq)
  WHERE excluded.revision > run.revision AND NOT COALESCE((run.test_mode_revision, run.partner_test_mode)
    > (COALESCE(excluded.test_mode_revision, 0), excluded.partner_test_mode), false)
  RETURNING run.scan_id, run.first_synced_at = statement_timestamp() AS inserted
),

-- Adds values of the entry to rows whose revision is stored already, and the test mode of a lower revision to rows whose own sources
-- do not state it. Another writer may have changed the row since it was judged.
filled AS (
  UPDATE "scanfeed"."runs" AS run SET
    "document_type_slug" = COALESCE(run.document_type_slug, CASE WHEN NOT judged.contradicts THEN judged.document_type_slug END),
    "document_type_name" = COALESCE(run.document_type_name, CASE WHEN NOT judged.contradicts THEN judged.document_type_name END),
    "data" = COALESCE(run.data, CASE WHEN NOT judged.contradicts THEN judged.data END),
    "failure_reason" = COALESCE(run.failure_reason, CASE WHEN NOT judged.contradicts THEN judged.failure_reason END),
    "error" = COALESCE(run.error, CASE WHEN NOT judged.contradicts THEN judged.error END),
    "partner_name" = COALESCE(run.partner_name, CASE WHEN NOT judged.contradicts THEN judged.partner_name END),
    "ocr_confidence" = COALESCE(run.ocr_confidence, CASE WHEN NOT judged.contradicts THEN judged.ocr_confidence END),
    "submitted_at" = COALESCE(run.submitted_at, CASE WHEN NOT judged.contradicts THEN judged.submitted_at END),
    "completed_at" = COALESCE(run.completed_at, CASE WHEN NOT judged.contradicts THEN judged.completed_at END),
    "delivered_at" = COALESCE(run.delivered_at, CASE WHEN NOT judged.contradicts THEN judged.delivered_at END),
    "markdown" = COALESCE(run.markdown, CASE WHEN NOT judged.contradicts THEN judged.markdown END),
    "status" = run.status,
    "file_name" = run.file_name,
    "environment" = CASE WHEN judged.environment = 'test' AND judged.revision >= run.revision THEN 'test' ELSE run.environment END,
    "partner_test_mode" = CASE WHEN judged.restates THEN judged.partner_test_mode ELSE run.partner_test_mode END,
    "test_mode_revision" = CASE WHEN judged.restates THEN judged.test_mode_revision ELSE run.test_mode_revision END,
    "markdown_absent" = ((run.markdown_absent OR judged.markdown_absent AND NOT judged.contradicts)
      AND COALESCE(run.markdown, CASE WHEN NOT judged.contradicts THEN judged.markdown END) IS NULL),
    "repaired" = (run.repaired OR judged.repaired AND NOT judged.contradicts),
    "extra" = CASE WHEN judged.contradicts THEN run.extra ELSE CASE WHEN run.extra IS NULL OR judged.extra IS NULL THEN COALESCE(run.extra, judged.extra)
          ELSE run.extra || judged.extra || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(run.extra) WHERE value <> 'null') || CASE WHEN (run.extra->'documentType') IS NULL OR (judged.extra->'documentType') IS NULL THEN '{}'
            ELSE jsonb_build_object('documentType', (run.extra->'documentType') || (judged.extra->'documentType') || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each((run.extra->'documentType')) WHERE value <> 'null')) END END END,
    result_state = CASE WHEN CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END IS NULL THEN 'complete' ELSE 'pending' END,
    pending_reason = CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END,
    pending_since = CASE WHEN CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END IS NOT NULL THEN COALESCE(run.pending_since, statement_timestamp()) END,
    next_try_at = CASE WHEN CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END IS NOT NULL THEN COALESCE(run.next_try_at, statement_timestamp()
      + CASE WHEN judged.pending = 'no_memory' THEN 0 ELSE $34 END * interval '1 millisecond') END,
    attempts = COALESCE(CASE WHEN CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END IS NOT NULL THEN run.attempts END, 0),
    pending_for = CASE WHEN CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END IS NULL THEN COALESCE(statement_timestamp() - run.pending_since, run.pending_for) END,
    feed = CASE WHEN judged.verdict = 'completes' THEN $35 ELSE run.feed END,
    synced_at = statement_timestamp(),
    change_seq = nextval('"scanfeed".change_seq'::regclass)
  FROM number_lock CROSS JOIN judged
  WHERE judged.verdict IN ('completes', 'restates') AND run.scan_id = judged.scan_id AND CASE judged.verdict
    WHEN 'completes' THEN run.revision = judged.revision AND COALESCE(
        run.status <> judged.status OR run.document_type_slug <> judged.document_type_slug OR run.failure_reason <> judged.failure_reason OR run.error <> judged.error
        -- Fast path: usually byte-identical.
        OR NOT ROW(run.data)::record OPERATOR(pg_catalog.*=) ROW(judged.data)::record AND run.data <> judged.data, false) = judged.contradicts
      AND NOT COALESCE((run.test_mode_revision, run.partner_test_mode)
    > (COALESCE(judged.test_mode_revision, 0), judged.partner_test_mode), false) AND (
        judged.environment = 'test' AND run.environment <> 'test'
        OR judged.restates
        OR NOT judged.contradicts AND (
          run.document_type_slug IS NULL AND judged.document_type_slug IS NOT NULL
          OR run.document_type_name IS NULL AND judged.document_type_name IS NOT NULL
          OR run.data IS NULL AND judged.data IS NOT NULL
          OR run.failure_reason IS NULL AND judged.failure_reason IS NOT NULL
          OR run.error IS NULL AND judged.error IS NOT NULL
          OR run.partner_name IS NULL AND judged.partner_name IS NOT NULL
          OR run.ocr_confidence IS NULL AND judged.ocr_confidence IS NOT NULL
          OR run.submitted_at IS NULL AND judged.submitted_at IS NOT NULL
          OR run.completed_at IS NULL AND judged.completed_at IS NOT NULL
          OR run.delivered_at IS NULL AND judged.delivered_at IS NOT NULL
          OR run.markdown IS NULL AND judged.markdown IS NOT NULL
          OR judged.markdown_absent AND NOT run.markdown_absent AND run.markdown IS NULL
          OR judged.repaired AND NOT run.repaired
          OR judged.extra IS DISTINCT FROM run.extra AND CASE WHEN run.extra IS NULL OR judged.extra IS NULL THEN COALESCE(run.extra, judged.extra)
          ELSE run.extra || judged.extra || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(run.extra) WHERE value <> 'null') || CASE WHEN (run.extra->'documentType') IS NULL OR (judged.extra->'documentType') IS NULL THEN '{}'
            ELSE jsonb_build_object('documentType', (run.extra->'documentType') || (judged.extra->'documentType') || (SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each((run.extra->'documentType')) WHERE value <> 'null')) END END IS DISTINCT FROM run.extra)
        OR run.pending_reason IS DISTINCT FROM CASE WHEN (COALESCE(run.pending_reason, 'test_mode_unknown') = 'test_mode_unknown'
          AND (run.data IS NOT NULL OR run.status = 'failed')) OR (COALESCE(judged.pending, 'test_mode_unknown') = 'test_mode_unknown'
          AND (judged.data IS NOT NULL OR judged.status = 'failed')) AND NOT judged.contradicts
          THEN CASE WHEN judged.in_doubt AND run.status = 'completed' AND (run.pending_reason IS NOT NULL OR judged.restates)
            THEN 'test_mode_unknown' END
          ELSE COALESCE(run.pending_reason, CASE WHEN NOT judged.contradicts THEN judged.pending END) END)
    ELSE run.revision > judged.revision AND COALESCE((judged.test_mode_revision, judged.partner_test_mode)
    > (COALESCE(run.test_mode_revision, 0), run.partner_test_mode), false) END
  RETURNING run.scan_id
),

-- Entries that could not be written as judged because another writer has changed or deleted their row since. They fail the
-- statement.
overtaken AS MATERIALIZED (
  SELECT scan_id FROM judged WHERE verdict IN ('new', 'newer', 'completes', 'restates')
    AND scan_id NOT IN (SELECT scan_id FROM stored UNION ALL SELECT scan_id FROM filled)
  UNION ALL
  SELECT scan_id FROM judged WHERE verdict = 'newer' AND scan_id IN (SELECT scan_id FROM stored WHERE inserted)
),

-- Expired runs of which a later revision is now stored are no longer deleted.
restored AS (
  DELETE FROM "scanfeed"."deleted_runs" AS deleted USING judged
  WHERE EXISTS (SELECT FROM number_lock) AND judged.verdict = 'new' AND judged.was_deleted
    AND deleted.scan_id = judged.scan_id
),

-- The unusable entries. An entry is superseded if its revision or a higher one is stored, or stored by this statement. Each identity
-- is kept once: preferably as an entry that is not stored in any form, else as the original of a repaired one.
unusable AS MATERIALIZED (
  SELECT DISTINCT ON (identity) *
  FROM (
    SELECT *, state = 'open' AND (
      EXISTS (SELECT FROM judged
        WHERE judged.scan_id = entry.scan_id AND judged.revision >= entry.revision AND judged.verdict <> 'deleted')
      OR EXISTS (SELECT FROM "scanfeed"."runs" AS run WHERE run.scan_id = entry.scan_id AND run.revision >= entry.revision)
    ) AS superseded
    FROM jsonb_to_recordset($36::jsonb) AS entry (
      position integer, identity text, scan_id text, revision integer, reason text, detail text, state text
    )
    WHERE NOT EXISTS (SELECT FROM "scanfeed"."deleted_runs" AS deleted
      WHERE deleted.scan_id = entry.scan_id AND (deleted.scan_id IS NOT NULL
        AND (deleted.revision IS NULL OR entry.revision <= deleted.revision)))
  ) AS entry
  ORDER BY identity, superseded, state
),

-- Stores the unusable entries, or counts that they were delivered again. A superseded entry is not open.
quarantined AS (
  INSERT INTO "scanfeed"."quarantine" AS known (feed, identity, scan_id, revision, reason, detail, payload, state)
  SELECT $37, identity, scan_id, revision, reason, detail, payload,
    CASE WHEN superseded THEN 'discarded' ELSE state END
  FROM unusable JOIN (VALUES ($38::integer, $39::bytea)) AS payloads (position, payload) USING (position)
  WHERE EXISTS (SELECT FROM held)
  ON CONFLICT (feed, identity) DO UPDATE SET
    last_seen_at = clock_timestamp(),
    times_seen = known.times_seen + 1,
    -- If the open entry is now stored after a repair, its original is kept.
    (reason, detail, payload) = ROW (
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.reason ELSE known.reason END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.detail ELSE known.detail END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.payload ELSE known.payload END),
    state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END
  RETURNING state, times_seen = 1 AS is_new
),

-- Closes open entries of earlier pages whose run is now stored.
closed AS (
  UPDATE "scanfeed"."quarantine" AS open SET
    state = CASE WHEN open.revision = judged.revision THEN 'replayed' ELSE 'discarded' END
  FROM judged
  WHERE EXISTS (SELECT FROM held) AND open.state = 'open' AND open.feed = $40
    AND open.scan_id = judged.scan_id AND open.revision <= judged.revision AND judged.verdict <> 'deleted'
    AND open.identity NOT IN (SELECT identity FROM unusable)
),

-- What the parts above did. The last column fails the statement.
counts AS MATERIALIZED (
  SELECT
    (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
    (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
    (SELECT count(*)::int FROM filled) AS filled,
    judged_counts.same AS unchanged, judged_counts.stale, judged_counts.conflicts,
    (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
    (SELECT json_agg(scan_id) FROM stored) AS stored,
    EXISTS (SELECT FROM stored) OR EXISTS (SELECT FROM filled)
      OR EXISTS (SELECT FROM quarantined WHERE is_new AND state <> 'repaired') AS brings_new,
    CASE WHEN EXISTS (SELECT FROM overtaken) THEN "scanfeed"."refuse_overtaken"() END AS overtaken
  FROM held CROSS JOIN (
    SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
      COALESCE(sum((verdict IN ('stale', 'deleted'))::int + others_stale), 0)::int AS stale,
      COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
    FROM judged
  ) AS judged_counts
),

moved AS (
  UPDATE "scanfeed"."passes" AS pass SET
    cursor = $41::text,
    delivered_up_to = GREATEST(pass.delivered_up_to, $42::timestamptz),
    entries = pass.entries + $43,
    stored = pass.stored + counts.inserted + counts.updated,
    complete_as_of = CASE WHEN pass.complete_as_of > to_timestamp($44::double precision / 1000) THEN
        CASE WHEN to_timestamp($45::double precision / 1000) >= pass.begun_at - $46 * interval '1 millisecond' THEN to_timestamp($47::double precision / 1000) ELSE '-infinity' END
      ELSE pass.complete_as_of END,
    last_commit_at = clock_timestamp(),
    entries_per_second = $48::double precision,
    seconds_left = $49::double precision,
    rate_measured_at = NULL,
    finished_at = CASE WHEN ($50::text = 'yes' OR $51::text = 'ifNothingNew' AND NOT counts.brings_new) THEN clock_timestamp() END
  FROM held CROSS JOIN counts
  WHERE pass.id = $52::bigint
  RETURNING pass.*, held.is_by_time, held.has_gap,
    CASE WHEN pass.finished_at IS NULL OR NOT held.is_by_time THEN held.data_complete_as_of END AS data_complete_as_of
),

-- At the end of the pass: what it proves about the feed.
claimed AS (
  UPDATE "scanfeed"."feeds" AS feed SET
    reconciled_as_of = (SELECT max(time) FROM (VALUES (feed.reconciled_as_of), (moved.complete_as_of)) AS known (time)
      WHERE time > '-infinity' AND time <= clock_timestamp()), -- later: the clock was set back
    start_since = CASE WHEN moved.kind = 'history' THEN moved.since ELSE feed.start_since END,
    data_complete_as_of = moved.data_complete_as_of,
    cursor = CASE WHEN moved.is_by_time AND feed.resume_since IS NULL THEN moved.cursor ELSE feed.cursor END,
    lease_epoch = feed.lease_epoch + moved.is_by_time::int, -- fences pages of the feed that were read by time
    complete_from = CASE
      WHEN moved.kind = 'recent' OR moved.begun_at <= feed.filters_widened_at OR moved.complete_as_of = '-infinity'
        OR LEAST(moved.complete_as_of, to_timestamp($53::double precision / 1000)) < feed.filters_widened_at THEN feed.complete_from
      WHEN moved.kind = 'backfill' AND feed.start_since IS NOT NULL
        AND (feed.cursor IS NULL OR moved.has_gap OR moved.until < feed.read_by_time_until) THEN feed.complete_from
      -- A backfill must overlap with what is complete, to allow for differing clocks.
      WHEN moved.kind IN ('full', 'history') OR moved.until >= feed.complete_from + interval '1 hour'
        THEN LEAST(feed.complete_from, COALESCE(moved.since, '-infinity'))
      ELSE feed.complete_from END
  FROM moved WHERE feed.name = moved.feed AND moved.finished_at IS NOT NULL
)

SELECT moved.feed AS name, counts.*, moved.finished_at IS NOT NULL AS end_claimed, moved.data_complete_as_of,
  extract(epoch FROM clock_timestamp() - moved.data_complete_as_of)::double precision * 1000 AS lag_ms, extract(epoch FROM clock_timestamp())::double precision * 1000 as "database_ms" FROM moved CROSS JOIN counts
