import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { startEmulator } from '../emulator/index.js';

/** Runs that the emulated service has finished before the demo's very first start, and new ones while it runs. */
const HISTORY = 5_000;
const NEW_RUNS_PER_SECOND = 3;
const CORRECTIONS_PER_MINUTE = 4;
const SWITCHES = { truncatedShare: 0.02, failureShare: 0.04, testEnvironmentShare: 0 } as const;

/** When the demo ran, in milliseconds since 1970. */
const periodsSchema = z.array(z.tuple([z.number(), z.number()]));
type Periods = z.output<typeof periodsSchema>;

/**
 * Starts an emulated service that goes on where it was when the demo ran last: its runs follow from the seed and from
 * the times at which it ran, so these are all that is kept.
 */
export async function startDemoService(file: string, port: number) {
  const earlier = await readPeriods(file);
  const startedAt = Date.now();
  let replayed: number | null = earlier[0]?.[0] ?? startedAt;
  const emulator = await startEmulator({
    port,
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
    /** Notes that the demo runs until now, so that the service is found as it was left; also after a hard end. */
    noteRunning: () => writePeriods(file, [...earlier, [startedAt, Date.now()]]),
  };
}

/** A file that is missing or damaged means a first start. */
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
