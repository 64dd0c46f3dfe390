import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchDaemon } from './daemon.js';
import type { FollowedFeeds } from './followed-feeds.js';
import type { BenchDatabase } from './postgres.js';

const LOOK_EVERY_MS = 200;
/** Share of the feeds that each of two daemons leads at least once they are shared evenly. */
const EVEN_SHARE = 0.45;

/**
 * Starts a second daemon, and kills the first one once both share its feeds evenly. Returns how long it takes then until the
 * second one leads all of them, milliseconds.
 */
export async function measureTakeover({ database, daemon, names, startAnother }: FollowedFeeds): Promise<number> {
  const survivor = startAnother();
  for (const each of [daemon, survivor]) await leads(database, each, EVEN_SHARE * names.length);
  const killedAt = performance.now();
  await daemon.kill();
  await leads(database, survivor, names.length);
  return performance.now() - killedAt;
}

/** Resolves when the daemon holds the leases of at least so many feeds. */
function leads(database: BenchDatabase, daemon: BenchDaemon, feeds: number): Promise<void> {
  return database.withClient(async (client) => {
    for (;;) {
      daemon.assertRunning();
      const { rows } = await client.query<{ led: number }>(
        `SELECT count(*)::int AS led FROM scanfeed.feeds
         WHERE split_part(lease_holder, '/', 2) = $1 AND lease_expires_at > now()`,
        [String(daemon.pid)],
      );
      if ((rows[0]?.led ?? 0) >= feeds) return;
      await sleep(LOOK_EVERY_MS);
    }
  });
}
