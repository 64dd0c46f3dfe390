import type { DatabaseSettings } from '../../settings/settings.js';
import type { StoreConnection } from '../../storage/connection/store-connection.js';
import { BATCH } from '../../storage/reporting/find-fields.js';
import {
  findReaders,
  inspectReaderRole,
  readerGrantStatements,
  readerRoleStatements,
} from '../../storage/reporting/reader-role.js';
import { findFull } from '../../storage/reporting/report-view.js';
import { listStoredIndexes } from '../../storage/reporting/stored-indexes.js';
import { findForeignViews, readReportViews } from '../../storage/reporting/stored-views.js';
import { countUnfitValues } from '../../storage/reporting/unfit-values.js';
import { quoted } from '../../storage/tables/schema.js';
import { counted } from '../terminal/format.js';
import { ok, type Result, warning } from './finding.js';

/** Maximum number of privileges, roles or views that a finding names. */
const NAMED = 4;
/** The runs whose values are counted. */
const COUNTED = `in the latest runs of each type, at most ${BATCH.runs} runs and ${BATCH.bytes / 2 ** 20} MiB`;

interface ReportsContext {
  readonly connection: StoreConnection;
  readonly settings: DatabaseSettings;
  readonly server: { readonly database: string };
}

export function named(names: readonly string[]): string {
  const others = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return names.slice(0, NAMED).join(', ') + others;
}

export async function checkReaderRole({ connection, server, settings }: ReportsContext): Promise<Result> {
  const { readerRole } = settings;
  const { logins, elsewhere } = await findReaders(connection, readerRole);
  const others = logins.length === 0 ? '' : `; the data can also be read by ${named(logins)}`;
  if (readerRole === null) return ok(`none is named (SCANFEED_READER_ROLE)${others}`);
  if (elsewhere.length > 0) {
    return warning(
      `${readerRole} also has privileges in ${named(elsewhere)}, so its members can read all of them${others}. If the data belongs to different owners, use one role for each (SCANFEED_READER_ROLE). To end its access here, run this as the owner of the database, and grant CONNECT to the logins that need it`,
      [
        `REVOKE ALL ON ALL TABLES IN SCHEMA ${quoted(connection.tables.reportingSchema)} FROM ${quoted(readerRole)}`,
        `REVOKE CONNECT ON DATABASE ${quoted(server.database)} FROM PUBLIC`,
      ],
    );
  }
  const { exists, reads } = await inspectReaderRole(connection, readerRole);
  if (reads) return ok(`${readerRole} can read every report${others}`);
  const problem = exists ? 'cannot read every report' : 'does not exist, so only owners can read the reports';
  const statements = [...readerRoleStatements(readerRole), ...readerGrantStatements(connection.tables, readerRole)];
  return warning(
    `${readerRole} ${problem}; scanfeed works without it. Run this as a database administrator`,
    statements.filter((statement) => !(exists && statement.startsWith('CREATE ROLE'))),
  );
}

export async function checkTypedViews({ connection }: ReportsContext): Promise<Result> {
  const foreign = await findForeignViews(connection);
  if (foreign.length > 0) {
    const views = named(foreign.map(({ name, owner }) => `${name} (owner ${owner})`));
    return warning(
      `these views belong to other roles, so they get no new columns: ${views}; run this as a database administrator`,
      foreign.map(({ remedy }) => remedy),
    );
  }
  const views = await readReportViews(connection);
  const unfit = (await countUnfitValues(connection)).map(({ column, count }) => `${column} (${count})`);
  const all = 'SELECT unfit, count(*) FROM VIEW, unnest(unfit_fields) AS unfit GROUP BY 1';
  const remedy = unfit.length > NAMED ? `; to see all columns of a view, run \`scanfeed sql "${all}"\`` : '';
  const problems = [
    ['these views have reached the limit, so further fields are only in other_fields or JSON columns', findFull(views)],
    [`values of another type are null in these columns, which unfit_fields names (counted ${COUNTED})`, unfit],
  ] as const;
  const found = problems.filter(([, names]) => names.length > 0).map(([text, names]) => `${text}: ${named(names)}`);
  if (found.length > 0) return warning(found.join('; ') + remedy);
  return ok(`all can get further columns; every value fits its column (checked ${COUNTED})`);
}

export async function checkReportIndexes({ connection }: ReportsContext): Promise<Result> {
  const indexes = await listStoredIndexes(connection);
  const invalid = indexes.find(({ valid }) => !valid);
  if (invalid === undefined) return ok(`${counted(indexes.length, 'index', 'indexes')}, all valid`);
  return warning(
    `the creation of an index was interrupted; run \`scanfeed views index ${invalid.view} ${invalid.columns.join(' ')}\` again`,
  );
}
