import { Command } from 'commander';
import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import * as status from '../../../src/cli/commands/status.js';
import { hastyClock, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { makeReadOnly } from '../../support/postgres/maintenance.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { unusedPort } from '../../support/unused-port.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const env = () => ({ DATABASE_URL: given.url });

beforeAll(async () => {
  const feed = await setup.takeFeed({ baseUrl: `https://${'recognition.'.repeat(6)}example/v1` });
  await feed.commit([
    entryJson({ scanId: 'a' }),
    entryJson({ scanId: 'b' }),
    entryJson({ scanId: 'c', status: 'odd' }),
  ]);
  await setup.rows(
    sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp(), delivered_up_to = clock_timestamp(),
      last_delivered_at = clock_timestamp() - interval '2 hours'`,
  );
  await setup.rows(sql`UPDATE ${tables.cursorHistory} SET last_delivered_at = clock_timestamp()`);
  await setup.rows(sql`UPDATE ${tables.runs} SET result_state = 'pending', pending_reason = 'not_found',
    pending_since = clock_timestamp() - interval '3 hours', next_try_at = clock_timestamp() + interval '20 minutes'
    WHERE scan_id = 'b'`);
});

describe('status', () => {
  it('shows freshness, leader, pending results, quarantine and earlier cursors', async () => {
    const { out, exitCode } = await runCommand(status, ['status'], { env: env() });
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^Complete as of: +\S+Z \(\d.* ago\)$/m);
    expect(out).toMatch(/^Reconciled: +not yet$/m);
    expect(out).toMatch(/^Recently stored: +2 runs in the last 5 min$/m);
    expect(out).toMatch(/^Pending results: 1 \(1 not_found\); the oldest for 3\.0 h, next retry in (19|20) min$/m);
    expect(out).toMatch(/^In quarantine: +1 \(1 status\); last delivered \S+Z, see `scanfeed quarantine list`$/m);
    expect(out).toMatch(/^Leader: +\S+$/m);
    expect(out).toMatch(/^Runs: +2$/m);
    expect(out).toMatch(/^Last delivery: +\S+Z \(2\.0 h ago\)$/m);
    expect(out).toMatch(/^CURSOR +NOTED +REASON +DELIVERED UP TO\n +1 +\S+Z +checkpoint +\S+Z\n/m);
  });

  it('names a server that accepts no writes, and the remedy', async () => {
    const undo = await makeReadOnly(given.url);
    const { out } = await runCommand(status, ['status'], { env: env() });
    await undo();
    expect(out).toMatch(/^Failing: +transactions are read-only; remove default_transaction_read_only/m);
  });

  it('reports that no leader retries pending results, and the number of given-up results', async () => {
    await setup.rows(sql`UPDATE ${tables.processes} SET expires_at = expires_at - interval '1 day'`);
    const { out } = await runCommand(status, ['status'], { env: env() });
    await setup.rows(sql`UPDATE ${tables.processes} SET expires_at = expires_at + interval '1 day'`);
    expect(out).toMatch(
      /^Pending results: 1 \(1 not_found\); the oldest for 3\.0 h, not retried without a leader, see `/m,
    );
    const [due] = await setup.rows<{ due: string }>(
      sql`SELECT next_try_at::text AS due FROM ${tables.runs} WHERE scan_id = 'b'`,
    );
    await setup.operatorStore.pending.giveUp('default', new Map([['b', 1]]));
    expect((await runCommand(status, ['status'], { env: env() })).out).toMatch(/^Pending results: none; 1 given up$/m);
    await setup.rows(sql`UPDATE ${tables.runs} SET next_try_at = ${due?.due}::timestamptz WHERE scan_id = 'b'`);
  });

  it('counts completed runs without usable data', async () => {
    await setup.rows(sql`UPDATE ${tables.runs} SET data = NULL WHERE scan_id = 'a'`);
    const { out } = await runCommand(status, ['status'], { env: env() });
    await setup.rows(sql`UPDATE ${tables.runs} SET data = '{}' WHERE scan_id = 'a'`);
    expect(out).toMatch(/^Runs: +2; 1 completed without usable data, never productive$/m);
  });

  it('counts completed runs that only an earlier revision puts into test mode', async () => {
    const set = (testMode: boolean, revision: number) =>
      setup.rows(sql`UPDATE ${tables.runs} SET partner_test_mode = ${testMode}, test_mode_revision = 1, revision = ${revision}
        WHERE scan_id = 'a'`);
    const [{ revision } = { revision: 1 }] = await setup.rows(
      sql<{ revision: number }>`SELECT revision FROM ${tables.runs} WHERE scan_id = 'a'`,
    );
    await set(true, revision + 1);
    const { out } = await runCommand(status, ['status'], { env: env() });
    await set(false, revision + 1);
    expect(out).toMatch(/^Runs: +2; 1 in test mode only because an earlier revision says so$/m);
  });

  it('fits 80 columns, except for longer addresses, when the output is a terminal', async () => {
    const { out } = await runCommand(status, ['status'], { env: env(), columns: 80 });
    const long = out.split('\n').filter((line) => line.length > 80);
    expect(long).toEqual([expect.stringContaining('https://recognition.recognition.')]);
  });

  it('prints the same as JSON when --json is given', async () => {
    const { out } = await runCommand(status, ['status', '--json'], { env: env() });
    expect(JSON.parse(out)).toMatchObject([
      {
        storedRecently: 2,
        pendingSince: expect.stringMatching(/Z$/),
        pendingNextTryAt: expect.stringMatching(/Z$/),
        quarantinedLastAt: expect.stringMatching(/Z$/),
        positions: [{ id: '1', reason: 'checkpoint' }],
      },
    ]);
  });

  it.each(['0s', '2d', 'often'])('rejects the interval %s', async (interval) => {
    const { exitCode, err } = await runCommand(status, ['status', '--watch', interval], { env: env() });
    expect(exitCode).toBe(64);
    expect(err).toContain('--watch');
  });
});

