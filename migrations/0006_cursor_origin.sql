-- A history pass may end only if the feed has kept its cursor since before the last page of the pass was requested. A failover can take
-- the cursor away, and the feed may get one further ahead. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0006_cursor_origin.sql
-- works-from: 4

ALTER TABLE :"schema".feeds ADD COLUMN cursor_origin uuid NOT NULL DEFAULT gen_random_uuid();
COMMENT ON COLUMN :"schema".feeds.cursor_origin IS 'Identifies an unbroken series of cursors: it changes when the feed gets a cursor while it has none';
