import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { unusedPort } from '../unused-port.js';
import { type AlertFile, JOB, testFolder } from './chart.js';

/** Prometheus with one target and one file of rules, which it looks at several times a second. */
export class Prometheus {
  private constructor(
    readonly url: string,
    private readonly process: ChildProcess,
  ) {}

  /** @param target `host:port`, scraped with the labels that the operator gives to the pods of the release "invoices" */
  static async watching(target: string, rules: AlertFile): Promise<Prometheus> {
    const folder = await testFolder();
    const labels = { namespace: 'documents' };
    const job = { job_name: JOB, static_configs: [{ targets: [target], labels }] };
    const config = {
      global: { scrape_interval: '200ms', scrape_timeout: '200ms', evaluation_interval: '200ms' },
      rule_files: ['rules.json'],
      scrape_configs: [job],
    };
    await writeFile(join(folder, 'rules.json'), JSON.stringify(rules));
    await writeFile(join(folder, 'prometheus.json'), JSON.stringify(config));
    const address = `127.0.0.1:${await unusedPort()}`;
    const options = [
      `--config.file=${join(folder, 'prometheus.json')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ];
    const child = spawn('prometheus', options, { stdio: ['ignore', 'inherit', 'inherit'] });
    onTestFinished(async () => {
      if (child.exitCode !== null || !child.kill('SIGKILL')) return;
      await once(child, 'close');
    });
    await once(child, 'spawn');
    return new Prometheus(`http://${address}`, child);
  }

  /** What fires now: `name severity`, sorted. Rejects while it does not answer yet. */
  async firing(): Promise<string[]> {
    if (this.process.exitCode !== null) throw new Error(`prometheus ended with ${this.process.exitCode}`);
    const response = await fetch(`${this.url}/api/v1/alerts`);
    const { data } = (await response.json()) as {
      data: { alerts: { state: string; labels: Record<string, string> }[] };
    };
    const firing = data.alerts.filter(({ state }) => state === 'firing');
    return firing.map(({ labels }) => `${labels.alertname} ${labels.severity}`).sort();
  }

  /** The value of an expression that has one, now; null where it has none. */
  async value(expression: string): Promise<number | null> {
    const response = await fetch(`${this.url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    const [sample] = data.result;
    return sample === undefined ? null : Number(sample.value[1]);
  }
}
