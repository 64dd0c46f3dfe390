import type { BenchService } from '../service/start.js';
import type { BenchServer } from './postgres.js';
import { cpuMs, treeCpuMs } from './process-figures.js';

/** Processor time by process, milliseconds. */
export interface CpuUse {
  /** Of the contestant. */
  readonly writer: number;
  readonly postgres: number;
  readonly service: number;
}

/** Meters from now on what database and service use; the writer reports its own. */
export function startMeter(server: BenchServer, service: BenchService): (writerMs: number) => CpuUse {
  const before = { postgres: treeCpuMs(server.pid), service: cpuMs(service.pid) };
  return (writer) => ({
    writer,
    postgres: treeCpuMs(server.pid) - before.postgres,
    service: cpuMs(service.pid) - before.service,
  });
}
