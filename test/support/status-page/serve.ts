import { startAdminServer } from '../../../src/observability/admin/admin-server.js';
import { createLiveness } from '../../../src/observability/admin/liveness.js';
import { createReadiness } from '../../../src/observability/admin/readiness.js';
import { recordingLogger, testMetrics } from '../observed.js';
import type { Shown } from './states.js';

/** No time passes, so a wait ends with its signal alone. */
function untilAborted(_: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** The real admin server with a given status and time. */
export async function serveStatusPage(first: Shown) {
  let shown = first;
  const stop = new AbortController();
  const server = startAdminServer({
    host: '127.0.0.1',
    port: 0,
    metrics: testMetrics().metrics,
    liveness: createLiveness(() => 0),
    readiness: createReadiness(),
    status: () => shown.report,
    recent: () => shown.recent,
    logger: recordingLogger().logger,
    clock: { now: () => shown.now, sleep: untilAborted },
    signal: stop.signal,
  });
  await server.settled;
  return {
    url: `http://127.0.0.1:${server.address()?.port}/`,
    show(next: Shown) {
      shown = next;
    },
    close: () => server.close(),
  };
}
