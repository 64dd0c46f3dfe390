import { type ColumnType, type Generated, type GeneratedAlways, sql } from 'kysely';
import type { OptionalField } from '../../core/run-fields.js';
import type { FeedFilters, PassKind, PendingReason } from '../../sync/ports/index.js';

export const QUARANTINE_STATES = ['open', 'repaired', 'replayed', 'discarded'] as const;
export type QuarantineState = (typeof QUARANTINE_STATES)[number];

/** A `timestamptz`: read as a `Date`, written as ISO 8601. */
type Timestamp = ColumnType<Date, string, string>;
/** A `timestamptz` that may be `infinity` or `-infinity`, which are read as numbers. */
type BoundlessTimestamp = ColumnType<Date | number, string, string>;
/** A `timestamptz` that defaults to the time of the insert. */
type InsertTimestamp = ColumnType<Date, string | undefined, string>;
/** A `bigint`, read as text so that no digit is lost. */
type BigInteger = ColumnType<string, string | number, string | number>;
/** A `bigint` with a default. */
type DefaultBigInteger = ColumnType<string, string | number | undefined, string | number>;
/** A `jsonb`, read parsed and written as text. */
type Json<T> = ColumnType<T, string, string>;

interface FeedsTable {
  name: string;
  cursor: string | null;
  filters: Json<FeedFilters>;
  filters_since: InsertTimestamp;
  filters_widened_at: Timestamp | null;
  keep_history: Generated<boolean>;
  base_url: string;
  start_since: Timestamp | null;
  resume_since: Timestamp | null;
  complete_from: BoundlessTimestamp | null;
  data_complete_as_of: Timestamp | null;
  reconciled_as_of: Timestamp | null;
  end_reached_at: Timestamp | null;
  last_delivered_at: Timestamp | null;
  delivered_up_to: Timestamp | null;
  last_poll_at: Timestamp | null;
  last_commit_at: Timestamp | null;
  stuck_since: Timestamp | null;
  accepts_bad_until: Timestamp | null;
  lease_holder: string | null;
  lease_epoch: DefaultBigInteger;
  lease_home: string | null;
  entries_per_second: number | null;
  seconds_left: number | null;
  rate_measured_at: Timestamp | null;
  created_at: InsertTimestamp;
}

/** Only whole statements read the columns of optional fields, except for those that are declared. */
interface RunsTable extends Record<OptionalField['column'], unknown> {
  scan_id: string;
  revision: number;
  status: 'completed' | 'failed';
  environment: 'prod' | 'test';
  document_type_slug: string | null;
  document_type_name: string | null;
  file_name: string;
  partner_test_mode: boolean;
  test_mode_revision: number | null;
  delivered_at: Timestamp | null;
  markdown_absent: Generated<boolean>;
  result_state: 'complete' | 'pending';
  pending_reason: PendingReason | null;
  pending_since: Timestamp | null;
  next_try_at: BoundlessTimestamp | null;
  attempts: Generated<number>;
  pending_for: object | null;
  feed: string;
  stored_by: 'feed' | PassKind | 'result';
  repaired: boolean;
  extra: Json<unknown> | null;
  first_synced_at: Timestamp;
  synced_at: Timestamp;
  change_seq: BigInteger;
}

interface CursorHistoryTable {
  id: GeneratedAlways<string>;
  feed: string;
  cursor: string | null;
  since: Timestamp | null;
  last_delivered_at: Timestamp | null;
  reason: 'checkpoint' | 'rejected' | 'rewind';
  target_id: BigInteger | null;
  target_since: Timestamp | null;
  noted_at: InsertTimestamp;
}

interface PassesTable {
  id: GeneratedAlways<string>;
  feed: string;
  kind: PassKind;
  since: Timestamp | null;
  until: Timestamp;
  cursor: string | null;
  delivered_up_to: Timestamp | null;
  entries: DefaultBigInteger;
  stored: DefaultBigInteger;
  entries_per_second: number | null;
  seconds_left: number | null;
  rate_measured_at: Timestamp | null;
  begun_at: InsertTimestamp;
  complete_as_of: Timestamp | null;
  last_commit_at: Timestamp | null;
  finished_at: Timestamp | null;
  cancelled: Generated<boolean>;
}

