import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';

/** A view of the reports, as its comments describe it. */
export interface DescribedView {
  readonly name: string;
  readonly description: string;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly description: string }[];
}

/** Returns the existing views of the schema of the reports, by name. */
export async function readDescribedViews({ db, tables }: StoreConnection): Promise<readonly DescribedView[]> {
  const { rows } = await sql<DescribedView>`
    SELECT relname AS name, COALESCE(obj_description(class.oid, 'pg_class'), '') AS description,
      jsonb_agg(jsonb_build_object('name', attname, 'type', format_type(atttypid, atttypmod),
        'description', COALESCE(col_description(class.oid, attnum), '')) ORDER BY attnum) AS columns
    FROM pg_class AS class JOIN pg_attribute ON attrelid = class.oid AND attnum > 0 AND NOT attisdropped
    WHERE relkind = 'v' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})
    GROUP BY class.oid, relname ORDER BY relname COLLATE "C"`.execute(db);
  return rows;
}
