-- The processes that share many feeds. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0003_processes.sql
-- works-from: 2

CREATE TABLE :"schema".processes (
    holder        text COLLATE "C" PRIMARY KEY,
    feeds         integer NOT NULL,
    checked_in_at timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL
);
COMMENT ON TABLE :"schema".processes IS 'Processes that follow several feeds, in this schema or others, and share them evenly';
COMMENT ON COLUMN :"schema".processes.holder IS 'Name of the process, as in feeds.lease_holder';
COMMENT ON COLUMN :"schema".processes.feeds IS 'Number of feeds that it follows';
COMMENT ON COLUMN :"schema".processes.checked_in_at IS 'When it last checked in; a time in the future shows that the clock of this database was set back';
COMMENT ON COLUMN :"schema".processes.expires_at IS 'When it is considered gone unless it checks in again, clock of this database';
