import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchSchema } from '../../../src/daemon/schema-watch.js';
import { createReadiness } from '../../../src/observability/admin/readiness.js';
import { recordingLogger } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { settingsWith } from '../../support/settings.js';
import { MIGRATED, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const provided = useDatabase(MIGRATED);
const bench = useStore(provided);
const NOT_LOOKED_AFTER = 'the role for readers of the reports was not looked after';

describe('while the database says nothing on the connection for the reader role', () => {
  let proxy: TcpProxy;
  beforeEach(async () => {
    proxy = await TcpProxy.to(provided.url);
    proxy.set({ blackhole: true });
  });
  afterEach(() => proxy.close());

  /** The schema is ready; the connection is made, and no answer comes. */
  async function readyBesideSilence() {
    const { database: settings } = settingsWith({
      DATABASE_URL: provided.url,
      SCANFEED_MIGRATION_DATABASE_URL: proxy.urlOf(provided.url),
    });
    const { logger, lines, until } = recordingLogger();
    const readiness = createReadiness();
    const stop = new AbortController();
    const schema = watchSchema(settings, bench.database, readiness, logger, stop.signal);
    await schema.ready(stop.signal);
    const given = lines.map(({ message }) => message);
    expect(given).not.toContain(NOT_LOOKED_AFTER);
    expect(readiness.check().ready).toBe(true);
    await expect.poll(() => proxy.connections[0]?.lost.client).toBeGreaterThan(0);
    return { schema, stop, lines, until };
  }

  it('the schema is ready all the same, and a failure is said when it comes', async () => {
    const { schema, until } = await readyBesideSilence();
    proxy.cutAll('reset');
    await until(NOT_LOOKED_AFTER);
    await schema.over();
  });

  it('a stop ends that connection at once, and says nothing of it', async () => {
    const { schema, stop, lines } = await readyBesideSilence();
    stop.abort();
    await schema.over();
    await proxy.connections[0]?.closed;
    expect(lines.map(({ message }) => message)).not.toContain(NOT_LOOKED_AFTER);
  });
});
