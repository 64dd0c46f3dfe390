import pg from 'pg';
import { type ClientOptions, DatabaseClient } from '../connection/client.js';
import { sqlstateOf } from '../connection/errors.js';
import { quoted } from '../schema/schema.js';

/** Rows fetched at once, so that a large result is never in memory as a whole. */
const BATCH_ROWS = 500;

/** A query as a reader of the reports would run it. */
export interface ReadOnlyQuery {
  readonly text: string;
  /** The role that runs it. */
  readonly role: string;
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

/** Called first with the columns, then with each batch of rows. Returns false if no more rows are needed. */
export type Receive = (columns: readonly ResultColumn[], rows: readonly ResultRow[]) => boolean;

/** PostgreSQL refused the query, or the role may not be used. The message is PostgreSQL's own. */
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
 * Runs one query in a read-only transaction with the rights of the role.
 * @throws QueryRefused
 */
export async function runReadOnly(connection: ClientOptions, query: ReadOnlyQuery, receive: Receive): Promise<void> {
  const client = new DatabaseClient(connection);
  client.on('error', () => {}); // the statement reports it
  await client.connect();
  try {
    await refusable(true, () => begin(client, query));
    await refusable(false, () => readAll(client, query.text, receive));
  } finally {
    await client.end();
  }
}

async function begin(client: pg.Client, { role, schema }: ReadOnlyQuery): Promise<void> {
  await client.query('BEGIN READ ONLY');
  await client.query(`SET LOCAL search_path = ${quoted(schema)}`);
  // If this process ends, the server ends the query too.
  await client.query(`SET LOCAL client_connection_check_interval = '2s'`);
  await client.query(`SET LOCAL ROLE ${quoted(role)}`);
}

async function readAll(client: pg.Client, text: string, receive: Receive): Promise<void> {
  // The extended protocol accepts only one statement, so the text cannot end the transaction.
  await client.query({ text: `DECLARE result NO SCROLL CURSOR FOR ${text}`, queryMode: 'extended' } as pg.QueryConfig);
  const types = { getTypeParser: () => (value: string) => value };
  for (;;) {
    const { rows, fields } = await client.query<(string | null)[]>({
      text: `FETCH ${BATCH_ROWS} FROM result`,
      rowMode: 'array',
      types: types as pg.CustomTypesConfig,
    });
    const columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
    if (!receive(columns, rows) || rows.length < BATCH_ROWS) return;
  }
}

async function refusable<T>(ofRole: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sqlstate = sqlstateOf(error);
    if (sqlstate === null || !(error instanceof Error)) throw error;
    throw new QueryRefused(error.message, sqlstate, ofRole);
  }
}

/** Returns a value as JSON, with every digit of a number. */
export function valueAsJson(value: string | null, type: number): string {
  if (value === null) return 'null';
  if (JSON_TYPES.has(type)) return value;
  if (type === pg.types.builtins.BOOL) return value === 't' ? 'true' : 'false';
  // NaN and Infinity are not JSON.
  if (NUMBERS.has(type) && /^-?\d/.test(value)) return value;
  return JSON.stringify(value);
}

const { INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, OID, JSON: JSON_TEXT, JSONB } = pg.types.builtins;
const NUMBERS: ReadonlySet<number> = new Set([INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, OID]);
const JSON_TYPES: ReadonlySet<number> = new Set([JSON_TEXT, JSONB]);

/** Returns whether values of the type are right-aligned in a table. */
export function isNumber(type: number): boolean {
  return NUMBERS.has(type);
}
