import { systemClock } from '../../../src/core/clock.js';
import { type AdminServerOptions, startAdminServer } from '../../../src/observability/admin/admin-server.js';
import { livenessOf } from '../../../src/observability/admin/liveness.js';
import { createReadiness } from '../../../src/observability/admin/readiness.js';
import type { InvalidEntry } from '../../../src/observability/status-page/feed-list.js';
import { recordingLogger, testMetrics } from '../observed.js';
import type { Shown } from './states.js';

/** No time passes, so a wait ends with its signal alone. */
function untilAborted(_: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** The real admin server of a process that follows one feed, with a given status and time. */
export async function serveStatusPage(first: Shown) {
  let shown = first;
  const served = await serve(() => shown.now, { single: true, feeds: () => [feedOf(shown)] });
  return {
    ...served,
    show(next: Shown) {
      shown = next;
    },
  };
}

/** The real admin server of a process that follows many feeds. All of them have the same time. */
export function serveFeeds(feeds: readonly Shown[], invalid: readonly InvalidEntry[] = []) {
  const shown = feeds.map(feedOf);
  return serve(() => feeds[0]?.now ?? 0, { single: false, feeds: () => shown, invalid: () => invalid });
}

function feedOf(shown: Shown) {
  return { name: shown.report.feed, report: () => shown.report, recent: () => shown.recent };
}

async function serve(now: () => number, options: Pick<AdminServerOptions, 'single' | 'feeds' | 'invalid'>) {
  const server = startAdminServer({
    host: '127.0.0.1',
    port: 0,
    version: '0.1.0',
    metrics: testMetrics().metrics,
    liveness: livenessOf(() => []),
    readiness: createReadiness(),
    logger: recordingLogger().logger,
    clock: { ...systemClock, now, monotonic: () => 0, sleep: untilAborted },
    signal: new AbortController().signal,
    ...options,
  });
  await server.settled;
  return { url: `http://127.0.0.1:${server.address()?.port}/`, close: () => server.close() };
}
