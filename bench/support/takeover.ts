import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchDaemon } from './daemon.js';
import type { FollowedFeeds } from './followed-feeds.js';

const CHECK_INTERVAL_MS = 200;
/** Share of the feeds that each of two daemons leads at least once they are shared evenly. */
const EVEN_SHARE = 0.45;

/**
 * Starts a second daemon, and kills the first one once both share its feeds evenly. Returns how long it takes then until the
 * second one leads all of them, milliseconds.
 */
export async function measureTakeover(followed: FollowedFeeds): Promise<number> {
  const { daemon, names } = followed;
  const survivor = followed.startAnother();
  for (const each of [daemon, survivor]) await leads(followed, each, EVEN_SHARE * names.length);
  const killedAt = performance.now();
  await daemon.kill();
  await leads(followed, survivor, names.length);
  return performance.now() - killedAt;
}

/** Resolves when the daemon leads at least this number of feeds. */
function leads({ database, queryAll }: FollowedFeeds, daemon: BenchDaemon, feeds: number): Promise<void> {
  return database.withClient(async (client) => {
    for (;;) {
      daemon.assertRunning();
      const askedAt = performance.now();
      const led = await queryAll(
        client,
        (schema) => `SELECT name FROM ${schema}.feeds WHERE split_part(lease_holder, '/', 2) = $1`,
        [String(daemon.pid)],
      );
      if (led.length >= feeds) return;
      await sleep(Math.max(CHECK_INTERVAL_MS, 4 * (performance.now() - askedAt)));
    }
  });
}
