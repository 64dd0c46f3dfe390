-- A process has a lease, and a feed names its holder. To try this file by hand:
--   psql --single-transaction --set schema=scanfeed --set reporting=scanfeed_reporting --file migrations/0004_process_leases.sql
-- works-from: 4

-- Each table is locked before its rows: a commit that has locked a row could not end otherwise.
ALTER TABLE :"schema".feeds
    DROP COLUMN lease_renewed_at,
    DROP COLUMN lease_expires_at,
    ADD COLUMN lease_home text COLLATE "C";
ALTER TABLE :"schema".processes RENAME COLUMN checked_in_at TO renewed_at;
ALTER TABLE :"schema".processes ADD COLUMN unusable text[] COLLATE "C" NOT NULL DEFAULT '{}';

-- A new epoch fences the processes of the release before, which renew the leases of feeds.
UPDATE :"schema".feeds SET lease_holder = NULL, lease_epoch = lease_epoch + 1;
DELETE FROM :"schema".processes;

COMMENT ON COLUMN :"schema".feeds.lease_holder IS 'Process that leads the feed while it is alive according to processes; null: none';
COMMENT ON COLUMN :"schema".feeds.lease_home IS 'Schema of the settings of the process in lease_holder, which is in the table processes of that schema; null: this schema';
COMMENT ON COLUMN :"schema".feeds.lease_epoch IS 'Raised when a process takes the feed and when the feed is rewound; a commit with another epoch writes nothing';

COMMENT ON TABLE :"schema".processes IS 'Processes whose settings have this schema; they lead feeds in this schema or others, and share them evenly';
COMMENT ON COLUMN :"schema".processes.renewed_at IS 'When it last renewed its lease; a time in the future shows that the clock of this database was set back';
COMMENT ON COLUMN :"schema".processes.expires_at IS 'When its lease expires unless it is renewed, clock of this database; then other processes take its feeds';
COMMENT ON COLUMN :"schema".processes.unusable IS 'Schemas whose feeds it can no longer read; there it does not count as alive';
