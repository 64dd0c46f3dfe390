import type pg from 'pg';

/** Maximum number of statements that are prepared on a connection. Each takes memory of the server. */
const MAX_STATEMENTS = 100;

/**
 * Creates a function that returns the query to send for a statement on a connection. It prepares statements with parameters on
 * the server, which then parses each only once per connection and soon reuses a generic plan. Statements are prepared only on direct connections: behind a pooler, the next
 * transaction may run in a session that does not know the statement.
 */
export function createPreparedStatements(isDirect: (client: pg.PoolClient) => boolean) {
  const names = new Map<string, string>();
  const nameOf = (text: string): string | undefined => {
    const known = names.get(text);
    if (known !== undefined || names.size === MAX_STATEMENTS) return known;
    const name = `scanfeed_${names.size + 1}`;
    names.set(text, name);
    return name;
  };
  return (client: pg.PoolClient, text: string, values: readonly unknown[]): pg.QueryConfig<unknown[]> => {
    const name = values.length > 0 && isDirect(client) ? nameOf(text) : undefined;
    return { ...(name !== undefined && { name }), text, values: [...values] };
  };
}

/**
 * Returns whether a connection leads to the server without a pooler. A pooler invents the process id that it reports at the
 * login, so it differs from that of the backend.
 */
export async function findIsDirect(client: pg.ClientBase): Promise<boolean> {
  return (await backendOf(client)) === (client as unknown as { readonly processID: number }).processID;
}

export async function backendOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}
