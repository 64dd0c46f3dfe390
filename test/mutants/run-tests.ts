import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mutant, Patch } from './mutant.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What the tests need; the rest of the repository plays no part. */
const COPIED = [
  'src',
  'test',
  'migrations',
  'openapi',
  'docs',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'vitest.config.ts',
];

const FILES: Readonly<Record<Mutant['tests'], readonly string[]>> = {
  engine: ['test/simulation/', 'test/sync/'],
  statements: [
    'model-store',
    'commit/commit-page',
    'commit/commit-revisions',
    'commit/commit-quarantine',
    'commit/commit-values',
    'commit/commit-waits',
    'commit/commit-conflicts',
    'commit/commit-transactions',
    'commit/overlapping-commits',
    'commit/earlier-positions',
    'commit/end-claims',
    'feeds/lease',
    'feeds/processes',
    'feeds/read-feeds',
    'passes/passes',
    'operator/request-pass',
  ].map((name) => `test/storage/${name}.test.ts`),
  reports: ['views', 'typed-views', 'odd-documents', 'refresh-views', 'erasure', 'changes', 'stored-rows'].map(
    (name) => `test/storage/reporting/${name}.test.ts`,
  ),
};

/** Enough to catch every mutant, and no more. */
const SEEDS = { SIMULATION_SEEDS: '250', MODEL_STORE_HISTORIES: '150' };
/** A mutant may make the program spin. */
const PATIENCE_MS = 120_000;
/** Characters of the end of what a run prints. */
const OUTPUT_KEPT = 65_536;

/** The first test that failed, and why; null: all passed. */
export interface Catch {
  readonly test: string;
  readonly message: string;
}

interface Report {
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** Runs the tests on a copy of the program with these patches. Throws where a patch no longer fits, or no test ran. */
export async function runTests(
  { tests, patches }: Pick<Mutant, 'tests' | 'patches'>,
  databaseUrl: string,
): Promise<Catch | null> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-mutant-'));
  try {
    await Promise.all(COPIED.map((name) => cp(join(root, name), join(folder, name), { recursive: true })));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    for (const patch of patches) await apply(patch, folder);
    const report = join(folder, 'report.json');
    const run = await runVitest(folder, tests, report, databaseUrl);
    if (!run.ended) return { test: 'all tests', message: `they do not end within ${PATIENCE_MS / 1000} s` };
    const found = JSON.parse(await readFile(report, 'utf8')) as Report;
    if (found.numTotalTests === 0) throw new Error(`no test ran: ${run.output}`);
    return firstFailure(found);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function apply({ file, find, replace }: Patch, folder: string): Promise<void> {
  const path = join(folder, file);
  const parts = (await readFile(path, 'utf8')).split(find);
  if (parts.length !== 2) throw new Error(`${file} has this text ${parts.length - 1} times, not once: ${find}`);
  await writeFile(path, parts.join(replace));
}

interface VitestRun {
  /** False: it had to be ended. */
  readonly ended: boolean;
  readonly output: string;
}

function runVitest(folder: string, tests: Mutant['tests'], report: string, databaseUrl: string): Promise<VitestRun> {
  const script = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const args = ['run', '--root', folder, '--project', 'fast', '--bail', '1'];
  const reporting = ['--reporter', 'json', '--outputFile', report];
  const env = { ...process.env, ...SEEDS, TEST_DATABASE_URL: databaseUrl, TEST_DATABASE: '', VITEST_MAX_WORKERS: '1' };
  // A separate process group: a worker in an endless loop outlives the process that started it, and its memory grows.
  const child = spawn(process.execPath, [script, ...args, ...reporting, ...FILES[tests]], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endAll = () => endGroup(child.pid);
  process.once('exit', endAll);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_KEPT);
    });
  }
  return new Promise((resolve, reject) => {
    let ended = true;
    const patience = setTimeout(() => {
      ended = false;
      endAll();
    }, PATIENCE_MS);
    const over = () => {
      clearTimeout(patience);
      process.removeListener('exit', endAll);
      endAll();
    };
    child.once('error', (error) => {
      over();
      reject(error);
    });
    child.once('exit', () => {
      over();
      resolve({ ended, output });
    });
  });
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function firstFailure({ testResults }: Report): Catch | null {
  const all = testResults.flatMap((file) => file.assertionResults);
  const failed = all.find(({ status }) => status === 'failed');
  if (failed !== undefined) {
    const [message = ''] = failed.failureMessages;
    return { test: failed.fullName.trim(), message: message.split('\n')[0]?.slice(0, 200) ?? '' };
  }
  const broken = testResults.find(({ message }) => message !== '');
  if (broken !== undefined) throw new Error(`${broken.name} did not run: ${broken.message}`);
  return null;
}
