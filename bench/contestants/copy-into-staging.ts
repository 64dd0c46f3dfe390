/** The same with COPY: the text of a page, which keeps every digit, is copied into a staging table and stored from there. */
import pg from 'pg';
import { contest } from './contest.js';
import { createExpertsTable, storeAllPages, storePages } from './experts-table.js';

await contest(async (config) => {
  const client = new pg.Client({ connectionString: config.databaseUrl });
  await client.connect();
  await createExpertsTable(client);
  await client.query('CREATE TEMPORARY TABLE staging (page jsonb)');
  const text = storePages('SELECT page FROM staging');
  return () =>
    storeAllPages(client, config, async (page) => {
      await client.query('BEGIN; TRUNCATE staging');
      await copy(client, 'COPY staging FROM STDIN', `${page.text.replaceAll('\\', '\\\\')}\n`);
      await client.query({ name: 'store', text });
      await client.query('COMMIT');
    });
});

/** What the driver's connection can do during COPY; its types do not describe it. */
interface Connection {
  query(statement: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** Runs `COPY … FROM STDIN`, which the driver supports only by its protocol. */
function copy(client: pg.Client, statement: string, rows: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const submitted = {
      submit: (connection: Connection) => connection.query(statement),
      handleCopyInResponse(connection: Connection) {
        connection.sendCopyFromChunk(Buffer.from(rows));
        connection.endCopyFrom();
      },
      handleCommandComplete() {},
      handleError: reject,
      handleReadyForQuery: () => resolve(),
    };
    client.query(submitted as unknown as pg.Submittable);
  });
}
