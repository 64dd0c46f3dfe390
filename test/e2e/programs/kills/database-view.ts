import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

export interface FeedRow {
  readonly name: string;
  /** Who holds the lease now. */
  readonly holder: string | null;
  readonly epoch: number;
  readonly lastCommit: string | null;
  readonly completeAsOf: Date | null;
}

/** What the campaign asks of the database, on a direct connection; waits while the server is away. */
export class DatabaseView {
  readonly #pool: pg.Pool;

  constructor(
    url: string,
    private readonly signal: AbortSignal,
  ) {
    this.#pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 5_000 });
    this.#pool.on('error', () => {}).on('connect', (client) => void client.on('error', () => {}));
  }

  async rows<R extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    for (;;) {
      this.signal.throwIfAborted();
      try {
        return (await this.#pool.query<R>(text, [...values])).rows;
      } catch (error) {
        const { code } = error as { code?: unknown };
        // 42P01, 3F000: the schema is not there yet. 57, 08 and what has no SQLSTATE: the server is away.
        if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(42P01|3F000|57|08|53)/.test(code))
          throw error;
      }
      await sleep(50, undefined, { signal: this.signal });
    }
  }

  /** Returns the feeds, at least one. */
  async feeds(): Promise<readonly FeedRow[]> {
    for (;;) {
      const rows = await this.rows<FeedRow>(`
        SELECT name, (SELECT holder FROM scanfeed.processes WHERE holder = lease_holder AND expires_at > clock_timestamp()) AS holder,
          lease_epoch::int AS epoch, last_commit_at::text AS "lastCommit", data_complete_as_of AS "completeAsOf"
        FROM scanfeed.feeds ORDER BY name`);
      if (rows.length > 0) return rows;
      await sleep(50, undefined, { signal: this.signal });
    }
  }

  /** Waits until the rows of the feeds match. */
  async feedsUntil(match: (feeds: readonly FeedRow[]) => boolean): Promise<void> {
    while (!match(await this.feeds())) await sleep(20, undefined, { signal: this.signal });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** The daemon names itself host/pid/random. */
export const pidOfHolder = (holder: string | null): number | null =>
  holder === null ? null : Number(holder.split('/')[1]);
