import { expect, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { attributesOf, startCollector } from '../../support/tracing/collector.js';

const setup = useProgram();

test('sends the life of each committed page to a collector, of the feed and of passes, without any content', async () => {
  const collector = await startCollector();
  setup.afterwards(collector.close);
  const service = await setup.startService({ switches: { truncatedShare: 0.1 } });
  const database = await setup.createDatabase();
  service.deliver(450);
  const daemon = setup.daemon({
    ...setup.environment(service, database),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    SCANFEED_RECONCILE_INTERVAL: '1s',
  });
  await daemon.catchesUp();
  const reconciled = () =>
    database.query('SELECT reconciled_as_of FROM scanfeed.feeds WHERE reconciled_as_of IS NOT NULL');
  await eventually(reconciled).toHaveLength(1);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });

  const spans = collector.spans();
  const pages = spans.filter(({ name }) => name === 'page').map(attributesOf);
  const entriesOf = (reading: string) =>
    pages
      .filter((page) => page['scanfeed.reading'] === reading)
      .reduce((sum, page) => sum + Number(page['scanfeed.entries']), 0);
  expect(entriesOf('feed')).toBeGreaterThanOrEqual(450);
  expect(entriesOf('recent')).toBeGreaterThanOrEqual(450);
  const commits = spans.filter(({ name }) => name === 'commit').map(attributesOf);
  expect(commits.reduce((sum, commit) => sum + Number(commit['scanfeed.inserted']), 0)).toBe(450);
  for (const span of spans) expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  for (const secret of Object.values(setup.secrets)) expect(collector.text()).not.toContain(secret);
  for (const { nextCursor } of service.asked) if (nextCursor) expect(collector.text()).not.toContain(nextCursor);
});
