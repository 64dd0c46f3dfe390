import { expect, test } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test.each([
  ['an unusable revision', 'revision', { revision: raw('1.5') }],
  ['a value that PostgreSQL refuses', 'refused', { data: { betrag: raw('1e400000') } }],
])(
  'quarantines an entry byte for byte, stores its neighbours and reports both when it has %s',
  async (_, reason, bad) => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const { document } = setup.secrets;
    const before = service.deliver(3);
    // Spaces and unknown fields show that the bytes are stored unchanged.
    const text = entryJson({ scanId: 'bad', partnerName: document, unknown: document, ...bad }).replace('{', '{  ');
    service.appendRaw([text]);
    const after = service.deliver(3);
    const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_LOG_LEVEL: 'trace' });
    await daemon.catchesUp();
    await daemon.reaches({ quarantinedEntries: 1, runsWritten: 6 });

    const quarantine = await database.query('SELECT scan_id, reason, state, payload FROM scanfeed.quarantine');
    expect(quarantine).toEqual([{ scan_id: 'bad', reason, state: 'open', payload: Buffer.from(text) }]);
    const rows = await database.query<{ scan_id: string }>('SELECT scan_id FROM scanfeed.runs');
    expect(rows.map((row) => row.scan_id).sort()).toEqual([...before, ...after].sort());
    expect(await daemon.metric('scanfeed_quarantined_entries')).toBe(1);
    expect(await daemon.metric('scanfeed_runs_total{outcome="quarantined"}')).toBe(1);
    expect(daemon.logged('quarantined entries')).toMatchObject([{ level: 'warn', entries: 1 }]);
  },
);
