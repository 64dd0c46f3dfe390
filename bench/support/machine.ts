import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

/** The machine in general terms: what a figure depends on. */
export function describeMachine(postgresVersion: string): string {
  const model =
    cpus()[0]
      ?.model.replaceAll(/\((R|TM)\)/g, '')
      .replaceAll(/\s+/g, ' ')
      .trim() ?? 'unknown processor';
  const gib = Math.round(totalmem() / 2 ** 30);
  const cores = availableParallelism();
  return `${cores} ${cores === 1 ? 'core' : 'cores'} (${model}), ${gib} GiB of memory, Linux; Node.js ${process.versions.node}, PostgreSQL ${postgresVersion}`;
}

/** Load of the last minute: over the number of cores, others were in the way. */
export function load(): number {
  return loadavg()[0] ?? 0;
}
