import { DATABASE_KINDS } from '../../core/errors.js';
import type { Stage } from '../../sync/ports/index.js';

/**
 * All metrics of scanfeed. A test compares docs/metrics.md with them.
 */

export const POLL_OUTCOMES = ['entries', 'skipped', 'end', 'stuck', 'failed'] as const;
export const RUN_OUTCOMES = ['inserted', 'updated', 'unchanged', 'stale', 'quarantined'] as const;
export const TRUNCATED_OUTCOMES = ['resolved', 'pending', 'skipped'] as const;
/** Tables that the retention removes rows from. */
export const PURGED_TABLES = ['runs', 'run_history', 'quarantine'] as const;
export const RECONCILE_REVISIONS = ['first', 'later'] as const;
export const POOL_STATES = ['active', 'idle', 'waiting'] as const;
/** Requests of the daemon: pages of the feed, and single runs. */
export const OPERATIONS = ['feed', 'run'] as const;

const REQUEST_FAILURES = [
  'timeout',
  'connection',
  'proxy',
  'certificate',
  'cut_body',
  'bad_http',
  'not_json',
  'wrong_shape',
  'too_large',
  'too_many_values',
  'too_many_entries',
] as const;

/** Kinds of failures of the service, of the database, and of the feed. Any other kind is counted as `other`. */
export const ERROR_KINDS: readonly string[] = [
  ...[400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504, 'other'].map((status) => `http_${status}`),
  'redirect',
  ...REQUEST_FAILURES,
  ...DATABASE_KINDS,
  'another_service',
  'another_organization',
  'processes_elsewhere',
  'mostly_bad',
  'internal',
  'other',
];

export const STAGES: readonly Stage[] = ['feed', 'result', 'recent', 'full', 'history', 'backfill', 'lease'];

/** Values of the label `status` of HTTP requests: a status of the interface, or the kind of failure without one. */
export const REQUEST_STATUSES = [
  ...['200', '400', '401', '403', '404', '429', '500', '502', '503', '504'],
  ...REQUEST_FAILURES,
  ...['aborted', 'other'],
];

/** Histogram buckets, seconds. */
export const BUCKETS = {
  request: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  transaction: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  delivery: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600],
} as const;

export const HELP = {
  scanfeed_lag_seconds: 'Current time minus data_complete_as_of; +Inf while unknown',
  scanfeed_data_complete_as_of_timestamp_seconds:
    'Everything the feed listed up to this time is stored or quarantined; 0 while unknown',
  scanfeed_last_poll_success_timestamp_seconds: 'Time of the last poll of the feed that succeeded; 0 before the first',
  scanfeed_last_commit_timestamp_seconds: 'Time of the last commit of a page; 0 before the first',
  scanfeed_last_delivery_timestamp_seconds:
    'Latest delivery time up to which the feed was read, service clock; 0 while unknown',
  scanfeed_caught_up: '1 on a leader that saw the end of the feed within three poll intervals plus the request timeout',
  scanfeed_leader: '1 while this process leads the feed',
  scanfeed_failing: '1 while a stage fails and is retried, with the kind of its last error; otherwise absent',
  scanfeed_initial_sync_complete: '1 once everything from the beginning of the feed to its end was read',
  scanfeed_pass_entries_per_second:
    'Entries read per second by a pass, or by the feed while it catches up; 0 after a minute without a page',
  scanfeed_pass_seconds_left: 'Estimated seconds until a pass ends; +Inf while unknown',
  scanfeed_pass_delivered_up_to_timestamp_seconds: 'Delivery time up to which a pass has read; 0 while unknown',
  scanfeed_pending_results: 'Runs whose full result is still to be loaded; those that were given up are not counted',
  scanfeed_quarantined_entries: 'Entries in open quarantine',
  scanfeed_unusable_accepted_until_timestamp_seconds:
    'Time until which an operator accepts that most entries are unusable; only while that is in force',
  scanfeed_runs_without_data: 'Completed runs whose data is missing, null or not an object',
  scanfeed_polls_total: 'Polls of the feed',
  scanfeed_runs_total: 'Entries of the feed by what their commit changed',
  scanfeed_truncated_results_total: 'Entries with a truncated result',
  scanfeed_errors_total: 'Failures, each followed by another try',
  scanfeed_reconcile_found_total:
    'Runs that a recent or full pass found missing, by whether it was their first revision',
  scanfeed_purged_total: 'Rows whose content was deleted because it was past the retention',
  scanfeed_cursor_resets_total: 'Cursors that the service rejected and that were replaced',
  scanfeed_revision_conflicts_total: 'Entries whose revision is stored with different content',
  scanfeed_http_request_duration_seconds: 'Duration of requests to the service',
  scanfeed_transaction_duration_seconds: 'Duration of commits',
  scanfeed_delivery_delay_seconds: 'Time from delivery in the feed to the commit, while caught up',
  scanfeed_database_pool:
    'Connections to PostgreSQL in use and idle, and callers waiting for one, without those for leases',
  scanfeed_feeds: 'Feeds that this process leads or stands by for, and invalid entries of its feeds file',
  scanfeed_build_info: 'Always 1',
} as const;
