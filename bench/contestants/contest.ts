/** What a contestant's process is started with. */
export interface ContestConfig {
  readonly databaseUrl: string;
  readonly serviceUrl: string;
  readonly apiKey: string;
  /** Of those that commit pages: how many at once. */
  readonly pagesTogether: number;
}

export interface Contested {
  readonly seconds: number;
  /** Runs read, or stored. */
  readonly runs: number;
  /** Processor time of the process, milliseconds. */
  readonly cpuMs: number;
}

/** A contestant that is ready to go, and stores everything; resolves with the number of runs. */
export type Ready = () => Promise<number>;

/** The frame of a contestant's process: prepares, says so, waits for the start, reports and ends. */
export async function contest(prepare: (config: ContestConfig) => Promise<Ready>): Promise<void> {
  const go = await prepare(JSON.parse(process.argv[2] ?? '') as ContestConfig);
  process.once('message', () => {
    void race(go).then((result) => process.send?.(result, () => process.exit(0)));
  });
  process.send?.('ready');
}

async function race(go: Ready): Promise<Contested> {
  const started = performance.now();
  const cpu = process.cpuUsage();
  const runs = await go();
  const { user, system } = process.cpuUsage(cpu);
  return { runs, seconds: (performance.now() - started) / 1000, cpuMs: (user + system) / 1000 };
}
