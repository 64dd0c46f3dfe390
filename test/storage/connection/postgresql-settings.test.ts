import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { withConnection } from '../../support/postgres/maintenance.js';

const GUIDE = new URL('../../../docs/postgresql.md', import.meta.url);

/** The statements of the guide, for another role; those that need a newer server are marked with its version. */
async function statementsFor(role: string, serverVersion: number): Promise<string[]> {
  const [, block = ''] = /```sql\n([^`]*)```/.exec(await readFile(GUIDE, 'utf8')) ?? [];
  return block
    .trim()
    .split('\n')
    .filter((line) => Number(/-- PostgreSQL (\d+) and later/.exec(line)?.[1] ?? 0) <= serverVersion)
    .map((line) => line.replace('ALTER ROLE scanfeed', `ALTER ROLE ${role}`));
}

test('the settings from the guide apply to connections of the role when the server has accepted them', async () => {
  const { url } = inject('testServer');
  const role = `scanfeed_guide_${randomBytes(5).toString('hex')}`;
  const password = randomBytes(12).toString('hex');
  await withConnection(url, async (administrator) => {
    await administrator.query(`CREATE ROLE ${role} LOGIN PASSWORD ${pg.escapeLiteral(password)}`);
    try {
      const { rows } = await administrator.query<{ major: number }>(
        `SELECT current_setting('server_version_num')::int / 10000 AS major`,
      );
      const statements = await statementsFor(role, rows[0]?.major ?? 0);
      expect(statements.length).toBeGreaterThanOrEqual(6);
      for (const statement of statements) await administrator.query(statement);
      const own = new URL(url);
      own.username = role;
      own.password = password;
      await withConnection(own.href, async (client) => {
        const { rows: settings } = await client.query(`SELECT name, setting FROM pg_settings WHERE source = 'user'`);
        const expected = statements.map((text) => ({
          name: /SET (\w+) =/.exec(text)?.[1],
          setting: expect.any(String),
        }));
        expect(settings).toEqual(expect.arrayContaining(expected));
        expect(settings).toContainEqual({ name: 'client_connection_check_interval', setting: '5000' });
        expect(settings).toContainEqual({ name: 'tcp_user_timeout', setting: '25000' });
      });
    } finally {
      await administrator.query(`DROP ROLE ${role}`);
    }
  });
});
