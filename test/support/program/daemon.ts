import { expect } from 'vitest';
import type { StatusReport } from '../../../src/observability/status-report.js';
import { samplesOf } from '../observed.js';
import { Program } from './program.js';

export interface Page {
  readonly status: number;
  readonly body: string;
}

const GENEROUS = { timeout: 45_000, interval: 20 };

/** `scanfeed run` as a process, and what it serves. */
export class Daemon extends Program {
  /** Every page that was fetched from it. */
  readonly served: string[] = [];

  constructor(env: Readonly<Record<string, string>>) {
    super(['run'], env);
  }

  /** Where metrics, health and status are served. */
  async adminUrl(): Promise<string> {
    const { port } = await this.logs('metrics, health and status are served');
    return `http://127.0.0.1:${port}`;
  }

  async get(path: string): Promise<Page> {
    const response = await fetch(`${await this.adminUrl()}${path}`);
    const body = await response.text();
    this.served.push(body);
    return { status: response.status, body };
  }

  async status(): Promise<StatusReport> {
    return JSON.parse((await this.get('/status.json')).body) as StatusReport;
  }

  /** The value of a series, such as `scanfeed_runs_total{outcome="inserted"}`; undefined where there is none. */
  async metric(series: string): Promise<number | undefined> {
    return (await this.metrics()).get(series);
  }

  async metrics(): Promise<Map<string, number>> {
    return samplesOf((await this.get('/metrics')).body);
  }

  /** Waits until the status holds these. */
  async reaches(status: Partial<StatusReport>): Promise<void> {
    await expect.poll(() => this.status(), GENEROUS).toMatchObject(status);
  }

  async catchesUp(): Promise<void> {
    await this.reaches({ caughtUp: true, backfillComplete: true, troubles: [] });
  }

  /** Waits until a stage has failed this often in a row. */
  async failsRepeatedly(stage: string, failures: number): Promise<void> {
    const failed = async () => (await this.status()).troubles.find((trouble) => trouble.stage === stage)?.failures ?? 0;
    await expect.poll(failed, GENEROUS).toBeGreaterThanOrEqual(failures);
  }
}

/** Polls until it holds, for as long as a busy machine may need. */
export const eventually: typeof expect.poll = (actual, options) => expect.poll(actual, { ...GENEROUS, ...options });
