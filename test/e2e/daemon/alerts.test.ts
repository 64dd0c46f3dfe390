import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHART, JOB, ONE_FEED, renderAlerts, requireHelm } from '../../support/deployment/chart.js';
import { Prometheus } from '../../support/deployment/prometheus.js';
import { requireTool, runTool } from '../../support/deployment/tools.js';
import { eventually } from '../../support/program/daemon.js';
import { Gateway } from '../../support/program/gateway.js';
import { useProgram } from '../../support/program/setup.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();

/** The chart's alerts with short intervals: seconds instead of minutes. */
const SHORT_INTERVALS = {
  alerts: {
    Down: { for: '0s' },
    LagHigh: { for: '0s', warning: 3, critical: 3600 },
    ErrorRatioHigh: { for: '0s', window: '10s', threshold: 0.001 },
  },
};

/** Returns title and expression of the dashboard's single figures, for this feed. */
function statPanels() {
  const file = join(CHART, 'dashboards', 'scanfeed.json');
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as {
    panels: { type: string; title: string; targets?: { expr: string }[] }[];
  };
  return panels
    .filter(({ type }) => type === 'stat')
    .map(({ title, targets: [target] = [] }) => ({
      title,
      expression: (target?.expr ?? '')
        .replaceAll('$namespace', 'documents')
        .replaceAll('$job', JOB)
        .replaceAll('$feed', 'invoices')
        .replaceAll('$__rate_interval', '10s'),
    }));
}

test('fires alerts when the service fails or the daemon is down, and resolves them when both are back', async (context) => {
  for (const tool of ['prometheus', 'promtool']) requireTool(context, tool);
  const rules = await renderAlerts(requireHelm(context), SHORT_INTERVALS, ONE_FEED, {
    podMonitor: { enabled: true, interval: '1s' },
    settings: { SCANFEED_POLL_INTERVAL: '1s' },
  });
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const gateway = await Gateway.to(service.url);
  setup.afterwards(() => gateway.close());
  await gateway.open();
  const port = await unusedPort();
  const env = {
    ...setup.environment({ url: gateway.through(service.url) }, database),
    SCANFEED_FEED: 'invoices',
    SCANFEED_ADMIN_PORT: String(port),
  };
  service.deliver(20);
  const daemon = setup.daemon(env);
  await daemon.catchesUp();
  const exposition = (await daemon.get('/metrics')).body;
  expect(await runTool('promtool', ['check', 'metrics'], exposition)).toEqual({ status: 0, stdout: '', stderr: '' });

  const prometheus = await Prometheus.watching(`127.0.0.1:${port}`, rules);
  const firing = () => prometheus.firing();
  await eventually(() => prometheus.value('scanfeed_caught_up{namespace="documents", feed="invoices"}')).toBe(1);
  await eventually(firing).toEqual([]);
  expect(statPanels()).toHaveLength(11);
  for (const { title, expression } of statPanels()) {
    await eventually(() => prometheus.value(expression), { message: title }).not.toBeNull();
  }

  await gateway.close();
  await eventually(firing).toEqual(['ScanfeedErrorRatioHigh warning', 'ScanfeedLagHigh warning']);
  await gateway.open();
  await eventually(firing).toEqual([]);

  await daemon.stop();
  await eventually(firing).toEqual(['ScanfeedDown critical']);
  await setup.daemon(env).catchesUp();
  await eventually(firing).toEqual([]);
});
