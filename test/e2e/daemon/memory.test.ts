import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Daemon } from '../../support/program/daemon.js';
import { peakMiB } from '../../support/program/peak-memory.js';
import { type DaemonDatabase, type ServiceDouble, useProgram } from '../../support/program/setup.js';

const setup = useProgram();
const MIB = 1024 * 1024;
const PATIENCE = { timeout: 240_000 };

/** Returns the JSON text of a result with about this many bytes. */
function resultOf(bytes: number): string {
  const line = '{"artikel":"10-44711","name":"Schraube M8 × 40, verzinkt","menge":1.10,"summe":12345678901234567890}';
  return `{"positionen":[${Array.from({ length: Math.ceil(bytes / Buffer.byteLength(line)) }, () => line).join()}]}`;
}

/** Starts a daemon as in the image, with compression disabled in the database to save time. */
async function startDaemon(service: ServiceDouble, database: DaemonDatabase): Promise<Daemon> {
  // A busy machine may not load every result in time; a short interval retries them soon.
  const env = { ...setup.environment(service, database), SCANFEED_PENDING_RETRY_INTERVAL: '1s' };
  expect(await setup.program(['migrate'], env).exited).toMatchObject({ code: 0 });
  await database.query('ALTER TABLE scanfeed.runs ALTER COLUMN data SET STORAGE EXTERNAL');
  return setup.daemonInImage(env);
}

/** Waits until all runs are stored with equal results. */
async function untilStored(database: DaemonDatabase, runs: Readonly<Record<string, unknown>>): Promise<void> {
  const stored = () =>
    database.query(
      `SELECT result_state, jsonb_array_length(data->'positionen') AS lines, data->'positionen'->0->>'menge' AS first,
         count(*)::int AS runs
       FROM scanfeed.runs GROUP BY 1, 2, 3`,
    );
  const all = () => database.query(`SELECT result_state, count(*)::int AS runs FROM scanfeed.runs GROUP BY 1`);
  const { result_state, runs: count } = runs;
  await expect.poll(all, { timeout: PATIENCE.timeout, interval: 200 }).toEqual([{ result_state, runs: count }]);
  expect(await stored()).toEqual([runs]);
}

const linesOf = (result: string) => result.split('"artikel"').length - 1;

describe.runIf(process.platform === 'linux')('the image with 256 MiB and the default budget', () => {
  it('stores a page within its memory when it has 40 truncated results of 20 MB each', PATIENCE, async () => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const result = resultOf(20_000_000);
    service.deliver(40, { dataJson: result, truncated: 'data' });
    const daemon = await startDaemon(service, database);
    await untilStored(database, { result_state: 'complete', lines: linesOf(result), first: '1.10', runs: 40 });
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });

  it('requests smaller pages, and stores them within its memory, when pages have 100 MB', PATIENCE, async () => {
    const service = await setup.startService({ switches: { inlineLimitBytes: MIB } });
    const database = await setup.createDatabase();
    const result = resultOf(500_000);
    service.deliver(400, { dataJson: result });
    const daemon = await startDaemon(service, database);
    await untilStored(database, { result_state: 'complete', lines: linesOf(result), first: '1.10', runs: 400 });
    const limits = service.asked.map(({ query }) => query.limit);
    expect(limits.slice(0, 2)).toEqual(['200', '100']);
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });

  it('keeps no page of a feed that waits for memory when sixteen feeds have pages of 14 MB', PATIENCE, async () => {
    const names = Array.from({ length: 16 }, (_, n) => `feed_${n}`);
    const apiKeys = names.map((name) => ({ key: `${setup.secrets.apiKey}-${name}`, organization: 'north' }));
    const service = await setup.startService({ apiKeys, switches: { inlineLimitBytes: MIB } });
    const database = await setup.createDatabase();
    const folder = await mkdtemp(join(tmpdir(), 'scanfeed-memory-'));
    setup.afterwards(() => rm(folder, { recursive: true }));
    const feedsFile = join(folder, 'feeds.json');
    const feedOf = ({ key }: { readonly key: string }, n: number) => {
      return { name: names[n], schema: names[n], baseUrl: service.url, apiKeyFile: join(folder, `${n}`), key };
    };
    const feeds = apiKeys.map(feedOf);
    await Promise.all(feeds.map(({ apiKeyFile, key }) => writeFile(apiKeyFile, key)));
    await writeFile(feedsFile, JSON.stringify(feeds.map(({ key: _, ...feed }) => feed)));
    service.deliver(400, { dataJson: resultOf(70_000) });
    const { SCANFEED_API_KEY: _, SCANFEED_BASE_URL: __, ...env } = setup.environment(service, database);
    const daemon = setup.daemonInImage({ ...env, SCANFEED_FEEDS_FILE: feedsFile });
    const stored = names.map((name) => `SELECT count(*)::int AS runs FROM ${name}.runs`).join(' UNION ALL ');
    await expect
      .poll(() => database.query<{ runs: number }>(stored).catch(() => []), PATIENCE)
      .toEqual(names.map(() => ({ runs: 400 })));
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });
});