interface QuarantineTable {
  id: GeneratedAlways<string>;
  feed: string;
  identity: string;
  scan_id: string | null;
  revision: number | null;
  reason: string;
  detail: string;
  payload: Buffer;
  first_seen_at: InsertTimestamp;
  last_seen_at: InsertTimestamp;
  times_seen: Generated<number>;
  state: QuarantineState;
}

interface ReportViewsTable {
  id: GeneratedAlways<number>;
  name: string;
  document_type_slug: string;
  arrays: Json<readonly (readonly string[])[]>;
  history_of: number | null;
  stores_rows: Generated<boolean>;
  stored_up_to: BigInteger | null;
  built_as: string | null;
  built_at: Timestamp | null;
  decided_at: InsertTimestamp;
}

interface ReportShapesTable {
  document_type_slug: string;
  counts: Json<Readonly<Record<string, Readonly<Record<string, number>>>>>;
}

interface ReportProgressTable {
  only_row: Generated<boolean>;
  change_seq: DefaultBigInteger;
}

interface ReportSettingsTable {
  only_row: Generated<boolean>;
  time_zone: string;
}

interface MigrationsTable {
  version: number;
  name: string;
  works_from: number;
  applied_at: InsertTimestamp;
}

/** The tables of `migrations/` that the query builder reads or writes, with the types of their values in the driver. */
export interface ScanfeedSchema {
  feeds: FeedsTable;
  runs: RunsTable;
  quarantine: QuarantineTable;
  cursor_history: CursorHistoryTable;
  passes: PassesTable;
  report_views: ReportViewsTable;
  report_shapes: ReportShapesTable;
  report_progress: ReportProgressTable;
  report_settings: ReportSettingsTable;
  migrations: MigrationsTable;
}

/** The tables of one installation, as quoted names for SQL texts. */
export type Tables = Readonly<ReturnType<typeof tablesOf>>;

/**
 * @param schema the schema of a feed
 * @param home the schema of the process's settings, in which the processes are
 */
export function tablesOf(schema: string, home = schema) {
  const sequence = `${quoted(schema)}.change_seq`;
  return {
    schema,
    home,
    /** `home` as `feeds.lease_home` names it: null if it is the schema of the feed, which may be renamed. */
    leaseHome: home === schema ? null : home,
    /** The schema of the views for reports. */
    reportingSchema: `${schema}_reporting`,
    feeds: sql.id(schema, 'feeds'),
    runs: sql.id(schema, 'runs'),
    runHistory: sql.id(schema, 'run_history'),
    quarantine: sql.id(schema, 'quarantine'),
    cursorHistory: sql.id(schema, 'cursor_history'),
    passes: sql.id(schema, 'passes'),
    processes: sql.id(home, 'processes'),
    recentErrors: sql.id(schema, 'recent_errors'),
    changeClock: sql.id(schema, 'change_clock'),
    migrations: sql.id(schema, 'migrations'),
    deletedRuns: sql.id(schema, 'deleted_runs'),
    reportViews: sql.id(schema, 'report_views'),
    reportColumns: sql.id(schema, 'report_columns'),
    reportShapes: sql.id(schema, 'report_shapes'),
    reportProgress: sql.id(schema, 'report_progress'),
    /** Draws the next number of `change_seq`; requires the lock of `change_clock`. */
    nextChange: sql`nextval(${sql.lit(sequence)}::regclass)`,
    /** Locks `change_clock`. Fails if it has no row (SF001). */
    lockChangeClock: sql`${sql.id(schema, 'lock_change_clock')}()`,
    /** Fails the statement (SF002): another writer has changed one of its runs. */
    refuseOvertaken: sql`${sql.id(schema, 'refuse_overtaken')}()`,
  };
}

/** Returns an SQL identifier in double quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
