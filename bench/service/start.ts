import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../support/scope.js';
import type { FromService, ServiceAddress, ServiceConfig, ServiceLog, ToService } from './protocol.js';

export interface BenchService extends ServiceAddress {
  readonly pid: number;
  /** What was asked since this was last called. */
  log(): Promise<ServiceLog>;
  /** From now on, each organization has this many new runs a second. */
  deliverNewRuns(perSecond: number): void;
}

const PROGRAM = fileURLToPath(new URL('process.js', import.meta.url));
const QUIET = {
  seed: 1,
  latencyMs: 0,
  slowOrganizations: 0,
  slowLatencyMs: 0,
  truncatedShare: 0,
  newRunsPerSecond: 0,
  organizations: 1,
};

/** Starts the service; it accepts requests when this resolves. */
export async function startService(
  scope: Scope,
  config: Partial<ServiceConfig> & Pick<ServiceConfig, 'history'>,
): Promise<BenchService> {
  const child = fork(PROGRAM, [JSON.stringify({ ...QUIET, ...config })], { execArgv: [] });
  scope.defer(() => child.kill('SIGKILL'));
  const answer = async (): Promise<FromService> => {
    const ended = new AbortController();
    const died = once(child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error('the service of the measurements has ended');
    });
    died.catch(() => {});
    try {
      return (await Promise.race([once(child, 'message'), died]))[0] as FromService;
    } finally {
      ended.abort();
    }
  };
  const started = await answer();
  if (!('address' in started)) throw new TypeError('the service did not say its address');
  return {
    ...started.address,
    pid: child.pid ?? 0,
    deliverNewRuns: (perSecond) => void child.send(perSecond satisfies ToService),
    log: async () => {
      child.send('log');
      const said = await answer();
      if (!('log' in said)) throw new TypeError('the service did not answer');
      return said.log;
    },
  };
}
