import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Contested } from '../contestants/contest.js';
import type { ServiceAddress } from '../service/protocol.js';
import { PROGRAM, startDaemon } from './daemon.js';
import type { BenchDatabase, BenchServer } from './postgres.js';
import { cpuMs, memoryOf } from './process-figures.js';
import { inScope } from './scope.js';

export interface Synced extends Contested {
  /** When the end was committed, milliseconds since 1970. */
  readonly endedAt: number;
  /** Resident memory at its most. */
  readonly peakBytes: number;
}

/** scanfeed as a contestant: from the start of its process until the end of the feed was committed. */
export async function syncToTheEnd(
  service: ServiceAddress,
  database: BenchDatabase,
  settings: Readonly<Record<string, string>> = {},
): Promise<Synced> {
  return inScope(async (scope) => {
    const daemon = startDaemon(scope, service, database, settings);
    const endedAt = await daemon.reachesEnd(settings.SCANFEED_FEED);
    const used = cpuMs(daemon.pid);
    const { peak } = memoryOf(daemon.pid);
    const rows = await database.query<{ runs: number }>('SELECT count(*)::int AS runs FROM scanfeed.runs');
    return {
      seconds: (endedAt - daemon.startedAt) / 1000,
      runs: rows[0]?.runs ?? 0,
      cpuMs: used,
      endedAt,
      peakBytes: peak,
    };
  });
}

/** An empty database with scanfeed's tables. */
export async function migratedDatabase(server: BenchServer): Promise<BenchDatabase> {
  const database = await server.createDatabase();
  const { PATH = '', HOME = '' } = process.env;
  // The command reads the same settings as the daemon.
  const env = { PATH, HOME, DATABASE_URL: database.url };
  await promisify(execFile)(process.execPath, [PROGRAM, 'migrate'], { env });
  return database;
}
