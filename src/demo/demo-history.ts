import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { startEmulator } from '../emulator/index.js';

/** Number of runs that the emulated service has finished before the first start of the demo. */
const HISTORY = 5_000;
const NEW_RUNS_PER_SECOND = 3;
const CORRECTIONS_PER_MINUTE = 4;
const SWITCHES = { truncatedShare: 0.02, failureShare: 0.04, testEnvironmentShare: 0 } as const;

/** Periods in which the demo ran, milliseconds since 1970. */
const periodsSchema = z.array(z.tuple([z.number(), z.number()]));
type Periods = z.output<typeof periodsSchema>;

/**
 * Starts an emulated service in the state in which the last demo ended. Its runs depend only on the seed and on the periods in
 * which it ran, so only these periods are stored.
 */
export async function startDemoService(file: string, address: { readonly host: string; readonly port: number }) {
  const earlier = await readPeriods(file);
  const startedAt = Date.now();
  let replayed: number | null = earlier[0]?.[0] ?? startedAt;
  const emulator = await startEmulator({
    ...address,
    history: HISTORY,
    switches: SWITCHES,
    now: () => replayed ?? Date.now(),
  });
  for (const [from, to] of earlier) {
    replayed = from;
    emulator.set({ newRunsPerSecond: NEW_RUNS_PER_SECOND });
    replayed = to;
    emulator.set({ newRunsPerSecond: 0 });
  }
  replayed = null;
  emulator.set({ newRunsPerSecond: NEW_RUNS_PER_SECOND, correctionsPerMinute: CORRECTIONS_PER_MINUTE });
  return {
    emulator,
    /** Records that the demo has run until now, so that the next start restores this state, also after a crash. */
    noteRunning: () => writePeriods(file, [...earlier, [startedAt, Date.now()]]),
  };
}

/** Reads the periods; empty if the file is missing or damaged. */
async function readPeriods(file: string): Promise<Periods> {
  try {
    return periodsSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return [];
  }
}

async function writePeriods(file: string, periods: Periods): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(periods));
  await rename(`${file}.new`, file);
}
