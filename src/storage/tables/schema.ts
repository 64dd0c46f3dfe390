import { sql } from 'kysely';

export const QUARANTINE_STATES = ['open', 'repaired', 'replayed', 'discarded'] as const;
export type QuarantineState = (typeof QUARANTINE_STATES)[number];

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
