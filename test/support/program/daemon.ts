import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { StatusReport } from '../../../src/observability/status-page/status-report.js';
import { captureLeaks } from '../canaries/capture-leaks.js';
import { samplesOf } from '../observed.js';
import { Program } from './program.js';

export interface Page {
  readonly status: number;
  readonly body: string;
}

const GENEROUS = { timeout: 45_000, interval: 20 };

/** `scanfeed run` as a process, with its admin server. */
export class Daemon extends Program {
  /** Every page that a test fetched from it. */
  readonly served: string[] = [];

  constructor(env: Readonly<Record<string, string>>, nodeOptions: readonly string[] = []) {
    super(['run'], env, nodeOptions);
  }

  /** Returns the URL of the admin server once it is listening. */
  async adminUrl(): Promise<string> {
    const { port } = await this.logs('admin server is listening');
    return `http://127.0.0.1:${port}`;
  }

  async get(path: string): Promise<Page> {
    const response = await fetch(`${await this.adminUrl()}${path}`);
    const body = await response.text();
    this.served.push(body);
    captureLeaks(path, body);
    return { status: response.status, body };
  }

  async status(): Promise<StatusReport> {
    return JSON.parse((await this.get('/status.json')).body) as StatusReport;
  }

  /** Returns the value of a series, such as `scanfeed_runs_total{outcome="inserted"}`; undefined if it does not exist. */
  async metric(series: string): Promise<number | undefined> {
    return (await this.metrics()).get(series);
  }

  async metrics(): Promise<Map<string, number>> {
    return samplesOf((await this.get('/metrics')).body);
  }

  /** Waits until the status has these values. */
  reaches(status: Partial<StatusReport>): Promise<void> {
    return this.#until((report) => expect(report).toMatchObject(status));
  }

  async catchesUp(): Promise<void> {
    await this.reaches({ caughtUp: true, initialSyncComplete: true, currentErrors: [] });
  }

  /** Waits until a stage has failed this often in a row. */
  failsRepeatedly(stage: string, failures: number): Promise<void> {
    return this.#until(({ currentErrors }) => {
      const failed = currentErrors.find((error) => error.stage === stage)?.failures ?? 0;
      expect(failed, `failures of ${stage} in a row`).toBeGreaterThanOrEqual(failures);
    });
  }

  /** Polls the status until the assertion holds. Fails immediately if the daemon has ended. */
  async #until(assertion: (report: StatusReport) => void): Promise<void> {
    for (const deadline = performance.now() + GENEROUS.timeout; ; await sleep(GENEROUS.interval)) {
      const report = await this.status();
      try {
        return assertion(report);
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
    }
  }
}

/** Polls until the assertion holds, with a timeout for a busy machine. */
export const eventually: typeof expect.poll = (actual, options) => expect.poll(actual, { ...GENEROUS, ...options });