describe('status --watch', () => {
  /** Refreshes this many times, and returns each output and the notes. */
  const watch = async (
    args: readonly string[],
    times: number,
    columns: number | null,
    meanwhile = async (_times: number) => {},
    given = env(),
  ) => {
    const written: string[] = [];
    const notes: string[] = [];
    const waits: number[] = [];
    const io = {
      env: given,
      clock: {
        ...hastyClock,
        sleep: async (ms: number) => {
          waits.push(ms);
          await meanwhile(waits.length);
        },
      },
      write: (data: string | Uint8Array) => void written.push(String(data)),
      writeControls: (text: string) => void written.push(text),
      written: async () => waits.length + 1 < times,
      note: (text: string) => void notes.push(text),
      columns,
      noteColumns: null,
      ask: null,
    };
    const program = new Command('scanfeed').exitOverride();
    status.register(program, io);
    await program.parseAsync(['status', ...args], { from: 'user' });
    return { written, notes, waits };
  };

  it('redraws the status when the output is a terminal', async () => {
    const { written, waits } = await watch(['--watch'], 2, 80);
    expect(written).toHaveLength(2);
    for (const frame of written) {
      expect(frame.startsWith('\u001b[HFeed: ')).toBe(true);
      expect(frame.endsWith('\u001b[K\n\u001b[J')).toBe(true);
    }
    expect(waits).toEqual([2_000]);
  });

  it('writes a block per refresh when the output is a pipe, and ends when the pipe is closed', async () => {
    const { written, waits } = await watch(['--watch', '5s'], 3, null);
    expect(written).toHaveLength(3);
    for (const block of written) {
      expect(block).toMatch(/^Feed: [\s\S]*\n\n$/);
      expect(block).not.toContain('\u001b');
    }
    expect(waits).toEqual([5_000, 5_000]);
  });

  it('writes a line of JSON per refresh when --json is given', async () => {
    const { written } = await watch(['--watch', '--json'], 2, 80);
    expect(written.map((line) => JSON.parse(line).length)).toEqual([1, 1]);
    expect(written.every((line) => line.indexOf('\n') === line.length - 1)).toBe(true);
  });

  it('reports an outage, and continues, when the database is unavailable', async () => {
    const proxy = await TcpProxy.to(given.url);
    const server = proxy.target;
    const closed = { host: '127.0.0.1', port: await unusedPort() };
    try {
      const { written, notes } = await watch(
        ['--watch'],
        3,
        null,
        async (times) => {
          proxy.target = times === 1 ? closed : server;
          if (times === 1) proxy.cutAll('reset');
        },
        { DATABASE_URL: proxy.urlOf(given.url) },
      );
      expect(written).toHaveLength(2);
      expect(notes).toEqual([expect.stringMatching(/^scanfeed: .*PostgreSQL.*\n$/)]);
    } finally {
      await proxy.close();
    }
  });
});
