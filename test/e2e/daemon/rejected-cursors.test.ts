import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';

const bench = useProgram();
const PATIENCE = { timeout: 240_000 };
const REFUSALS = ['400', '404', '410', '414', '422', '431', 'reset'] as const;

test('recovers from a rejected cursor however the service refuses it', PATIENCE, async () => {
  const service = await bench.startService();
  const database = await bench.createDatabase();
  service.deliver(5);
  const daemon = bench.daemon(bench.environment(service, database));
  await daemon.catchesUp();
  for (const [index, cursorRefusal] of REFUSALS.entries()) {
    service.set({ cursorRefusal });
    service.invalidateCursors();
    service.deliver(5);
    await daemon.reaches({ runsWritten: 10 + 5 * index });
    await daemon.catchesUp();
    const recovered = daemon.logged('cursor rejected, resuming from another position');
    expect(recovered, cursorRefusal).toHaveLength(index + 1);
  }
});

test.each([9_000, 100_000, 5_000_000])(
  'stores the entries but no cursor of %i characters, and continues when cursors are short again',
  PATIENCE,
  async (cursorLength) => {
    const service = await bench.startService();
    const database = await bench.createDatabase();
    service.deliver(5);
    const daemon = bench.daemon(bench.environment(service, database));
    await daemon.catchesUp();
    const cursor = () => database.query('SELECT cursor FROM scanfeed.feeds');
    const before = await cursor();

    service.set({ cursorLength });
    service.deliver(5);
    await daemon.reaches({ runsWritten: 10, stuckSince: expect.any(String) as unknown as string });
    expect(await cursor()).toEqual(before);

    service.set({ cursorLength: 0 });
    service.deliver(5);
    await daemon.reaches({ runsWritten: 15, stuckSince: null });
    await daemon.catchesUp();
    await eventually(cursor).not.toEqual(before);
  },
);
