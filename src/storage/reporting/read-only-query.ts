import type pg from 'pg';
import { type ClientOptions, DatabaseClient } from '../connection/client.js';
import { connectError } from '../connection/connect-errors.js';
import { databaseError, sqlstateOf } from '../connection/errors.js';
import { quoted } from '../tables/schema.js';

/** Limits of a batch, so that a large result is never in memory as a whole. */
const BATCH = { rows: 500, characters: 2 ** 22 };
/** Maximum duration of the login, milliseconds. */
const CONNECT_DEADLINE_MS = 10_000;

/** A query as a reader of the reports would run it. */
export interface ReadOnlyQuery {
  readonly text: string;
  /** The role that runs it; null: that of the connection. */
  readonly role: string | null;
  /** The schema of the reports, in which unqualified names are found. */
  readonly schema: string;
}

export interface ResultColumn {
  readonly name: string;
  /** OID of the type. */
  readonly type: number;
}

/** A value as PostgreSQL writes it; null: NULL. */
export type ResultRow = readonly (string | null)[];

/** Called with each batch of rows, at least once. Resolves once it can take more: true if it wants more rows, false to stop. */
export type Receive = (columns: readonly ResultColumn[], rows: readonly ResultRow[]) => Promise<boolean>;

/** PostgreSQL refused the query, or the login cannot use the role. The message is PostgreSQL's own, with its hint. */
export class QueryRefused extends Error {
  override readonly name = 'QueryRefused';
  constructor(
    message: string,
    readonly sqlstate: string,
    /** Whether the role was refused, before the query. */
    readonly ofRole: boolean,
  ) {
    super(message);
  }
}

/**
 * Runs one query in a read-only transaction with the privileges of the role.
 * @throws QueryRefused
 */
export async function runReadOnly(connection: ClientOptions, query: ReadOnlyQuery, receive: Receive): Promise<void> {
  const client = new DatabaseClient({ ...connection, connectionTimeoutMillis: CONNECT_DEADLINE_MS });
  client.on('error', () => {}); // the statement reports it
  try {
    await client.connect();
  } catch (error) {
    throw connectError(error, { ...connection, deadlineMs: CONNECT_DEADLINE_MS });
  }
  try {
    await refusable(true, () => begin(client, query));
    await readAll(client, query.text, receive);
  } finally {
    await client.end();
  }
}

async function begin(client: pg.Client, { role, schema }: ReadOnlyQuery): Promise<void> {
  await client.query('BEGIN READ ONLY');
  await client.query(`SET LOCAL search_path = ${quoted(schema)}`);
  // Compiling a report takes longer than most reports.
  await client.query('SET LOCAL jit = off');
  // If this process ends, the server ends the query too.
  await client.query(`SET LOCAL client_connection_check_interval = '2s'`);
  if (role !== null) await client.query(`SET LOCAL ROLE ${quoted(role)}`);
}

/** A query that begins with EXPLAIN, perhaps after comments. No cursor can be declared for it, and its result is short. */
const IS_EXPLAIN = /^(?:\s|--.*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*explain\b/i;

async function readAll(client: pg.Client, text: string, receive: Receive): Promise<void> {
  // The extended protocol accepts only one statement, so the text cannot end the transaction.
  const declare = { text: `DECLARE result NO SCROLL CURSOR FOR ${text}`, queryMode: 'extended' } as pg.QueryConfig;
  const isExplain = IS_EXPLAIN.test(text);
  if (!isExplain) await refusable(false, () => client.query(declare));
  const types = { getTypeParser: () => (value: string) => value } as pg.CustomTypesConfig;
  for (let size = 1; ; ) {
    const fetch = {
      text: isExplain ? text : `FETCH ${size} FROM result`,
      queryMode: 'extended',
      rowMode: 'array' as const,
      types,
    };
    const { rows, fields } = await refusable(false, () => client.query<(string | null)[]>(fetch));
    const columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
    if (!(await receive(columns, rows)) || isExplain || rows.length < size) return;
    size = nextBatchSize(rows);
  }
}

/** Returns the number of rows of the next batch, if they are as long as the last ones. Pure. */
function nextBatchSize(rows: readonly ResultRow[]): number {
  const characters = rows.flat().reduce((sum, value) => sum + (value?.length ?? 0), 0);
  const size = Math.floor((BATCH.characters * rows.length) / Math.max(1, characters));
  return Math.max(1, Math.min(BATCH.rows, size));
}

async function refusable<T>(ofRole: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sqlstate = sqlstateOf(error);
    if (sqlstate === null || !(error instanceof Error)) throw databaseError(error);
    const { hint } = error as { readonly hint?: unknown };
    const message = typeof hint === 'string' ? `${error.message} (hint: ${hint})` : error.message;
    throw new QueryRefused(message, sqlstate, ofRole);
  }
}
