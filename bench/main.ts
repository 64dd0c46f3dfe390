/**
 * Measures what docs/measurements.md reports: `npm run bench`, or `npm run bench -- NAME…` for some of it. What takes
 * very long runs only when it is named. `--quick` shows in a minute or two that everything works, and writes nothing.
 * Ends with 1 where a figure is not what was wanted.
 */
import { backlog } from './figures/backlog.js';
import { coldSync } from './figures/cold-sync.js';
import { feeds } from './figures/feeds.js';
import { framing } from './figures/framing.js';
import { freshness } from './figures/freshness.js';
import { growth } from './figures/growth.js';
import { idle } from './figures/idle.js';
import { latency } from './figures/latency.js';
import { manyFeeds } from './figures/many-feeds.js';
import { manySchemas } from './figures/many-schemas.js';
import { redelivery } from './figures/redelivery.js';
import { reports } from './figures/reports.js';
import { restart } from './figures/restart.js';
import { retention } from './figures/retention.js';
import { soak } from './figures/soak.js';
import { truncated } from './figures/truncated.js';
import type { Bench, Figure, Findings } from './support/figure.js';
import { describeMachine, load } from './support/machine.js';
import { render, writePart } from './support/report.js';
import { inScope } from './support/scope.js';

const FIGURES: readonly Figure[] = [
  coldSync,
  latency,
  truncated,
  redelivery,
  backlog,
  idle,
  restart,
  freshness,
  framing,
  growth,
  retention,
  reports,
  feeds,
  manyFeeds,
  manySchemas,
  soak,
];
const DOCUMENT = new URL('../../../docs/measurements.md', import.meta.url);

/** Ctrl-C: what was started is ended, and nothing is left behind. */
class Interrupted extends Error {}

const interrupted = new Promise<never>((_, reject) => {
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => reject(new Interrupted(name)));
});
interrupted.catch(() => {});

async function main(args: readonly string[]): Promise<number> {
  const quick = args.includes('--quick');
  const names = args.filter((arg) => arg !== '--quick');
  const unknown = names.filter((name) => !FIGURES.some((figure) => figure.name === name));
  if (unknown.length > 0) {
    console.error(`no such figure: ${unknown.join(', ')}; there are ${FIGURES.map(({ name }) => name).join(', ')}`);
    return 64;
  }
  const wanted = FIGURES.filter(({ name, onDemand }) =>
    names.length === 0 ? onDemand !== true : names.includes(name),
  );
  let missed = 0;
  for (const figure of wanted) {
    const { findings, circumstances } = await measure(figure, quick);
    const part = render(figure, findings, circumstances);
    console.log(`\n${part}\n`);
    if (!quick) await writePart(DOCUMENT, figure.name, part);
    missed += findings.wanted.filter(({ met }) => !met).length;
  }
  return missed === 0 ? 0 : 1;
}

async function measure(figure: Figure, quick: boolean): Promise<{ findings: Findings; circumstances: string }> {
  const startedAt = performance.now();
  const before = load();
  const note: Bench['note'] = (text) => console.error(`${figure.name}: ${text}`);
  const findings = await inScope((scope) => Promise.race([figure.measure({ scope, quick, note }), interrupted]));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const circumstances = `${describeMachine(findings.postgresVersion)}; load before it ${before.toFixed(1)}; took ${seconds} s.`;
  return { findings, circumstances };
}

const code = await main(process.argv.slice(2)).catch((error: unknown) => {
  if (!(error instanceof Interrupted)) console.error(error);
  return error instanceof Interrupted ? 130 : 1;
});
// What a figure that was interrupted still waits for is no longer there.
process.exit(code);
