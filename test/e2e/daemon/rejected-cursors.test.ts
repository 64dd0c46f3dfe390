import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();
const PATIENCE = { timeout: 240_000 };
const REFUSALS = ['400', '404', '410', '414', '422', '431', 'reset'] as const;

test('recovers from a rejected cursor however the service refuses it', PATIENCE, async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const daemon = setup.daemon(setup.environment(service, database));
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
