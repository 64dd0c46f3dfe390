import { type RawBuilder, sql } from 'kysely';

/** The tables of one installation, as quoted names for SQL texts. */
export interface Tables {
  readonly schema: string;
  /** The schema of the views that reports read. */
  readonly reportingSchema: string;
  readonly feeds: RawBuilder<unknown>;
  readonly runs: RawBuilder<unknown>;
  readonly runHistory: RawBuilder<unknown>;
  readonly quarantine: RawBuilder<unknown>;
  readonly cursorHistory: RawBuilder<unknown>;
  readonly passes: RawBuilder<unknown>;
  readonly troubles: RawBuilder<unknown>;
  readonly changeClock: RawBuilder<unknown>;
  readonly migrations: RawBuilder<unknown>;
  readonly deletedRuns: RawBuilder<unknown>;
  readonly reportViews: RawBuilder<unknown>;
  readonly reportColumns: RawBuilder<unknown>;
  readonly reportProgress: RawBuilder<unknown>;
  /** The next number of `change_seq`; only under the lock of `change_clock`. */
  readonly nextChange: RawBuilder<unknown>;
  /** Fails the statement: `change_clock` has no row. */
  readonly refuseMissingClock: RawBuilder<unknown>;
  /** Fails the statement (SF002): another writer has changed a run that it was to write. */
  readonly refuseOvertaken: RawBuilder<unknown>;
}

/** @param schema SCANFEED_DATABASE_SCHEMA */
export function tablesOf(schema: string): Tables {
  const sequence = `${quoted(schema)}.change_seq`;
  return {
    schema,
    reportingSchema: `${schema}_reporting`,
    feeds: sql.id(schema, 'feeds'),
    runs: sql.id(schema, 'runs'),
    runHistory: sql.id(schema, 'run_history'),
    quarantine: sql.id(schema, 'quarantine'),
    cursorHistory: sql.id(schema, 'cursor_history'),
    passes: sql.id(schema, 'passes'),
    troubles: sql.id(schema, 'troubles'),
    changeClock: sql.id(schema, 'change_clock'),
    migrations: sql.id(schema, 'migrations'),
    deletedRuns: sql.id(schema, 'deleted_runs'),
    reportViews: sql.id(schema, 'report_views'),
    reportColumns: sql.id(schema, 'report_columns'),
    reportProgress: sql.id(schema, 'report_progress'),
    nextChange: sql`nextval(${sql.lit(sequence)}::regclass)`,
    refuseMissingClock: sql`${sql.id(schema, 'refuse_missing_clock')}()`,
    refuseOvertaken: sql`${sql.id(schema, 'refuse_overtaken')}()`,
  };
}

/** An SQL identifier in double quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
