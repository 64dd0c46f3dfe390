-- The unusable entries of a page that are in quarantine already.
SELECT bad.identity, COALESCE(known.state, 'deleted') AS state
    FROM unnest($1::text[], $2::text[], $3::integer[]) AS bad (identity, scan_id, revision)
    LEFT JOIN "scanfeed"."quarantine" AS known ON known.feed = $4 AND known.identity = bad.identity
    LEFT JOIN "scanfeed"."deleted_runs" AS deleted ON deleted.scan_id = bad.scan_id
    WHERE known.state IS NOT NULL OR (deleted.scan_id IS NOT NULL
        AND (deleted.revision IS NULL OR bad.revision <= deleted.revision))
