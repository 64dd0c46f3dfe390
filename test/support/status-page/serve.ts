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
export function serveStatusPage(first: Shown, port = 0) {
  return serve([first], { single: true, port });
}

/** The real admin server of a process that follows many feeds. All of them have the same time. */
export function serveFeeds(feeds: readonly Shown[], invalid: readonly InvalidEntry[] = []) {
  return serve(feeds, { single: false, port: 0, invalid: () => invalid });
}

function feedOf(shown: Shown) {
  return { name: shown.report.feed, report: () => shown.report, recent: () => shown.recent };
}

async function serve(first: readonly Shown[], options: Pick<AdminServerOptions, 'single' | 'port' | 'invalid'>) {
  let shown = first.map(feedOf);
  let now = first[0]?.now ?? 0;
  const server = startAdminServer({
    host: '127.0.0.1',
    version: '0.1.0',
    metrics: testMetrics().metrics,
    liveness: livenessOf(() => []),
    readiness: createReadiness(),
    logger: recordingLogger().logger,
    clock: { ...systemClock, now: () => now, monotonic: () => 0, sleep: untilAborted },
    signal: new AbortController().signal,
    feeds: () => shown,
    ...options,
  });
  await server.settled;
  return {
    url: `http://127.0.0.1:${server.address()?.port}/`,
    close: () => server.close(),
    show(...next: readonly Shown[]) {
      shown = next.map(feedOf);
      now = next[0]?.now ?? 0;
    },
  };
}
